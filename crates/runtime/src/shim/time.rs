//! Time: yielding, sleeping and reading the clock. A sleep is a wait that only its deadline ends. By default
//! other threads run first; when all threads wait, time jumps to the earliest deadline.

use super::{cancel, shims};
use crate::memory::symbolic;
use crate::platform::glibc::real;
use crate::platform::registers::caller;
use crate::platform::{glibc, sys};
use crate::sched::clock;
use crate::sched::clock::Timespec;
use crate::sched::events;
use crate::sched::recurrence;
use crate::sched::{self, SCHED, Woken};
use crate::shim::signal::{self, Delivered};
use crate::wire_log;
use core::ffi::c_int;
use heisen_trace::{Note, Op};

const TIMER_ABSTIME: c_int = 1;
const CLOCK_REALTIME: c_int = 0;
/// Clocks of processor time, which are not modelled.
const CLOCK_PROCESS_CPUTIME_ID: c_int = 2;
const CLOCK_THREAD_CPUTIME_ID: c_int = 3;
/// Clocks that can be read but on which no thread can sleep.
const CLOCK_MONOTONIC_RAW: c_int = 4;
const CLOCK_REALTIME_COARSE: c_int = 5;
const CLOCK_MONOTONIC_COARSE: c_int = 6;
/// A former clock, whose number is invalid now.
const CLOCK_SGI_CYCLE: c_int = 10;
const ENOTSUP: c_int = 95;
const TIME_UTC: c_int = 1;

/// Whether the clock shows virtual time.
pub fn modelled(clock: c_int) -> bool {
    (0..=11).contains(&clock)
        && !matches!(clock, CLOCK_PROCESS_CPUTIME_ID | CLOCK_THREAD_CPUTIME_ID | CLOCK_SGI_CYCLE)
}

/// Sleeps; returns EINTR if a signal handler has run.
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

/// Sleeps; returns an error number. If a signal handler ends the sleep, writes the remaining time.
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

/// `clock_nanosleep`; returns an error number.
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

/// Gives a time to the program.
pub fn give(out: *mut Timespec, time: Timespec, pc: usize) {
    // SAFETY: the program passes room for a time.
    unsafe { *out = time };
    symbolic::wrote_words(out as usize, 2, pc);
}

/// `gettimeofday`.
pub fn time_of_day(out: *mut Timespec, zone: *mut [i32; 2], pc: usize) -> c_int {
    let now = clock::look(CLOCK_REALTIME);
    if !out.is_null() {
        give(out, Timespec { seconds: now.seconds, nanoseconds: now.nanoseconds / 1_000 }, pc);
    }
    if !zone.is_null() {
        // SAFETY: the program passes room for a `struct timezone`.
        unsafe { *zone = [0, 0] };
        symbolic::wrote_words(zone as usize, 1, pc);
    }
    0
}

/// `time`.
pub fn seconds(out: *mut i64, pc: usize) -> i64 {
    let seconds = clock::look(CLOCK_REALTIME).seconds;
    if !out.is_null() {
        // SAFETY: the program passes room for a time, or null.
        unsafe { *out = seconds };
        symbolic::wrote_words(out as usize, 1, pc);
    }
    seconds
}

/// As `sched_yield`.
///
/// # Safety
/// As glibc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_yield() -> c_int {
    // glibc has this name for old programs only, and `dlsym` does not find it.
    if SCHED.active.get() {
        sched::yield_point(Op::Yield, caller!());
        return 0;
    }
    real!(sched_yield, fn() -> c_int)
}

shims! {
    /// A scheduling point at which, by default, another thread runs. The caller does not run again before the
    /// threads that were enabled since its last yield.
    fn sched_yield() -> c_int = pc { sched::yield_point(Op::Yield, pc); 0 }

    /// Waits until the virtual clock reaches the deadline. By default all other threads run first; when all
    /// threads wait, time jumps.
    fn sleep(seconds: u32) -> u32 = pc {
        let deadline = clock::deadline_in(seconds as u64 * 1_000_000_000);
        if sleep_until(deadline, pc) == 0 { 0 } else { (clock::until(deadline) / 1_000_000_000) as u32 }
    }

    /// As `sleep`, in microseconds.
    fn usleep(micros: u32) -> c_int = pc {
        glibc::result(sleep_until(clock::deadline_in(micros as u64 * 1_000), pc))
    }

    /// As `sleep`, in nanoseconds. An invalid time fails with `EINVAL`.
    fn nanosleep(time: *const Timespec, remaining: *mut Timespec) -> c_int = pc {
        glibc::result(sleep_for(time, remaining, pc))
    }

    /// As `nanosleep`, on any virtual clock, for a duration or until a point in time. Clocks of processor time
    /// and an invalid time give `EINVAL`.
    fn clock_nanosleep(clock: c_int, flags: c_int, time: *const Timespec, remaining: *mut Timespec) -> c_int = pc {
        sleep_on(clock, flags, time, remaining, pc)
    }

    /// Reads the virtual clock, which moves a little with each call and each step. Clocks of processor time are
    /// real, which is noted. Not a scheduling point.
    fn clock_gettime(clock: c_int, out: *mut Timespec) -> c_int = pc {
        if !modelled(clock) {
            let result = glibc::real!(clock_gettime, fn(clock => c_int, out => *mut Timespec) -> c_int);
            if result == 0 {
                wire_log::note(Note::CpuClock);
                recurrence::consulted();
            }
            return result;
        }
        give(out, clock::look(clock), pc);
        0
    }

    /// Reads the virtual clock. Not a scheduling point.
    fn gettimeofday(out: *mut Timespec, zone: *mut [i32; 2]) -> c_int = pc { time_of_day(out, zone, pc) }

    /// Reads the virtual clock. Not a scheduling point.
    fn timespec_get(out: *mut Timespec, base: c_int) -> c_int = pc {
        if base != TIME_UTC {
            return glibc::real!(timespec_get, fn(out => *mut Timespec, base => c_int) -> c_int);
        }
        give(out, clock::look(CLOCK_REALTIME), pc);
        base
    }

    /// Reads the virtual clock. Not a scheduling point.
    fn time(out: *mut i64) -> i64 = pc { seconds(out, pc) }
}
