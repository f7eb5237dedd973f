//! Process ids: shows the program the same ids in every execution. These are its own id, its parent's, and
//! those of the children that it forks or spawns. They lie above all ids that the kernel assigns, so that an
//! untranslated one hits no process. Every call that takes or returns a process id is translated here and
//! nowhere else.
//!
//! A forked child runs uncontrolled; it still sees the id that its parent knows. Its own children have real
//! ids, and so has a program after `exec`. Real ids also appear in paths below /proc, in credentials of sockets
//! and as the sender of a signal.

use super::{cancel, others, shims};
use crate::blocking::kernel_calls;
use crate::carrier::fibers;
use crate::platform::glibc;
use crate::platform::glibc::kernel_id;
use crate::platform::glibc::real;
use crate::platform::sys;
use crate::sched::{self, SCHED, thread};
use crate::wire_log;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};
use heisen_trace::{Note, Op};
use heisen_wire::{MAX_THREADS, TID_BASE};

/// The id of a child is this plus its number, from 1.
const CHILD_BASE: i32 = TID_BASE + 1_000_000;
/// The largest number of children that are known at a time.
const MAX_CHILDREN: usize = 1 << 10;

/// A process: its real id and the id that the program sees.
#[derive(Clone, Copy)]
struct Both {
    real: i32,
    seen: i32,
}

/// Both ids of a process in one word.
struct Process(AtomicU64);

impl Process {
    fn get(&self) -> Both {
        let word = self.0.load(Relaxed);
        Both { real: word as i32, seen: (word >> 32) as i32 }
    }

    fn set(&self, ids: Both) {
        self.0.store(u64::from(ids.seen as u32) << 32 | u64::from(ids.real as u32), Relaxed);
    }
}

/// All fields are atomic: a forked child, whose threads run in parallel, translates ids, too.
struct Pids {
    own: Process,
    parent: Process,
    /// Real ids of children by their number; 0 if there is none.
    children: [AtomicI32; MAX_CHILDREN],
    /// How many children there have been.
    count: AtomicI32,
}

static PIDS: Pids = Pids {
    own: Process(AtomicU64::new(0)),
    parent: Process(AtomicU64::new(0)),
    children: [const { AtomicI32::new(0) }; MAX_CHILDREN],
    count: AtomicI32::new(0),
};

/// This process is the program: the zygote or an execution.
pub fn init() {
    PIDS.own.set(Both { real: sys::getpid(), seen: TID_BASE });
    PIDS.parent.set(Both { real: sys::getppid(), seen: TID_BASE - 1 });
}

/// The program's own id, as the program sees it.
pub fn own() -> i32 {
    PIDS.own.get().seen
}

/// Whether ids are translated in this process.
pub fn known() -> bool {
    PIDS.own.get().seen != 0
}

/// Whether this is the original process, and not a child that shares its memory (`vfork`).
pub fn is_own() -> bool {
    // In a runner every new child is seen, and the system call is too expensive there.
    crate::lifecycle::in_process::sees() || sys::getpid() == PIDS.own.get().real
}

/// The running thread's id. The main thread has the id of the process. In a forked child all other threads have
/// the kernel's ids.
pub fn thread_id() -> i32 {
    if SCHED.active.get() {
        return TID_BASE + crate::sched::me() as i32;
    }
    let (real, own) = (sys::gettid(), PIDS.own.get());
    if real == own.real && own.seen != 0 { own.seen } else { real }
}

/// The slot of a child's real id, if a child of this number is known.
fn child(number: i32) -> Option<&'static AtomicI32> {
    let count = PIDS.count.load(Relaxed);
    let known = number >= 1 && number <= count && count - number < MAX_CHILDREN as i32;
    known.then(|| &PIDS.children[number as usize % MAX_CHILDREN])
}

