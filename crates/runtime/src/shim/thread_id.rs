//! Attributes of threads in the kernel, and other system calls with special answers. All fibers run on one
//! kernel thread, which answers for each of them. During such a call the kernel thread's id replaces the id
//! that the program knows: in the thread's control block, where glibc reads it, and in the arguments of system
//! calls (see `pid`).

use super::pid::number_of_thread;
use super::settime::Timex;
use super::signal::{own_pid, send};
use super::{cpu, entropy, others, pid, process, settime, shims, time};
use crate::carrier::fibers;
use crate::lifecycle::refused_calls;
use crate::platform::glibc::real;
use crate::platform::sys;
use crate::sched::SCHED;
use crate::sched::clock;
use crate::sched::clock::Timespec;
use crate::sched::handles;
use core::ffi::c_int;

/// A system call of the program, with ids translated, virtual time, seeded random bytes and the processors of
/// `--cpus`. Calls that would change the machine are refused.
pub fn call(number: usize, args: [usize; 6], pc: usize) -> isize {
    if pid::known()
        && let Some(result) = change(number, args, pc)
    {
        return result;
    }
    if SCHED.active.get() {
        if let Some(result) = signal(number, args, pc).or_else(|| of_time(number, args, pc)) {
            return result;
        }
        match number {
            sys::SYS_EXIT_GROUP => process::exiting(args[0] as c_int, pc),
            sys::SYS_GETCPU => {
                cpu::get_cpu(args[0] as *mut u32, args[1] as *mut u32);
                return 0;
            }
            sys::SYS_SCHED_GETAFFINITY | sys::SYS_SCHED_SETAFFINITY => {
                let thread = number_of_thread(args[0] as c_int);
                let set = number == sys::SYS_SCHED_SETAFFINITY;
                let ask = if set { cpu::set_affinity } else { cpu::get_affinity };
                if let Some(result) = thread.and_then(|thread| ask(thread, args[1], args[2])) {
                    return result;
                }
            }
            _ => {}
        }
    }
    match number {
        sys::SYS_GETRANDOM => entropy::get(args),
        _ => pid::call(number, args, pc).unwrap_or_else(|| sys::call(number, args)),
    }
}

/// A system call that sends a signal to the program or to one of its threads; `None` if it is another call.
fn signal(number: usize, [a, b, c, ..]: [usize; 6], pc: usize) -> Option<isize> {
    let error = match number {
        sys::SYS_TKILL => send::send_to_id(a as c_int, b as c_int, pc),
        sys::SYS_TGKILL if a as c_int == own_pid() => send::send_to_id(b as c_int, c as c_int, pc),
        _ => None,
    };
    error.map(|error| -(error as isize))
}

/// A system call that changes the machine, its clock or other processes; `None` if the kernel is to make it
/// unchanged.
fn change(number: usize, args: [usize; 6], pc: usize) -> Option<isize> {
    let [a, b, ..] = args;
    let error = match number {
        sys::SYS_KILL => send::send_to_any(a as c_int, b as c_int, pc),
        sys::SYS_CLOCK_SETTIME => settime::set_clock(a as c_int, b as *const Timespec),
        sys::SYS_SETTIMEOFDAY => settime::set_time_of_day(a as *const [i64; 2], b),
        sys::SYS_ADJTIMEX => return Some(settime::adjust(a as *mut Timex)),
        sys::SYS_CLOCK_ADJTIME => return Some(settime::adjust_clock(a as c_int, b as *mut Timex)),
        sys::SYS_PIDFD_SEND_SIGNAL => others::refuse_call(number, args)?,
        _ => refused_calls::refuse(number, args)?,
    };
    Some(-(error as isize))
}

/// A system call that reads a virtual clock or waits on one.
fn of_time(number: usize, [a, b, c, d, ..]: [usize; 6], pc: usize) -> Option<isize> {
    let error = match number {
        sys::SYS_CLOCK_GETTIME if time::modelled(a as c_int) => {
            time::give(b as *mut Timespec, clock::look(a as c_int), pc);
            0
        }
        sys::SYS_GETTIMEOFDAY => time::time_of_day(a as *mut Timespec, b as *mut [i32; 2], pc),
        sys::SYS_TIME => return Some(time::seconds(a as *mut i64, pc) as isize),
        sys::SYS_NANOSLEEP => time::sleep_for(a as *const Timespec, b as *mut Timespec, pc),
        sys::SYS_CLOCK_NANOSLEEP => {
            time::sleep_on(a as c_int, b as c_int, c as *const Timespec, d as *mut Timespec, pc)
        }
        _ => return None,
    };
    Some(-(error as isize))
}

/// Calls `ask` for a thread, with the kernel thread's id in its control block.
fn for_thread(handle: usize, ask: impl FnOnce() -> c_int) -> c_int {
    if handles::thread_of_handle(handle).is_none() {
        return sys::ESRCH;
    }
    fibers::with_kernel_id(handle, ask)
}

shims! {
    /// Returns the processors that the thread may use: with `--cpus`, those. Not a scheduling point.
    fn pthread_getaffinity_np(handle: usize, size: usize, set: usize) -> c_int = pc {
        if let Some(error) =
            handles::thread_of_handle(handle).and_then(|number| cpu::get_affinity_set(number, size, set))
        {
            return error;
        }
        for_thread(handle, || {
            real!(pthread_getaffinity_np, fn(handle => usize, size => usize, set => usize) -> c_int)
        })
    }

    /// Sets the processors that the thread may use: with `--cpus`, some of those. Not a scheduling point.
    fn pthread_setaffinity_np(handle: usize, size: usize, set: usize) -> c_int = pc {
        if let Some(result) =
            handles::thread_of_handle(handle).and_then(|number| cpu::set_affinity(number, size, set))
        {
            return -result as c_int;
        }
        for_thread(handle, || {
            real!(pthread_setaffinity_np, fn(handle => usize, size => usize, set => usize) -> c_int)
        })
    }

    /// Returns the parameters of the kernel thread that runs all threads; an invalid handle gives `ESRCH`. Not
    /// a scheduling point.
    fn pthread_getschedparam(handle: usize, policy: usize, parameters: usize) -> c_int = pc {
        for_thread(handle, || {
            real!(pthread_getschedparam, fn(handle => usize, policy => usize, parameters => usize) -> c_int)
        })
    }

    /// Sets the parameters of the kernel thread that runs all threads, which does not influence schedules. An
    /// invalid handle gives `ESRCH`. Not a scheduling point.
    fn pthread_setschedparam(handle: usize, policy: c_int, parameters: usize) -> c_int = pc {
        for_thread(handle, || {
            real!(pthread_setschedparam, fn(handle => usize, policy => c_int, parameters => usize) -> c_int)
        })
    }

    /// Sets the priority of the kernel thread that runs all threads, which does not influence schedules. An
    /// invalid handle gives `ESRCH`. Not a scheduling point.
    fn pthread_setschedprio(handle: usize, priority: c_int) -> c_int = pc {
        for_thread(handle, || real!(pthread_setschedprio, fn(handle => usize, priority => c_int) -> c_int))
    }

    /// Returns the clock of the kernel thread that runs all threads; an invalid handle gives `ESRCH`. Not a
    /// scheduling point.
    fn pthread_getcpuclockid(handle: usize, clock: usize) -> c_int = pc {
        for_thread(handle, || real!(pthread_getcpuclockid, fn(handle => usize, clock => usize) -> c_int))
    }
}
