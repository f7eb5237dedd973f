//! System calls of an execution that is to be undone: decides for each whether its effects can be undone.
//!
//! The kernel hands over every system call (`prctl(2)`, `PR_SET_SYSCALL_USER_DISPATCH`). The only exceptions
//! are the few instructions that return from a handler. So no call is missed, neither of the C library nor of
//! the runtime. Most programs make few system calls: synchronisation, time and the output of small programs
//! need none.
//!
//! A call that only asks is made. A call that can be undone is made and recorded. At any other call the
//! runner gives up control of the execution.

use super::trap_handlers::{OURS, Own};
use super::{HANDLERS, HANDLERS_SIZE, control, finished, leave, snapshot::PAGE};
use crate::lifecycle::refused_calls;
use crate::platform::sys;
use core::cell::Cell;
use core::sync::atomic::AtomicU8;
use heisen_wire::runner;

/// Values of the selector: whether the kernel hands system calls over (`SEEN`) or makes them (`UNSEEN`).
pub const UNSEEN: u8 = 0;
pub const SEEN: u8 = 1;

const RLIMIT_DATA: usize = 2;
const MAX_RANGES: usize = 64;
/// Opened descriptors below this number are recorded.
const MAX_FDS: usize = 512;

/// Numbers of the system calls that are distinguished here, in addition to those of `sys`.
mod nr {
    pub const READ: usize = 0;
    pub const WRITE: usize = 1;
    pub const CLOSE: usize = 3;
    pub const STAT: usize = 4;
    pub const FSTAT: usize = 5;
    pub const LSTAT: usize = 6;
    pub const POLL: usize = 7;
    pub const LSEEK: usize = 8;
    pub const MMAP: usize = 9;
    pub const MPROTECT: usize = 10;
    pub const MUNMAP: usize = 11;
    pub const BRK: usize = 12;
    pub const RT_SIGACTION: usize = 13;
    pub const RT_SIGPROCMASK: usize = 14;
    pub const IOCTL: usize = 16;
    pub const PREAD: usize = 17;
    pub const READV: usize = 19;
    pub const WRITEV: usize = 20;
    pub const ACCESS: usize = 21;
    pub const SCHED_YIELD: usize = 24;
    pub const MADVISE: usize = 28;
    pub const GETPID: usize = 39;
    pub const UNAME: usize = 63;
    pub const FCNTL: usize = 72;
    pub const GETCWD: usize = 79;
    pub const READLINK: usize = 89;
    pub const GETTIMEOFDAY: usize = 96;
    pub const GETRLIMIT: usize = 97;
    pub const GETRUSAGE: usize = 98;
    pub const SYSINFO: usize = 99;
    pub const TIMES: usize = 100;
    pub const GETUID: usize = 102;
    pub const GETGID: usize = 104;
    pub const GETEUID: usize = 107;
    pub const GETEGID: usize = 108;
    pub const GETPPID: usize = 110;
    pub const GETPGRP: usize = 111;
    pub const RT_SIGPENDING: usize = 127;
    pub const SIGALTSTACK: usize = 131;
    pub const GETTID: usize = 186;
    pub const FUTEX: usize = 202;
    pub const SCHED_GETAFFINITY: usize = 204;
    pub const CLOCK_GETTIME: usize = 228;
    pub const CLOCK_GETRES: usize = 229;
    pub const EXIT_GROUP: usize = 231;
    pub const OPENAT: usize = 257;
    pub const NEWFSTATAT: usize = 262;
    pub const READLINKAT: usize = 267;
    pub const FACCESSAT: usize = 269;
    pub const EVENTFD2: usize = 290;
    pub const PIPE2: usize = 293;
    pub const PRLIMIT64: usize = 302;
    pub const GETCPU: usize = 309;
    pub const GETRANDOM: usize = 318;
    pub const PREADV2: usize = 327;
    pub const PWRITEV2: usize = 328;
    pub const STATX: usize = 332;
    pub const FACCESSAT2: usize = 439;
}

/// A range: first address and size.
type Range = Cell<(usize, usize)>;

