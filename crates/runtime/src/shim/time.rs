//! Yielding, sleeping and looking at the clock. A sleep is a wait for nothing with a deadline: by default the others
//! go first, and when all wait, time jumps to the earliest deadline.

use super::{caller, shims};
use crate::clock::{self, Timespec};
use crate::glibc::real;
use crate::sched::{self, S};
use crate::{glibc, report, sys};
use core::ffi::c_int;
use heisen_trace::Op;

const TIMER_ABSTIME: c_int = 1;
const CLOCK_REALTIME: c_int = 0;
/// Clocks of processor time, which are not modelled.
const CLOCK_PROCESS_CPUTIME_ID: c_int = 2;
const CLOCK_THREAD_CPUTIME_ID: c_int = 3;
/// A clock that can be looked at but not slept on.
const CLOCK_MONOTONIC_RAW: c_int = 4;
const TIME_UTC: c_int = 1;

/// Whether virtual time is what the clock shows.
fn modelled(clock: c_int) -> bool {
    (0..=11).contains(&clock) && !matches!(clock, CLOCK_PROCESS_CPUTIME_ID | CLOCK_THREAD_CPUTIME_ID)
}

fn sleep_until(deadline: u64, pc: usize) {
    sched::wait_in_queue(Op::Sleep, 0, sched::ANY, pc, deadline);
    report::event(Op::Sleep, 0, pc);
}

/// Sleeps; an error number if the time is not valid.
fn sleep_for(time: *const Timespec, pc: usize) -> c_int {
    // SAFETY: the program passes a time.
    let Some(nanos) = (unsafe { (*time).nanos_not_negative() }) else { return sys::EINVAL };
    sleep_until(clock::deadline_in(nanos), pc);
    0
}

/// `pthread_yield`, which glibc keeps for old programs only and `dlsym` does not find.
///
/// # Safety
/// As glibc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_yield() -> c_int {
    if S.active.get() {
        sched::yield_point(Op::Yield, caller!());
        return 0;
    }
    real!(sched_yield, fn() -> c_int)
}

shims! {
    /// `sched_yield`.
    fn sched_yield() -> c_int = pc { sched::yield_point(Op::Yield, pc); 0 }

    /// `sleep`.
    fn sleep(seconds: u32) -> u32 = pc { sleep_until(clock::deadline_in(seconds as u64 * 1_000_000_000), pc); 0 }

    /// `usleep`.
    fn usleep(micros: u32) -> c_int = pc { sleep_until(clock::deadline_in(micros as u64 * 1_000), pc); 0 }

    /// `nanosleep`.
    fn nanosleep(time: *const Timespec, remaining: *mut Timespec) -> c_int = pc {
        // What remains is told only if a signal ends the sleep; often it is the very place of `time`.
        let _ = remaining;
        glibc::result(sleep_for(time, pc))
    }

    /// `clock_nanosleep`.
    fn clock_nanosleep(clock: c_int, flags: c_int, time: *const Timespec, remaining: *mut Timespec) -> c_int = pc {
        let _ = remaining;
        if !modelled(clock) || clock == CLOCK_MONOTONIC_RAW {
            return sys::EINVAL;
        }
        if flags & TIMER_ABSTIME == 0 {
            return sleep_for(time, pc);
        }
        // SAFETY: the program passes a time.
        let Some(nanos) = (unsafe { (*time).nanos_not_negative() }) else { return sys::EINVAL };
        sleep_until(clock::deadline_at(clock, nanos), pc);
        0
    }

    /// `clock_gettime`.
    fn clock_gettime(clock: c_int, out: *mut Timespec) -> c_int = pc {
        if !modelled(clock) {
            return glibc::real!(clock_gettime, fn(clock => c_int, out => *mut Timespec) -> c_int);
        }
        // SAFETY: the program passes room for a time.
        unsafe { *out = clock::look(clock) };
        0
    }

    /// `gettimeofday`.
    fn gettimeofday(out: *mut Timespec, zone: *mut [i32; 2]) -> c_int = pc {
        let now = clock::look(CLOCK_REALTIME);
        // SAFETY: the program passes room for a `struct timeval` and a `struct timezone`, or null.
        unsafe {
            if !out.is_null() {
                *out = Timespec { seconds: now.seconds, nanoseconds: now.nanoseconds / 1_000 };
            }
            if !zone.is_null() {
                *zone = [0, 0];
            }
        }
        0
    }

    /// `timespec_get`.
    fn timespec_get(out: *mut Timespec, base: c_int) -> c_int = pc {
        if base != TIME_UTC {
            return glibc::real!(timespec_get, fn(out => *mut Timespec, base => c_int) -> c_int);
        }
        // SAFETY: the program passes room for a time.
        unsafe { *out = clock::look(CLOCK_REALTIME) };
        base
    }

    /// `time`.
    fn time(out: *mut i64) -> i64 = pc {
        let seconds = clock::look(CLOCK_REALTIME).seconds;
        if !out.is_null() {
            // SAFETY: the program passes room for a time, or null.
            unsafe { *out = seconds };
        }
        seconds
    }
}