/// The kernel's id for an id that the program sees. Unknown ids are returned unchanged.
pub fn to_real(id: i32) -> i32 {
    let (own, parent) = (PIDS.own.get(), PIDS.parent.get());
    if id == own.seen {
        own.real
    } else if id == parent.seen {
        parent.real
    } else if SCHED.active.get() && (TID_BASE..TID_BASE + MAX_THREADS as i32).contains(&id) {
        // All fibers run on one kernel thread.
        match fibers::thread_of_tid(id) {
            Some(number) if number != 0 && SCHED.kernel.get() => kernel_id(thread(number).fs.get(), true),
            Some(_) => own.real,
            None => id,
        }
    } else {
        let real = child(id.wrapping_sub(CHILD_BASE)).map(|slot| slot.load(Relaxed));
        real.filter(|&real| real != 0).unwrap_or(id)
    }
}

/// As [`to_real`]; a negative number names a process group.
pub fn to_real_signed(id: i32) -> i32 {
    if id < -1 { to_real(id.wrapping_neg()).wrapping_neg() } else { to_real(id) }
}

/// The id that the program sees, for an id of the kernel.
pub fn to_seen(id: i32) -> i32 {
    let (own, parent) = (PIDS.own.get(), PIDS.parent.get());
    if id == own.real {
        own.seen
    } else if id == parent.real {
        parent.seen
    } else if id > 0
        && let Some(number) = number_of(id)
    {
        CHILD_BASE + number
    } else {
        id
    }
}

/// Whether this kernel id belongs to this process, its parent or a living child.
pub fn is_known(id: i32) -> bool {
    id == PIDS.own.get().real || id == PIDS.parent.get().real || number_of(id).is_some()
}

/// The number of the living child with this real id.
fn number_of(id: i32) -> Option<i32> {
    let count = PIDS.count.load(Relaxed);
    let oldest = (count - MAX_CHILDREN as i32).max(0);
    (oldest + 1..=count).rev().find(|&number| child(number).is_some_and(|real| real.load(Relaxed) == id))
}

/// A child with this real id was started; returns the id that the program sees. In an uncontrolled process this
/// is the real id: all other processes know the child by that.
pub fn started(real: i32) -> i32 {
    if !SCHED.active.get() || real <= 0 {
        return real;
    }
    let number = PIDS.count.fetch_add(1, Relaxed) + 1;
    PIDS.children[number as usize % MAX_CHILDREN].store(real, Relaxed);
    CHILD_BASE + number
}

/// This process has just been forked; `controlled` says whether its parent was controlled.
pub fn forked(controlled: bool) {
    let (real, number) = (sys::getpid(), PIDS.count.load(Relaxed) + 1);
    PIDS.parent.set(PIDS.own.get());
    PIDS.own.set(Both { real, seen: if controlled { CHILD_BASE + number } else { real } });
    PIDS.count.store(0, Relaxed);
    super::entropy::forked(number as u32);
}

/// The program has waited for a child; returns the id that the program sees. If the child has ended, its id is
/// forgotten.
fn waited(real: i32, ended: bool) -> i32 {
    let seen = to_seen(real);
    if ended
        && real > 0
        && let Some(slot) = child(seen.wrapping_sub(CHILD_BASE))
    {
        slot.store(0, Relaxed);
    }
    seen
}

/// A system call that waits for a child; `options` is the index of its options. It first polls here, for a
/// child that ends soon. After that it blocks on a kernel thread of its own. `none` tells whether the call
/// found no child that has ended.
fn wait_on_helper(
    child: c_int,
    number: usize,
    args: [usize; 6],
    options: usize,
    none: impl Fn() -> bool,
    pc: usize,
) -> isize {
    const WNOHANG: usize = 1;
    if !SCHED.active.get() {
        return sys::call(number, args);
    }
    if args[options] & WNOHANG != 0 {
        cancel::point();
        return sys::call(number, args);
    }
    let child = child as u32 as usize;
    sched::point(Op::WaitChild, child, pc);
    cancel::point();
    let mut now = args;
    now[options] |= WNOHANG;
    let (mut waited, mut moment) = (0, 20);
    loop {
        let got = sys::call(number, now);
        if got != 0 || !none() {
            return got;
        }
        if waited > SOON {
            return kernel_calls::call(Op::WaitChild, child, number, args, pc);
        }
        sys::ppoll_micros(0, 0, moment);
        waited += moment;
        moment = (moment * 2).min(1_000);
    }
}