/// The state of the kernel at the time of the snapshot, and what has changed since.
pub struct Calls {
    mask: Cell<u64>,
    mask_changed: Cell<bool>,
    /// The alternate signal stack of the program. The program believes that it is in use, but the kernel has
    /// the runner's.
    alternate: Cell<[usize; 3]>,
    alternate_now: Cell<[usize; 3]>,
    /// How much data the program may have (`RLIMIT_DATA`).
    limit: Cell<[u64; 2]>,
    limit_changed: Cell<bool>,
    break_: Cell<usize>,
    break_changed: Cell<bool>,
    /// Signals whose action has changed, as bits, and their actions before.
    actions_changed: Cell<u64>,
    actions: [Cell<[usize; 4]>; 65],
    /// Memory that was mapped since the snapshot.
    mapped: [Range; MAX_RANGES],
    mapped_count: Cell<usize>,
    /// Memory that was mapped before the snapshot, but after `main` began.
    stayed: [Range; MAX_RANGES],
    stayed_count: Cell<usize>,
    /// What the program wants for the runner's own signals.
    pub own: Own,
    /// Descriptors that were opened since the snapshot, as bits.
    opened: [Cell<u64>; MAX_FDS / 64],
    any_opened: Cell<bool>,
}

/// What happens to a system call.
pub enum Fate {
    /// The handler makes the call.
    Made,
    /// The call has been made, with this result.
    Done(isize),
    /// The call cannot be undone.
    Leaves,
}

impl Calls {
    /// Records the present state and installs the handlers. Returns false if that is not possible.
    pub fn begin(&self) -> bool {
        let mask = self.own.begin();
        self.mask.set(mask);
        let mut alternate = [0usize; 3];
        let ours = [HANDLERS, 0, HANDLERS_SIZE];
        let at = alternate.as_mut_ptr() as usize;
        if sys::call(nr::SIGALTSTACK, [ours.as_ptr() as usize, at, 0, 0, 0, 0]) != 0 {
            return false;
        }
        self.alternate.set(alternate);
        self.alternate_now.set(alternate);
        self.break_.set(sys::program_break());
        data_limit().inspect(|&limit| self.limit.set(limit)).is_some()
    }

    /// Makes the kernel hand over system calls while the selector says so.
    pub fn watch(&self, selector: &AtomicU8) -> bool {
        const SYS_PRCTL: usize = 157;
        const SET_SYSCALL_USER_DISPATCH: usize = 59;
        const ON: usize = 1;
        let (from, length) = sys::sigreturn_code();
        let at = core::ptr::from_ref(selector) as usize;
        sys::call(SYS_PRCTL, [SET_SYSCALL_USER_DISPATCH, ON, from, length, at, 0]) == 0
    }

    /// Whether the snapshot can be moved here with all changes since.
    pub fn can_stay(&self) -> bool {
        // An opened descriptor could not be distinguished from the descriptors of the first snapshot.
        self.opened.iter().all(|word| word.get() == 0)
    }

    /// Makes the present state the one at the start of each execution, because the snapshot is moved here.
    pub fn stay(&self) {
        self.mask.set(sys::signal_mask(None));
        self.alternate.set(self.alternate_now.get());
        self.own.stay();
        self.break_.set(sys::program_break());
        if self.limit_changed.get() {
            self.limit.set(data_limit().unwrap_or(self.limit.get()));
        }
        self.actions_changed.set(0);
        let mapped = self.mapped_count.replace(0);
        for (stayed, range) in self.stayed.iter().zip(&self.mapped[..mapped]) {
            stayed.set(range.get());
        }
        self.stayed_count.set(mapped);
        for changed in [&self.mask_changed, &self.limit_changed, &self.break_changed] {
            changed.set(false);
        }
    }

