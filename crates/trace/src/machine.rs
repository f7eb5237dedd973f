//! The table of system calls that change the machine, or processes that do not belong to the program.
//!
//! Every way to the kernel consults this one table:
//!
//! - functions of the C library and `syscall` (`runtime::shim`),
//! - system call instructions in a runner (`runtime::lifecycle::in_process`),
//! - for all other processes of a check, the seccomp filter that the engine installs
//!   (`engine::process::seccomp`).
//!
//! `docs/reference/machine.md` shows the table; a test compares the two.

use crate::Note;

/// What happens to a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// It changes only the virtual world of this execution.
    Virtual,
    /// It is made if it concerns processes of the program: itself, its children and theirs. Otherwise it
    /// fails with EPERM.
    OwnOnly,
    /// It fails with EPERM, and the verdict says so.
    Refused(Note),
    /// It is made unchanged.
    PassedOn,
}

impl Control {
    /// The word in the table of the documentation.
    pub const fn word(self) -> &'static str {
        match self {
            Control::Virtual => "virtual",
            Control::OwnOnly => "own processes only",
            Control::Refused(_) => "refused",
            Control::PassedOn => "passed on",
        }
    }
}

/// System calls with the same treatment.
#[derive(Debug)]
pub struct Row {
    /// Their names, with their numbers on x86-64.
    pub calls: &'static [(&'static str, usize)],
    /// What happens to them.
    pub control: Control,
    /// An explanation for the documentation.
    pub meaning: &'static str,
}

/// The table.
pub const TABLE: &[Row] = &[
    Row {
        calls: &[("clock_settime", 227), ("settimeofday", 164), ("adjtimex", 159), ("clock_adjtime", 305)],
        control: Control::Virtual,
        meaning: "Sets the virtual real-time clock of this execution. Waits that have begun keep their deadlines. The rate of the \
                  clock cannot be changed: EPERM.",
    },
    Row {
        calls: &[
            ("kill", 62),
            ("tkill", 200),
            ("tgkill", 234),
            ("rt_sigqueueinfo", 129),
            ("rt_tgsigqueueinfo", 297),
            ("pidfd_send_signal", 424),
        ],
        control: Control::OwnOnly,
        meaning: "Signals to the program itself are scheduled. The process id -1 stands for processes of others and is refused; 0 and \
                  the own process group stand for the processes of the execution.",
    },
    Row {
        calls: &[
            ("setpriority", 141),
            ("sched_setparam", 142),
            ("sched_setscheduler", 144),
            ("sched_setattr", 314),
            ("sched_setaffinity", 203),
            ("ioprio_set", 251),
            ("prlimit64", 302),
            ("process_vm_writev", 311),
        ],
        control: Control::OwnOnly,
        meaning: "Priorities, processors, limits and memory. `setpriority` and `ioprio_set` for all processes of a user are \
                  refused.",
    },
    Row {
        calls: &[("reboot", 169), ("kexec_load", 246), ("kexec_file_load", 320)],
        control: Control::Refused(Note::Reboot),
        meaning: "Ends or replaces the running system.",
    },
    Row {
        calls: &[("sethostname", 170), ("setdomainname", 171)],
        control: Control::Refused(Note::HostName),
        meaning: "Renames the machine.",
    },
    Row {
        calls: &[
            ("mount", 165),
            ("umount2", 166),
            ("pivot_root", 155),
            ("move_mount", 429),
            ("fsconfig", 431),
            ("fsmount", 432),
            ("mount_setattr", 442),
        ],
        control: Control::Refused(Note::Mount),
        meaning: "Changes which file systems the machine has, also where the program has a mount namespace of its own.",
    },
    Row {
        calls: &[("swapon", 167), ("swapoff", 168), ("quotactl", 179), ("quotactl_fd", 443), ("acct", 163)],
        control: Control::Refused(Note::Accounting),
        meaning: "Swap space, quotas and accounting of the machine.",
    },
    Row {
        calls: &[("init_module", 175), ("finit_module", 313), ("delete_module", 176), ("bpf", 321)],
        control: Control::Refused(Note::KernelCode),
        meaning: "Loads code into the kernel, or removes it.",
    },
    Row {
        calls: &[("iopl", 172), ("ioperm", 173), ("syslog", 103), ("vhangup", 153)],
        control: Control::Refused(Note::Devices),
        meaning: "Ports, the kernel's log and the terminal of the session.",
    },
    Row {
        calls: &[("ioctl", 16)],
        control: Control::PassedOn,
        meaning: "The program has a session without a terminal. Of requests to terminals, TIOCSTI, TIOCLINUX, TIOCCONS and TIOCVHANGUP \
                  are refused.",
    },
    Row {
        calls: &[("prctl", 157), ("setrlimit", 160), ("unshare", 272), ("setns", 308), ("chroot", 161)],
        control: Control::PassedOn,
        meaning: "Changes the calling process, which ends with its execution.",
    },
    Row {
        calls: &[
            ("ptrace", 101),
            ("pidfd_getfd", 438),
            ("process_madvise", 440),
            ("migrate_pages", 256),
            ("move_pages", 279),
        ],
        control: Control::PassedOn,
        meaning: "May reach other processes of the user, as natively.",
    },
    Row {
        calls: &[
            ("shmget", 29),
            ("semget", 64),
            ("msgget", 68),
            ("mq_open", 240),
            ("add_key", 248),
            ("keyctl", 250),
        ],
        control: Control::PassedOn,
        meaning: "Shared memory, semaphores, queues and keys live until they are removed. An execution finds what the one before it \
                  left, and parallel executions share them: remove them in the program or by `--before` and `--after`, and use \
                  `--jobs 1`.",
    },
    Row {
        calls: &[("open", 2), ("openat", 257), ("mkdir", 83), ("rename", 82), ("unlink", 87)],
        control: Control::PassedOn,
        meaning: "Files are those of the machine, wherever they lie; `--dir` gives each execution an empty working directory. All \
                  executions see the same process id, so parallel ones share files that are named by it; the verdict says so.",
    },
];

/// All numbers of system calls are smaller.
const NUMBERS: usize = 512;

/// By number: the index of the row plus 1, or 0.
const ROWS: [u8; NUMBERS] = {
    let mut rows = [0; NUMBERS];
    let mut row = 0;
    while row < TABLE.len() {
        let calls = TABLE[row].calls;
        let mut call = 0;
        while call < calls.len() {
            rows[calls[call].1] = row as u8 + 1;
            call += 1;
        }
        row += 1;
    }
    rows
};

/// What happens to a system call. Calls that are not in the table are passed on.
pub fn control(number: usize) -> Control {
    match ROWS.get(number) {
        None | Some(0) => Control::PassedOn,
        Some(&row) => TABLE[row as usize - 1].control,
    }
}

/// The requests of `ioctl` that are refused: they write to the input of a terminal, or detach it from its
/// session.
pub const REFUSED_REQUESTS: [usize; 4] = [TIOCSTI, TIOCLINUX, TIOCCONS, TIOCVHANGUP];
const TIOCSTI: usize = 0x5412;
const TIOCLINUX: usize = 0x541c;
const TIOCCONS: usize = 0x541d;
const TIOCVHANGUP: usize = 0x5437;

/// The number of `kill`. With [`EVERYONE`], it is refused in all processes of a check.
pub const KILL: usize = 62;
/// The number of `ioctl`.
pub const IOCTL: usize = 16;
/// The argument of `kill` that means every process.
pub const EVERYONE: i32 = -1;
