//! Thread ids, and what is asked of the kernel by one. Fibers are one kernel thread, so it answers for each of them: its
//! id takes the place of the one that the program knows, in the thread's control block where glibc looks it up, and in the
//! arguments of functions and system calls that take one.

use super::shims;
use super::signal::pending::code;
use super::signal::{own_pid, send};
use crate::fibers;
use crate::glibc::real;
use crate::sched::{S, me, thread};
use crate::sys;
use core::ffi::c_int;
use heisen_wire::TID_BASE;

/// The running thread's id, as the program sees it: the main thread's is that of the process.
pub fn thread_id() -> i32 {
    if S.active.get() && me() != 0 { TID_BASE + me() as i32 } else { sys::gettid() }
}

/// The kernel's id for a process or thread id that the program passes.
fn kernel_id(id: c_int) -> c_int {
    match fibers::thread_of_tid(id) {
        Some(number) if number != 0 => fibers::kernel_id(thread(number)),
        _ => id,
    }
}

/// A system call as the program makes it, with ids as the kernel knows them.
pub fn call(number: usize, mut args: [usize; 6], pc: usize) -> isize {
    if !S.active.get() {
        return sys::call(number, args);
    }
    if let Some(result) = signal(number, args, pc) {
        return result;
    }
    let at = match number {
        sys::SYS_GETTID => return thread_id() as isize,
        sys::SYS_SCHED_SETPARAM..=sys::SYS_SCHED_GETSCHEDULER => 0,
        sys::SYS_SCHED_SETAFFINITY | sys::SYS_SCHED_GETAFFINITY => 0,
        sys::SYS_GETPRIORITY | sys::SYS_SETPRIORITY => 1,
        _ => return sys::call(number, args),
    };
    args[at] = kernel_id(args[at] as c_int) as usize;
    sys::call(number, args)
}

/// A system call that sends a signal to the program or to a thread of it: none if it is another.
fn signal(number: usize, [a, b, c, ..]: [usize; 6], pc: usize) -> Option<isize> {
    let error = match number {
        sys::SYS_KILL => send::send_to_process(a as c_int, b as c_int, code::USER, 0, pc),
        sys::SYS_TKILL => send::send_to_id(a as c_int, b as c_int, pc),
        sys::SYS_TGKILL if a as c_int == own_pid() => send::send_to_id(b as c_int, c as c_int, pc),
        _ => None,
    };
    error.map(|error| -(error as isize))
}

/// Calls `ask` for a thread with the kernel thread's id in its control block.
fn for_thread(handle: usize, ask: impl FnOnce() -> c_int) -> c_int {
    if fibers::thread_of_handle(handle).is_none() {
        return sys::ESRCH;
    }
    fibers::with_kernel_id(handle, ask)
}

shims! {
    /// No scheduling point. Gives an id that is the same in every execution; the main thread's is that of the process.
    fn gettid() -> c_int = pc { thread_id() }

    /// No scheduling point. All threads are one kernel thread, which answers for each of them.
    fn sched_getaffinity(id: c_int, size: usize, set: usize) -> c_int = pc {
        real!(sched_getaffinity, fn(kernel_id(id) => c_int, size => usize, set => usize) -> c_int)
    }

    /// No scheduling point. Set for the one kernel thread that runs all threads.
    fn sched_setaffinity(id: c_int, size: usize, set: usize) -> c_int = pc {
        real!(sched_setaffinity, fn(kernel_id(id) => c_int, size => usize, set => usize) -> c_int)
    }

    /// No scheduling point. All threads are one kernel thread, which answers for each of them.
    fn sched_getscheduler(id: c_int) -> c_int = pc { real!(sched_getscheduler, fn(kernel_id(id) => c_int) -> c_int) }

    /// No scheduling point. Set for the one kernel thread that runs all threads; the policy has no influence on
    /// schedules.
    fn sched_setscheduler(id: c_int, policy: c_int, parameters: usize) -> c_int = pc {
        real!(sched_setscheduler, fn(kernel_id(id) => c_int, policy => c_int, parameters => usize) -> c_int)
    }

    /// No scheduling point. All threads are one kernel thread, which answers for each of them.
    fn sched_getparam(id: c_int, parameters: usize) -> c_int = pc {
        real!(sched_getparam, fn(kernel_id(id) => c_int, parameters => usize) -> c_int)
    }

    /// No scheduling point. Set for the one kernel thread that runs all threads; priorities have no influence on
    /// schedules.
    fn sched_setparam(id: c_int, parameters: usize) -> c_int = pc {
        real!(sched_setparam, fn(kernel_id(id) => c_int, parameters => usize) -> c_int)
    }

    /// No scheduling point. All threads are one kernel thread, which answers for each of them.
    fn getpriority(which: c_int, id: c_int) -> c_int = pc {
        real!(getpriority, fn(which => c_int, kernel_id(id) => c_int) -> c_int)
    }

    /// No scheduling point. Set for the one kernel thread that runs all threads; priorities have no influence on
    /// schedules.
    fn setpriority(which: c_int, id: c_int, priority: c_int) -> c_int = pc {
        real!(setpriority, fn(which => c_int, kernel_id(id) => c_int, priority => c_int) -> c_int)
    }

    /// No scheduling point. The one kernel thread that runs all threads answers; `ESRCH` for what is no thread.
    fn pthread_getaffinity_np(handle: usize, size: usize, set: usize) -> c_int = pc {
        for_thread(handle, || {
            real!(pthread_getaffinity_np, fn(handle => usize, size => usize, set => usize) -> c_int)
        })
    }

    /// No scheduling point. Set for the one kernel thread that runs all threads; `ESRCH` for what is no thread.
    fn pthread_setaffinity_np(handle: usize, size: usize, set: usize) -> c_int = pc {
        for_thread(handle, || {
            real!(pthread_setaffinity_np, fn(handle => usize, size => usize, set => usize) -> c_int)
        })
    }

    /// No scheduling point. The one kernel thread that runs all threads answers; `ESRCH` for what is no thread.
    fn pthread_getschedparam(handle: usize, policy: usize, parameters: usize) -> c_int = pc {
        for_thread(handle, || {
            real!(pthread_getschedparam, fn(handle => usize, policy => usize, parameters => usize) -> c_int)
        })
    }

    /// No scheduling point. Set for the one kernel thread that runs all threads, without influence on schedules;
    /// `ESRCH` for what is no thread.
    fn pthread_setschedparam(handle: usize, policy: c_int, parameters: usize) -> c_int = pc {
        for_thread(handle, || {
            real!(pthread_setschedparam, fn(handle => usize, policy => c_int, parameters => usize) -> c_int)
        })
    }

    /// No scheduling point. Set for the one kernel thread that runs all threads, without influence on schedules;
    /// `ESRCH` for what is no thread.
    fn pthread_setschedprio(handle: usize, priority: c_int) -> c_int = pc {
        for_thread(handle, || real!(pthread_setschedprio, fn(handle => usize, priority => c_int) -> c_int))
    }

    /// No scheduling point. The clock is that of the one kernel thread that runs all threads; `ESRCH` for what is
    /// no thread.
    fn pthread_getcpuclockid(handle: usize, clock: usize) -> c_int = pc {
        for_thread(handle, || real!(pthread_getcpuclockid, fn(handle => usize, clock => usize) -> c_int))
    }
}