/// For this many microseconds all threads wait for a child. Its end then comes at a fixed step, and most
/// children end in time.
const SOON: u64 = 100_000;

/// `wait4`, with the kernel's result.
fn wait_for(pid: i32, status: *mut c_int, options: c_int, usage: *mut c_void, pc: usize) -> isize {
    let mut word: c_int = 0;
    let child = to_real_signed(pid) as isize as usize;
    let args = [child, &raw mut word as usize, options as u32 as usize, usage as usize, 0, 0];
    let got = wait_on_helper(pid, sys::SYS_WAIT4, args, 2, || true, pc);
    if got <= 0 {
        return got;
    }
    if !status.is_null() {
        // SAFETY: the program passes room for a status, or null.
        unsafe { *status = word };
    }
    const STOPPED: c_int = 0x7f;
    const CONTINUED: c_int = 0xffff;
    waited(got as i32, word & 0x7f != STOPPED && word != CONTINUED) as isize
}

fn wait_result(pid: i32, status: *mut c_int, options: c_int, usage: *mut c_void, pc: usize) -> c_int {
    glibc::kernel_result(wait_for(pid, status, options, usage, pc)) as c_int
}

/// `waitid`, with the kernel's result.
fn wait_id(kind: usize, id: i32, info: *mut [c_int; 32], options: c_int, usage: usize, pc: usize) -> isize {
    let mut own = [0 as c_int; 32];
    let at = if info.is_null() { &raw mut own } else { info };
    let args = [kind, to_real(id) as usize, at as usize, options as usize, usage, 0];
    // SAFETY: the program passes room for one, or it is the local one.
    unsafe { (*at)[PID] = 0 };
    // SAFETY: as above.
    let none = || unsafe { (&raw const (*at)[PID]).read_volatile() } == 0;
    let result = wait_on_helper(id, sys::SYS_WAITID, args, 3, none, pc);
    if result == 0 {
        waited_info(info, options);
    }
    result
}

/// The index of the process id in a `siginfo_t`.
const PID: usize = 4;

/// After `waitid`: translates the child's id.
fn waited_info(info: *mut [c_int; 32], options: c_int) {
    const WNOWAIT: c_int = 0x0100_0000;
    const CLD_DUMPED: c_int = 3;
    const CODE: usize = 2;
    if info.is_null() {
        return;
    }
    // SAFETY: the program passes a `siginfo_t`, or null, which the call has filled.
    let info = unsafe { &mut *info };
    let ended = info[CODE] <= CLD_DUMPED && options & WNOWAIT == 0;
    info[PID] = waited(info[PID], ended);
}

/// A bit set: which arguments of a system call are ids, and whether a negative id names a group.
const fn ids_of(number: usize) -> usize {
    match number {
        sys::SYS_KILL | sys::SYS_TKILL | sys::SYS_GETPGID | sys::SYS_GETSID => 1,
        sys::SYS_SCHED_SETPARAM..=sys::SYS_SCHED_GETSCHEDULER | sys::SYS_SCHED_RR_GET_INTERVAL => 1,
        sys::SYS_SCHED_SETAFFINITY | sys::SYS_SCHED_GETAFFINITY | sys::SYS_PRLIMIT64 => 1,
        sys::SYS_PROCESS_VM_READV | sys::SYS_PROCESS_VM_WRITEV | sys::SYS_PIDFD_OPEN => 1,
        sys::SYS_RT_SIGQUEUEINFO | sys::SYS_SCHED_SETATTR => 1,
        sys::SYS_GETPRIORITY | sys::SYS_SETPRIORITY | sys::SYS_IOPRIO_SET => 2,
        sys::SYS_TGKILL | sys::SYS_SETPGID | sys::SYS_RT_TGSIGQUEUEINFO => 3,
        _ => 0,
    }
}

