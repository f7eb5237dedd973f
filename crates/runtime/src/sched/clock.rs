//! Virtual time: a clock that is the same in every run of a schedule. It starts at the same moment in every
//! execution and advances a little with every step and every read of a clock. It jumps to a deadline when a
//! wait times out. So a sleep costs nothing, and a program computes the same values from the time in each run
//! of a schedule.
//!
//! With `--real-time` clocks show the real time instead, and deadlines are those of the real monotonic clock.

use crate::platform::baton::Guarded;
use crate::sched::{self, SCHED};
use crate::sched::{dependence, recurrence};
use core::cell::Cell;

/// Nanoseconds of one step.
const STEP: u64 = 1_000;
/// Nanoseconds of one read of a clock. So a loop that waits for time to pass ends.
const LOOK: u64 = 100;
/// Nanoseconds of a yield.
const YIELD: u64 = 1_000_000;
/// The monotonic clock at the start of an execution.
const START: u64 = 1_000_000_000_000;
/// The distance from the monotonic to the real-time clock: executions begin on 2026-01-01.
const REALTIME: u64 = 1_767_225_600_000_000_000 - START;

const CLOCK_REALTIME: i32 = 0;
const CLOCK_MONOTONIC: i32 = 1;
const CLOCK_REALTIME_COARSE: i32 = 5;
const CLOCK_REALTIME_ALARM: i32 = 8;
const CLOCK_TAI: i32 = 11;

struct Clock {
    /// The time in addition to that of the steps.
    extra: Cell<u64>,
    /// How far the program has moved the real-time clock forward; negative if backward.
    shift: Cell<i64>,
    /// Whether time is real.
    real: Cell<bool>,
}

static CLOCK: Guarded<Clock> =
    Guarded::new(Clock { extra: Cell::new(0), shift: Cell::new(0), real: Cell::new(false) });

/// Sets whether time is real.
pub fn init(real: bool) {
    CLOCK.real.set(real);
}

/// Whether time is real.
#[inline]
pub fn is_real() -> bool {
    CLOCK.real.get()
}

/// `struct timespec`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Timespec {
    pub seconds: i64,
    pub nanoseconds: i64,
}

impl Timespec {
    /// The time in nanoseconds, or `None` if it is not valid.
    pub fn nanos(&self) -> Option<u64> {
        if !(0..1_000_000_000).contains(&self.nanoseconds) {
            return None;
        }
        let seconds = self.seconds.max(0) as u64;
        let nanos = if self.seconds < 0 { 0 } else { self.nanoseconds as u64 };
        Some(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
    }

    /// The time of this many nanoseconds.
    pub fn of(nanos: u64) -> Timespec {
        Timespec { seconds: (nanos / 1_000_000_000) as i64, nanoseconds: (nanos % 1_000_000_000) as i64 }
    }

    /// As [`Timespec::nanos`], for calls that refuse negative times.
    pub fn nanos_not_negative(&self) -> Option<u64> {
        if self.seconds < 0 { None } else { self.nanos() }
    }
}

/// Whether the waits of the threading library accept times on this clock.
pub fn can_wait(clock: i32) -> bool {
    matches!(clock, CLOCK_REALTIME | CLOCK_MONOTONIC)
}

/// Whether the clock shows the time of day, which can be set.
fn is_wall(clock: i32) -> bool {
    matches!(clock, CLOCK_REALTIME | CLOCK_REALTIME_COARSE | CLOCK_REALTIME_ALARM | CLOCK_TAI)
}

/// The distance from the monotonic clock to a virtual clock, which is never negative.
fn offset(clock: i32) -> u64 {
    if is_wall(clock) { REALTIME.wrapping_add_signed(CLOCK.shift.get()) } else { 0 }
}

/// The time of the kernel's clock, plus the amount by which the program has moved it.
fn real(clock: i32) -> Timespec {
    let mut time = Timespec { seconds: 0, nanoseconds: 0 };
    crate::platform::glibc::real!(clock_gettime, fn(clock => i32, &raw mut time => *mut Timespec) -> i32);
    match time.nanos() {
        Some(nanos) if is_wall(clock) && CLOCK.shift.get() != 0 => {
            Timespec::of(nanos.saturating_add_signed(CLOCK.shift.get()))
        }
        _ => time,
    }
}

/// The time of the real-time clock in nanoseconds. It does not count as a read of the clock.
pub fn wall() -> u64 {
    if is_real() { real(CLOCK_REALTIME).nanos().unwrap_or(0) } else { now() + offset(CLOCK_REALTIME) }
}

/// Sets the real-time clock of this execution. As in Linux it cannot be set to before the monotonic clock:
/// false then.
pub fn set_wall(nanos: u64) -> bool {
    /// The limit of Linux, which leaves room for thirty years after the time that is set.
    const LAST: u64 = 8_277_292_036 * 1_000_000_000;
    if nanos < now() || nanos >= LAST {
        return false;
    }
    dependence::time(true);
    CLOCK.shift.set(CLOCK.shift.get() + (nanos as i64 - wall() as i64));
    true
}

/// Nanoseconds on the monotonic clock.
pub fn now() -> u64 {
    if is_real() {
        return real(CLOCK_MONOTONIC).nanos().unwrap_or(0);
    }
    START + SCHED.step.get() as u64 * STEP + CLOCK.extra.get()
}

/// The time of the given clock. Reading it takes time.
pub fn look(clock: i32) -> Timespec {
    if is_real() {
        return real(clock);
    }
    dependence::time(false);
    recurrence::consulted();
    CLOCK.extra.set(CLOCK.extra.get() + LOOK);
    Timespec::of(now() + offset(clock))
}

/// The time until `deadline`; 0 if it has passed.
pub fn until(deadline: u64) -> u64 {
    deadline.saturating_sub(now())
}

/// The deadline of a wait that lasts `nanos`.
pub fn deadline_in(nanos: u64) -> u64 {
    now().saturating_add(nanos).min(u64::MAX - 1)
}

/// The deadline of a wait until `nanos` on the given clock.
pub fn deadline_at(clock: i32, nanos: u64) -> u64 {
    if is_real() && is_wall(clock) {
        let left = nanos.saturating_sub(real(clock).nanos().unwrap_or(0));
        return deadline_in(left);
    }
    nanos.saturating_sub(offset(clock)).min(u64::MAX - 1)
}

/// Advances time to `deadline`, if that has not come yet.
pub fn reach(deadline: u64) {
    if is_real() {
        return;
    }
    let now = now();
    if deadline > now && deadline != u64::MAX {
        dependence::time(true);
        CLOCK.extra.set(CLOCK.extra.get().saturating_add(deadline - now));
        sched::time_passed();
    }
}

/// A thread yields: it waits for others, which takes time. So a thread that waits in a loop for a sleeping
/// thread sees it wake up.
pub fn yielded() {
    CLOCK.extra.set(CLOCK.extra.get() + YIELD);
    sched::time_passed();
}