    /// Undoes the recorded changes. Returns whether that was possible.
    pub fn undo(&self) -> bool {
        let mut good = true;
        control().snapshot.show();
        if self.mask_changed.replace(false) {
            sys::signal_mask(Some(self.mask.get()));
        }
        self.alternate_now.set(self.alternate.get());
        self.own.undo();
        let mut changed = self.actions_changed.replace(0);
        while changed != 0 {
            let signal = changed.trailing_zeros() as usize + 1;
            changed &= changed - 1;
            sys::raw_action(signal as i32, Some(self.actions[signal].get()));
        }
        if self.limit_changed.replace(false) {
            let limit = self.limit.get();
            good &= sys::call(nr::PRLIMIT64, [0, RLIMIT_DATA, limit.as_ptr() as usize, 0, 0, 0]) == 0;
        }
        for range in &self.mapped[..self.mapped_count.replace(0)] {
            let (from, size) = range.get();
            sys::unmap(from, size);
        }
        if self.break_changed.replace(false) {
            let before = self.break_.get();
            good &= sys::call(nr::BRK, [before, 0, 0, 0, 0, 0]) as usize == before;
        }
        if self.any_opened.replace(false) {
            for (index, word) in self.opened.iter().enumerate() {
                let mut bits = word.replace(0);
                while bits != 0 {
                    sys::close((index * 64) as i32 + bits.trailing_zeros() as i32);
                    bits &= bits - 1;
                }
            }
        }
        good
    }

    fn has_opened(&self, fd: usize) -> bool {
        fd < MAX_FDS && self.opened[fd / 64].get() >> (fd % 64) & 1 != 0
    }

    /// Records a new descriptor. Returns false if there is no room, so that it cannot be undone.
    fn open(&self, fd: isize) -> bool {
        if fd < 0 {
            return true;
        }
        let fd = fd as usize;
        if fd >= MAX_FDS {
            return false;
        }
        self.opened[fd / 64].set(self.opened[fd / 64].get() | 1 << (fd % 64));
        self.any_opened.set(true);
        true
    }

    fn close(&self, fd: usize) {
        self.opened[fd / 64].set(self.opened[fd / 64].get() & !(1 << (fd % 64)));
    }

    /// Whether this range was mapped since the snapshot.
    fn has_mapped(&self, from: usize, size: usize) -> bool {
        self.mapped[..self.mapped_count.get()].iter().any(|range| holds(range.get(), from, size))
    }

    /// Unmaps memory that belongs to the snapshot. Returns whether that is possible.
    fn unmap(&self, from: usize, size: usize) -> bool {
        let mut stayed = self.stayed[..self.stayed_count.get()].iter();
        stayed.any(|range| holds(range.get(), from, size)) && control().snapshot.hide(from, size)
    }