/// A system call that takes or returns ids; `None` if it does neither.
pub fn call(number: usize, mut args: [usize; 6], pc: usize) -> Option<isize> {
    if !known() {
        return None;
    }
    match number {
        sys::SYS_GETPID => return Some(PIDS.own.get().seen as isize),
        sys::SYS_GETTID => return Some(thread_id() as isize),
        sys::SYS_GETPPID => return Some(parent() as isize),
        sys::SYS_WAIT4 => {
            let (status, usage) = (args[1] as *mut c_int, args[3] as *mut c_void);
            return Some(wait_for(args[0] as c_int, status, args[2] as c_int, usage, pc));
        }
        sys::SYS_WAITID => {
            let info = args[2] as *mut [c_int; 32];
            return Some(wait_id(args[0], args[1] as c_int, info, args[3] as c_int, args[4], pc));
        }
        sys::SYS_GETPGRP | sys::SYS_SETSID => {
            return Some(to_seen(sys::call(number, args) as c_int) as isize);
        }
        _ => {}
    }
    let ids = ids_of(number);
    if ids == 0 {
        return None;
    }
    for (at, arg) in args.iter_mut().enumerate() {
        if ids >> at & 1 != 0 {
            *arg = to_real_signed(*arg as c_int) as isize as usize;
        }
    }
    if let Some(error) = others::refuse_call(number, args) {
        return Some(-(error as isize));
    }
    let result = sys::call(number, args);
    let gives = matches!(number, sys::SYS_GETPGID | sys::SYS_GETSID);
    Some(if gives { to_seen(result as c_int) as isize } else { result })
}

/// The program has created a file: notes it if its name contains the process id, because parallel executions
/// have the same id.
pub fn names_file(path: *const c_char) {
    let mut digits = [0; 10];
    let id = sys::decimal(PIDS.own.get().seen, &mut digits);
    // SAFETY: the program passes a C string.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    if SCHED.active.get() && path.windows(id.len()).any(|part| part == id) {
        wire_log::note(Note::FileOfPid);
    }
}

/// The parent's id. If the parent has ended, another process has taken its place.
fn parent() -> c_int {
    to_seen(sys::getppid())
}

