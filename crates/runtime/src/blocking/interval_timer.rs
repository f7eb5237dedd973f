//! Timers that are armed, expire and are armed again: the common part of `timer_create` and `timerfd_create`.

use crate::sched;
use crate::sched::clock;
use crate::sched::clock::Timespec;
use core::cell::Cell;

/// `struct itimerspec`; also `struct itimerval`, whose second words are microseconds.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    pub interval: Timespec,
    pub value: Timespec,
}

impl Setting {
    /// From the remaining time of a timer and its interval, both in nanoseconds.
    pub fn of((left, interval): (u64, u64)) -> Setting {
        Setting { interval: Timespec::of(interval), value: Timespec::of(left) }
    }

    /// The value and the interval in nanoseconds, if both are valid.
    pub fn nanos(&self) -> Option<(u64, u64)> {
        self.value.nanos_not_negative().zip(self.interval.nanos_not_negative())
    }
}

/// The deadline of a timer set to `value` nanoseconds: a time on that clock, or a duration from now. With 0 it
/// never expires.
pub fn deadline_of(clock: i32, value: u64, absolute: bool) -> u64 {
    match value {
        0 => u64::MAX,
        _ if absolute => clock::deadline_at(clock, value),
        _ => clock::deadline_in(value),
    }
}

/// When a timer expires. All zeros is a timer that is not armed.
#[derive(Debug)]
pub struct IntervalTimer {
    /// The time at which it expires next, plus 1; 0 if it is not armed.
    due: Cell<u64>,
    /// Nanoseconds until it expires again; 0 if it expires once.
    interval: Cell<u64>,
}

impl IntervalTimer {
    pub const fn new() -> IntervalTimer {
        IntervalTimer { due: Cell::new(0), interval: Cell::new(0) }
    }

    /// The time at which it expires next; `u64::MAX` if it is not armed.
    pub fn deadline(&self) -> u64 {
        self.due.get().wrapping_sub(1)
    }

    pub fn interval(&self) -> u64 {
        self.interval.get()
    }

    pub fn is_armed(&self) -> bool {
        self.due.get() != 0
    }

    /// Arms it, or disarms it with a deadline of `u64::MAX`. While a timer is armed, each step checks it.
    pub fn set(&self, deadline: u64, interval: u64) {
        let armed = self.is_armed();
        self.due.set(deadline.wrapping_add(1));
        self.interval.set(interval);
        match (armed, self.is_armed()) {
            (false, true) => sched::add_errand(),
            (true, false) => sched::remove_errand(),
            _ => {}
        }
    }

    /// The remaining time and the interval.
    pub fn left(&self) -> (u64, u64) {
        // An expired timer that was not noticed yet has 1 nanosecond left.
        let left = if self.is_armed() { clock::until(self.deadline()).max(1) } else { 0 };
        (left, self.interval.get())
    }

    /// For an armed timer that has expired by `now`: how many further expiries time has jumped over, and when
    /// it expires next.
    pub fn expire(&self, now: u64) -> (u64, u64) {
        let (deadline, interval) = (self.deadline(), self.interval.get());
        let missed = now.saturating_sub(deadline).checked_div(interval).unwrap_or(0);
        let next = match interval {
            0 => u64::MAX,
            _ => deadline.saturating_add((missed + 1).saturating_mul(interval)).min(u64::MAX - 1),
        };
        (missed, next)
    }
}
