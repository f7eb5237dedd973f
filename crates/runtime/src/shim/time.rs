//! Time: yielding, sleeping and looking at the clock. A sleep is a wait for nothing with a deadline: by default the
//! others go first, and when all wait, time jumps to the earliest deadline.

use super::{cancel, shims};
use crate::platform::glibc::real;
use crate::platform::registers::caller;
use crate::platform::{glibc, sys};
use crate::sched::clock;
use crate::sched::clock::Timespec;
use crate::sched::events;
use crate::sched::recurrence;
use crate::sched::{self, S, Woken};
use crate::shim::signal::{self, Delivered};
use crate::wire_log;
use core::ffi::c_int;
use heisen_trace::{Note, Op};

const TIMER_ABSTIME: c_int = 1;
const CLOCK_REALTIME: c_int = 0;
/// Clocks of processor time, which are not modelled.
const CLOCK_PROCESS_CPUTIME_ID: c_int = 2;
const CLOCK_THREAD_CPUTIME_ID: c_int = 3;
/// Clocks that can be looked at but not slept on.
const CLOCK_MONOTONIC_RAW: c_int = 4;
const CLOCK_REALTIME_COARSE: c_int = 5;
const CLOCK_MONOTONIC_COARSE: c_int = 6;
/// A number that stands for no clock any more.
const CLOCK_SGI_CYCLE: c_int = 10;
const ENOTSUP: c_int = 95;
const TIME_UTC: c_int = 1;

/// Whether virtual time is what the clock shows.
pub fn modelled(clock: c_int) -> bool {
    (0..=11).contains(&clock)
        && !matches!(clock, CLOCK_PROCESS_CPUTIME_ID | CLOCK_THREAD_CPUTIME_ID | CLOCK_SGI_CYCLE)
}

/// Sleeps; EINTR if a handler of a signal has run.
fn sleep_until(deadline: u64, pc: usize) -> c_int {
    let woken = loop {
        let woken = cancel::waiting_point(|| sched::wait_for_signal(Op::Sleep, pc, deadline));
        if woken != Woken::Interrupted || signal::deliver() != Delivered::Nothing {
            break woken;
        }
    };
    events::event(Op::Sleep, 0, pc);
    if woken == Woken::Interrupted {
        events::failed();
        return sys::EINTR;
    }
    0
}

/// Sleeps, and tells what remains if a handler ends it; an error number then, or if the time is not valid.
pub fn sleep_for(time: *const Timespec, remaining: *mut Timespec, pc: usize) -> c_int {
    // SAFETY: the program passes a time.
    let Some(nanos) = (unsafe { (*time).nanos_not_negative() }) else { return sys::EINVAL };
    let deadline = clock::deadline_in(nanos);
    let error = sleep_until(deadline, pc);
    if error == sys::EINTR && !remaining.is_null() {
        // SAFETY: the program passes room for a time, or null.
        unsafe { *remaining = Timespec::of(clock::until(deadline)) };
    }
    error
}

/// `clock_nanosleep`; an error number.
pub fn sleep_on(
    clock: c_int,
    flags: c_int,
    time: *const Timespec,
    remaining: *mut Timespec,
    pc: usize,
) -> c_int {
    if !modelled(clock) {
        return sys::EINVAL;
    }
    if matches!(clock, CLOCK_MONOTONIC_RAW | CLOCK_REALTIME_COARSE | CLOCK_MONOTONIC_COARSE) {
        return ENOTSUP;
    }
    if flags & TIMER_ABSTIME == 0 {
        return sleep_for(time, remaining, pc);
    }
    // SAFETY: the program passes a time.
    let Some(nanos) = (unsafe { (*time).nanos_not_negative() }) else { return sys::EINVAL };
    sleep_until(clock::deadline_at(clock, nanos), pc)
}

/// `gettimeofday`.
pub fn time_of_day(out: *mut Timespec, zone: *mut [i32; 2]) -> c_int {
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

/// `time`.
pub fn seconds(out: *mut i64) -> i64 {
    let seconds = clock::look(CLOCK_REALTIME).seconds;
    if !out.is_null() {
        // SAFETY: the program passes room for a time, or null.
        unsafe { *out = seconds };
    }
    seconds
}

/// As `sched_yield`.
///
/// # Safety
/// As glibc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_yield() -> c_int {
    // glibc keeps this name for old programs only, and `dlsym` does not find it.
    if S.active.get() {
        sched::yield_point(Op::Yield, caller!());
        return 0;
    }
    real!(sched_yield, fn() -> c_int)
}

shims! {
    /// A scheduling point at which, by default, another thread goes on; the caller does not run again before those that
    /// could have run since its last yield.
    fn sched_yield() -> c_int = pc { sched::yield_point(Op::Yield, pc); 0 }

    /// Waits for nothing until the time has come on the virtual clock; by default all others go first, and when all
    /// wait time jumps.
    fn sleep(seconds: u32) -> u32 = pc {
        let deadline = clock::deadline_in(seconds as u64 * 1_000_000_000);
        if sleep_until(deadline, pc) == 0 { 0 } else { (clock::until(deadline) / 1_000_000_000) as u32 }
    }

    /// As `sleep`, in microseconds.
    fn usleep(micros: u32) -> c_int = pc {
        glibc::result(sleep_until(clock::deadline_in(micros as u64 * 1_000), pc))
    }

    /// As `sleep`, in nanoseconds. A time that is none fails with `EINVAL`.
    fn nanosleep(time: *const Timespec, remaining: *mut Timespec) -> c_int = pc {
        glibc::result(sleep_for(time, remaining, pc))
    }

    /// As `nanosleep`, on any virtual clock and also until a moment. Clocks of processor time and a time that is
    /// none give `EINVAL`.
    fn clock_nanosleep(clock: c_int, flags: c_int, time: *const Timespec, remaining: *mut Timespec) -> c_int = pc {
        sleep_on(clock, flags, time, remaining, pc)
    }

    /// Not a scheduling point. Reads the virtual clock, which moves a little with each look and each step; clocks of
    /// processor time are real.
    fn clock_gettime(clock: c_int, out: *mut Timespec) -> c_int = pc {
        if !modelled(clock) {
            let result = glibc::real!(clock_gettime, fn(clock => c_int, out => *mut Timespec) -> c_int);
            if result == 0 {
                wire_log::note(Note::CpuClock);
                recurrence::consulted();
            }
            return result;
        }
        // SAFETY: the program passes room for a time.
        unsafe { *out = clock::look(clock) };
        0
    }

    /// Not a scheduling point. Reads the virtual clock.
    fn gettimeofday(out: *mut Timespec, zone: *mut [i32; 2]) -> c_int = pc { time_of_day(out, zone) }

    /// Not a scheduling point. Reads the virtual clock.
    fn timespec_get(out: *mut Timespec, base: c_int) -> c_int = pc {
        if base != TIME_UTC {
            return glibc::real!(timespec_get, fn(out => *mut Timespec, base => c_int) -> c_int);
        }
        // SAFETY: the program passes room for a time.
        unsafe { *out = clock::look(CLOCK_REALTIME) };
        base
    }

    /// Not a scheduling point. Reads the virtual clock.
    fn time(out: *mut i64) -> i64 = pc { seconds(out) }
}