    pub fn fate(&self, number: usize, args: [usize; 6]) -> Fate {
        let call = || sys::call(number, args);
        if let Some(error) = refused_calls::refuse_instruction(number, args) {
            return Fate::Done(-(error as isize));
        }
        match number {
            nr::EXIT_GROUP => finished(args[0] as i32),
            nr::STAT
            | nr::FSTAT
            | nr::LSTAT
            | nr::PREAD
            | nr::ACCESS
            | nr::SCHED_YIELD
            | nr::GETPID
            | nr::UNAME
            | nr::GETCWD
            | nr::READLINK
            | nr::GETTIMEOFDAY
            | nr::GETRLIMIT
            | nr::GETRUSAGE
            | nr::SYSINFO
            | nr::TIMES
            | nr::GETUID
            | nr::GETGID
            | nr::GETEUID
            | nr::GETEGID
            | nr::GETPPID
            | nr::GETPGRP
            | nr::RT_SIGPENDING
            | nr::GETTID
            | nr::SCHED_GETAFFINITY
            | nr::CLOCK_GETTIME
            | nr::CLOCK_GETRES
            | nr::NEWFSTATAT
            | nr::READLINKAT
            | nr::FACCESSAT
            | nr::FACCESSAT2
            | nr::GETCPU
            | nr::GETRANDOM
            | nr::STATX => Fate::Made,
            // Only calls that return at once are made here. The program itself makes a call that may block,
            // so that an inspection finds it there.
            nr::FUTEX if args[1] & 1 != 0 => Fate::Made,
            nr::POLL if args[2] == 0 => Fate::Made,
            // Output is discarded anyway, so it need not be undone.
            nr::WRITE | nr::WRITEV if matches!(args[0], 1 | 2) => Fate::Made,
            nr::WRITE | nr::WRITEV | nr::PWRITEV2 | nr::LSEEK if self.has_opened(args[0]) => Fate::Made,
            nr::READ if self.has_opened(args[0]) && is_ready(args[0]) => Fate::Made,
            nr::READV | nr::PREADV2 if self.has_opened(args[0]) && is_ready(args[0]) => {
                make_way_for_pieces(args[1], args[2]);
                Fate::Made
            }
            nr::LSEEK if args[1] == 0 && args[2] == 1 => Fate::Made,
            nr::IOCTL => {
                const TCGETS: usize = 0x5401;
                const TIOCGWINSZ: usize = 0x5413;
                if matches!(args[1], TCGETS | TIOCGWINSZ) { Fate::Made } else { Fate::Leaves }
            }
            nr::FCNTL => {
                const F_GETFD: usize = 1;
                const F_GETFL: usize = 3;
                if matches!(args[1], F_GETFD | F_GETFL) { Fate::Made } else { Fate::Leaves }
            }
            nr::PRLIMIT64 if args[2] == 0 => Fate::Made,
            nr::PRLIMIT64 if args[0] == 0 && args[1] == RLIMIT_DATA => {
                self.limit_changed.set(true);
                Fate::Made
            }
            nr::OPENAT => {
                const WRITES: usize = 3;
                const CREATES: usize = 0o100 | 0o1000;
                if args[2] & (WRITES | CREATES) != 0 || (args[2] & 0o20_000_000) != 0 {
                    return Fate::Leaves;
                }
                self.opens(call())
            }
            nr::EVENTFD2 => self.opens(call()),
            nr::PIPE2 => {
                let result = call();
                if result < 0 {
                    return Fate::Done(result);
                }
                // SAFETY: the kernel has just written two descriptors there.
                let fds = unsafe { *(args[0] as *const [i32; 2]) };
                if fds.iter().all(|&fd| self.open(fd as isize)) {
                    Fate::Done(result)
                } else {
                    self.left(result)
                }
            }
            nr::CLOSE if self.has_opened(args[0]) => {
                self.close(args[0]);
                Fate::Made
            }
            nr::RT_SIGPROCMASK => self.mask(args),
            nr::RT_SIGACTION => self.action(args),
            nr::SIGALTSTACK => self.alternate(args),
            nr::BRK => {
                // The call with 0 only asks for the break.
                self.break_changed.set(self.break_changed.get() || args[0] != 0);
                Fate::Made
            }
            nr::MMAP => self.map(args),
            nr::MUNMAP | nr::MPROTECT if self.has_mapped(args[0], args[1]) => Fate::Made,
            nr::MUNMAP if self.unmap(args[0], args[1].next_multiple_of(PAGE)) => Fate::Done(0),
            nr::MADVISE => self.advise(args),
            _ => Fate::Leaves,
        }
    }

    fn opens(&self, fd: isize) -> Fate {
        if self.open(fd) { Fate::Done(fd) } else { self.left(fd) }
    }

    /// The call was made, but its effect cannot be undone after all.
    fn left(&self, result: isize) -> Fate {
        leave(control(), runner::FILES);
        Fate::Done(result)
    }

    fn mask(&self, args: [usize; 6]) -> Fate {
        const SIG_UNBLOCK: usize = 1;
        if args[1] == 0 {
            return Fate::Made;
        }
        self.mask_changed.set(true);
        // SAFETY: the caller passes a set of signals.
        let wanted = unsafe { *(args[1] as *const u64) };
        self.own.block(args[0], wanted);
        if args[0] == SIG_UNBLOCK {
            return Fate::Made;
        }
        let set = wanted & !OURS;
        let at = &raw const set as usize;
        Fate::Done(sys::call(nr::RT_SIGPROCMASK, [args[0], at, args[2], args[3], 0, 0]))
    }