shims! {
    if known();

    /// Returns the process id, the same in every execution. Not a scheduling point.
    fn getpid() -> c_int = pc { PIDS.own.get().seen }

    /// Returns the parent's id, the same in every execution. Not a scheduling point.
    fn getppid() -> c_int = pc { parent() }

    /// As `kill`, to a process group.
    fn killpg(id: c_int, signal: c_int) -> c_int = pc {
        if id < 0 {
            return glibc::result(sys::EINVAL);
        }
        glibc::result(super::signal::send::send_to_any(-id, signal, pc))
    }

    /// Takes and returns ids that are the same in every execution. Not a scheduling point.
    fn getpgid(id: c_int) -> c_int = pc { to_seen(real!(getpgid, fn(to_real(id) => c_int) -> c_int)) }

    /// Takes and returns ids that are the same in every execution. Not a scheduling point.
    fn getpgrp() -> c_int = pc { to_seen(real!(getpgrp, fn() -> c_int)) }

    /// Takes and returns ids that are the same in every execution. Not a scheduling point.
    fn setpgid(id: c_int, group: c_int) -> c_int = pc {
        real!(setpgid, fn(to_real(id) => c_int, to_real(group) => c_int) -> c_int)
    }

    /// Takes and returns ids that are the same in every execution. Not a scheduling point.
    fn getsid(id: c_int) -> c_int = pc { to_seen(real!(getsid, fn(to_real(id) => c_int) -> c_int)) }

    /// Takes and returns ids that are the same in every execution. Not a scheduling point.
    fn setsid() -> c_int = pc { to_seen(real!(setsid, fn() -> c_int)) }

    /// Takes and returns ids that are the same in every execution. Not a scheduling point.
    fn tcgetpgrp(fd: c_int) -> c_int = pc { to_seen(real!(tcgetpgrp, fn(fd => c_int) -> c_int)) }

    /// Takes and returns ids that are the same in every execution. Not a scheduling point.
    fn tcsetpgrp(fd: c_int, group: c_int) -> c_int = pc {
        real!(tcsetpgrp, fn(fd => c_int, to_real(group) => c_int) -> c_int)
    }

    /// Waits until a child ends, and returns its id as the program knows it. For the first 0.1 seconds all
    /// threads wait; after that other threads run.
    fn waitpid(id: c_int, status: *mut c_int, options: c_int) -> c_int = pc {
        wait_result(id, status, options, core::ptr::null_mut(), pc)
    }

    /// As `waitpid`.
    fn wait(status: *mut c_int) -> c_int = pc { wait_result(-1, status, 0, core::ptr::null_mut(), pc) }

    /// As `waitpid`.
    fn wait3(status: *mut c_int, options: c_int, usage: *mut c_void) -> c_int = pc {
        wait_result(-1, status, options, usage, pc)
    }

    /// As `waitpid`.
    fn wait4(id: c_int, status: *mut c_int, options: c_int, usage: *mut c_void) -> c_int = pc {
        wait_result(id, status, options, usage, pc)
    }

    /// As `waitpid`.
    fn waitid(kind: c_int, id: c_int, info: *mut [c_int; 32], options: c_int) -> c_int = pc {
        glibc::kernel_result(wait_id(kind as usize, id, info, options, 0, pc)) as c_int
    }

    /// Takes a process id as the program sees it. Changing a process that does not belong to the program is
    /// refused with `EPERM`. Not a scheduling point.
    fn prlimit(id: c_int, what: c_int, new: usize, old: usize) -> c_int = pc {
        if others::refuses(sys::SYS_PRLIMIT64, [to_real(id) as usize, 0, new]) {
            return -1;
        }
        real!(prlimit, fn(to_real(id) => c_int, what => c_int, new => usize, old => usize) -> c_int)
    }

    /// As `prlimit`.
    fn prlimit64(id: c_int, what: c_int, new: usize, old: usize) -> c_int = pc {
        if others::refuses(sys::SYS_PRLIMIT64, [to_real(id) as usize, 0, new]) {
            return -1;
        }
        real!(prlimit64, fn(to_real(id) => c_int, what => c_int, new => usize, old => usize) -> c_int)
    }

    /// Takes a process id as the program sees it. Not a scheduling point.
    fn process_vm_readv(id: c_int, to: usize, tos: usize, from: usize, froms: usize, flags: usize) -> isize = pc {
        real!(process_vm_readv, fn(
            to_real(id) => c_int, to => usize, tos => usize, from => usize, froms => usize, flags => usize
        ) -> isize)
    }

    /// Takes a process id as the program sees it. Gives `EPERM` if the process does not belong to the program.
    /// Not a scheduling point.
    fn process_vm_writev(id: c_int, from: usize, froms: usize, to: usize, tos: usize, flags: usize) -> isize = pc {
        if others::refuses(sys::SYS_PROCESS_VM_WRITEV, [to_real(id) as usize, 0, 0]) {
            return -1;
        }
        real!(process_vm_writev, fn(
            to_real(id) => c_int, from => usize, froms => usize, to => usize, tos => usize, flags => usize
        ) -> isize)
    }

    /// Takes a process id as the program sees it. Not a scheduling point.
    fn pidfd_open(id: c_int, flags: u32) -> c_int = pc {
        real!(pidfd_open, fn(to_real(id) => c_int, flags => u32) -> c_int)
    }

    /// Sends a signal, as if from outside, to a process of the program. For other processes it is refused with
    /// `EPERM`. Not a scheduling point.
    fn pidfd_send_signal(fd: c_int, signal: c_int, info: usize, flags: u32) -> c_int = pc {
        if others::refuses(sys::SYS_PIDFD_SEND_SIGNAL, [fd as usize, signal as usize, 0]) {
            return -1;
        }
        real!(pidfd_send_signal, fn(fd => c_int, signal => c_int, info => usize, flags => u32) -> c_int)
    }

    /// Takes a process id as the program sees it. Not a scheduling point.
    fn clock_getcpuclockid(id: c_int, clock: usize) -> c_int = pc {
        real!(clock_getcpuclockid, fn(to_real(id) => c_int, clock => usize) -> c_int)
    }

    /// Takes a thread id as the program sees it. Not a scheduling point.
    fn sched_rr_get_interval(id: c_int, time: usize) -> c_int = pc {
        real!(sched_rr_get_interval, fn(to_real(id) => c_int, time => usize) -> c_int)
    }

    /// Returns the thread id: the process id plus the thread's number. Not a scheduling point.
    fn gettid() -> c_int = pc {
        if SCHED.active.get() {
            crate::sched::symmetry::named(crate::sched::me());
        }
        thread_id()
    }

    /// Takes a thread id as the program sees it. Not a scheduling point.
    fn sched_getscheduler(id: c_int) -> c_int = pc { real!(sched_getscheduler, fn(to_real(id) => c_int) -> c_int) }

    /// Takes a thread id as the program sees it. Gives `EPERM` if the thread does not belong to the program.
    /// Not a scheduling point.
    fn sched_setscheduler(id: c_int, policy: c_int, parameters: usize) -> c_int = pc {
        if others::refuses(sys::SYS_SCHED_SETSCHEDULER, [to_real(id) as usize, 0, 0]) {
            return -1;
        }
        real!(sched_setscheduler, fn(to_real(id) => c_int, policy => c_int, parameters => usize) -> c_int)
    }

    /// Takes a thread id as the program sees it. Not a scheduling point.
    fn sched_getparam(id: c_int, parameters: usize) -> c_int = pc {
        real!(sched_getparam, fn(to_real(id) => c_int, parameters => usize) -> c_int)
    }

    /// As `sched_setscheduler`.
    fn sched_setparam(id: c_int, parameters: usize) -> c_int = pc {
        if others::refuses(sys::SYS_SCHED_SETPARAM, [to_real(id) as usize, 0, 0]) {
            return -1;
        }
        real!(sched_setparam, fn(to_real(id) => c_int, parameters => usize) -> c_int)
    }

    /// Takes a thread id as the program sees it. Not a scheduling point.
    fn getpriority(which: c_int, id: c_int) -> c_int = pc {
        real!(getpriority, fn(which => c_int, to_real(id) => c_int) -> c_int)
    }

    /// Takes a thread id as the program sees it. Gives `EPERM` if the thread does not belong to the program,
    /// and for all processes of a user. Not a scheduling point.
    fn setpriority(which: c_int, id: c_int, priority: c_int) -> c_int = pc {
        if others::refuses(sys::SYS_SETPRIORITY, [which as usize, to_real(id) as usize, 0]) {
            return -1;
        }
        real!(setpriority, fn(which => c_int, to_real(id) => c_int, priority => c_int) -> c_int)
    }

    /// Returns the processors that the thread may use: with `--cpus`, those. Not a scheduling point.
    fn sched_getaffinity(id: c_int, size: usize, set: usize) -> c_int = pc {
        let answer = number_of_thread(id).and_then(|number| super::cpu::get_affinity_set(number, size, set));
        match answer {
            Some(error) => glibc::result(error),
            None => real!(sched_getaffinity, fn(to_real(id) => c_int, size => usize, set => usize) -> c_int),
        }
    }

    /// Sets the processors that the thread may use: with `--cpus`, some of those. Not a scheduling point.
    fn sched_setaffinity(id: c_int, size: usize, set: usize) -> c_int = pc {
        match number_of_thread(id).and_then(|number| super::cpu::set_affinity(number, size, set)) {
            Some(error) => glibc::result(-error as c_int),
            None if others::refuses(sys::SYS_SCHED_SETAFFINITY, [to_real(id) as usize, 0, 0]) => -1,
            None => real!(sched_setaffinity, fn(to_real(id) => c_int, size => usize, set => usize) -> c_int),
        }
    }
}

/// The number of a thread of the program by its id; id 0 is the running thread.
pub fn number_of_thread(id: c_int) -> Option<usize> {
    if id == 0 { Some(crate::sched::me()) } else { fibers::thread_of_tid(id) }
}