    fn action(&self, args: [usize; 6]) -> Fate {
        let signal = args[0];
        if let Some(wanted) = self.own.action(signal as i32) {
            let old = wanted.get();
            // SAFETY: the caller passes an action and room for the old one, each possibly null.
            unsafe {
                if args[1] != 0 {
                    wanted.set(*(args[1] as *const [usize; 4]));
                }
                if args[2] != 0 {
                    *(args[2] as *mut [usize; 4]) = old;
                }
            }
            return Fate::Done(0);
        }
        if args[1] == 0 {
            return Fate::Made;
        }
        if signal > 64 || signal == 0 {
            return Fate::Leaves;
        }
        // SAFETY: the caller passes an action.
        let mut action = unsafe { *(args[1] as *const [usize; 4]) };
        action[3] &= !OURS as usize;
        let bit = 1u64 << (signal - 1);
        if self.actions_changed.get() & bit == 0 {
            self.actions[signal].set(sys::raw_action(signal as i32, None));
            self.actions_changed.set(self.actions_changed.get() | bit);
        }
        Fate::Done(sys::call(nr::RT_SIGACTION, [signal, action.as_ptr() as usize, args[2], args[3], 0, 0]))
    }

    /// Answers as if the program had the alternate signal stack that it wants. The kernel keeps the runner's.
    fn alternate(&self, args: [usize; 6]) -> Fate {
        let old = self.alternate_now.get();
        if args[0] != 0 {
            // SAFETY: the caller passes a `stack_t`.
            self.alternate_now.set(unsafe { *(args[0] as *const [usize; 3]) });
        }
        if args[1] != 0 {
            // SAFETY: the caller passes room for a `stack_t`.
            unsafe { *(args[1] as *mut [usize; 3]) = old };
        }
        Fate::Done(0)
    }

    fn map(&self, args: [usize; 6]) -> Fate {
        const SHARED: usize = 1;
        const FIXED: usize = 0x10;
        let count = self.mapped_count.get();
        let over = args[3] & FIXED != 0 && !self.has_mapped(args[0], args[1]);
        if args[3] & SHARED != 0 || over || count == MAX_RANGES {
            return Fate::Leaves;
        }
        let at = sys::call(nr::MMAP, args);
        if at > 0 {
            self.mapped[count].set((at as usize, args[1].next_multiple_of(PAGE)));
            self.mapped_count.set(count + 1);
        }
        Fate::Done(at)
    }

    fn advise(&self, args: [usize; 6]) -> Fate {
        const DONTNEED: usize = 4;
        const FREE: usize = 8;
        match args[2] {
            _ if self.has_mapped(args[0], args[1]) => Fate::Made,
            DONTNEED if control().snapshot.drop_pages(args[0], args[1].next_multiple_of(PAGE)) => {
                Fate::Done(0)
            }
            DONTNEED | FREE => Fate::Leaves,
            // Other kinds of advice are hints.
            _ => Fate::Made,
        }
    }
}

/// Whether a range, given by its first address and its size, contains another one.
fn holds((at, length): (usize, usize), from: usize, size: usize) -> bool {
    from >= at && from + size <= at + length
}

/// How much data the program may have.
fn data_limit() -> Option<[u64; 2]> {
    let mut limit = [0u64; 2];
    let asked = sys::call(nr::PRLIMIT64, [0, RLIMIT_DATA, 0, limit.as_mut_ptr() as usize, 0, 0]);
    (asked == 0).then_some(limit)
}

/// Makes the pages writable to which the arguments of a call point, because the kernel refuses to write to a
/// protected page. As a rule the next argument is the size; otherwise the kernel writes little.
pub fn make_way(args: [usize; 6]) {
    const MOST: usize = 1 << 20;
    const LITTLE: usize = 512;
    for (index, &at) in args.iter().enumerate() {
        // Other values are not addresses.
        if (PAGE..1 << 47).contains(&at) {
            let size = args.get(index + 1).copied().filter(|&size| size <= MOST).unwrap_or(0).max(LITTLE);
            control().snapshot.will_write(at, size);
        }
    }
}

/// Whether a read from a descriptor returns at once.
fn is_ready(fd: usize) -> bool {
    const POLLIN: u64 = 1;
    let asked = POLLIN << 32 | fd as u64;
    sys::poll(&raw const asked as usize, 1, 0) == 1
}

/// Like [`make_way`], for an array of `iovec`.
fn make_way_for_pieces(pieces: usize, count: usize) {
    for piece in 0..count.min(1024) {
        // SAFETY: the caller passes this many of them.
        let [at, size] = unsafe { *(pieces as *const [usize; 2]).add(piece) };
        control().snapshot.will_write(at, size);
    }
}
