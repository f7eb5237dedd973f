//! Timers on virtual time that are read from a descriptor. The kernel's own timers would follow real time. To
//! `read`, `poll` and `epoll` an `eventfd` looks the same: a count of eight bytes, ready when it is not 0. Each
//! timer is therefore an `eventfd`, and the runtime adds to its count when virtual time passes its deadline.

use super::interval_timer::IntervalTimer;
use crate::platform::baton::Guarded;
use crate::platform::sys;
use crate::platform::sys::Piece;
use core::cell::Cell;

/// The largest number of timers.
const MAX: usize = 256;

/// One timer.
#[derive(Debug)]
pub struct TimerDescriptor {
    /// Its descriptor plus 1; 0 if the entry is unused.
    fd: Cell<i32>,
    clock: Cell<i32>,
    time: IntervalTimer,
}

struct Timers {
    all: [TimerDescriptor; MAX],
    /// The earliest time at which a timer fires.
    next: Cell<u64>,
}

static TIMERS: Guarded<Timers> = Guarded::new(Timers {
    all: [const { TimerDescriptor { fd: Cell::new(0), clock: Cell::new(0), time: IntervalTimer::new() } };
        MAX],
    next: Cell::new(u64::MAX),
});

/// An entry that is not in use.
pub fn unused() -> Option<&'static TimerDescriptor> {
    TIMERS.all.iter().find(|timer| timer.fd.get() == 0)
}

/// The timer of a descriptor.
pub fn find(fd: i32) -> Option<&'static TimerDescriptor> {
    TIMERS.all.iter().find(|timer| timer.fd.get() == fd + 1)
}

/// The time at which the next timer fires.
pub fn next() -> Option<u64> {
    let next = TIMERS.next.get();
    (next != u64::MAX).then_some(next)
}

impl TimerDescriptor {
    /// The entry is in use from now on.
    pub fn open(&self, fd: i32, clock: i32) {
        self.fd.set(fd + 1);
        self.clock.set(clock);
        self.time.set(u64::MAX, 0);
    }

    /// The clock to which its times refer.
    pub fn clock(&self) -> i32 {
        self.clock.get()
    }

    /// When it fires.
    pub fn time(&self) -> &IntervalTimer {
        &self.time
    }

    /// Sets when it fires, and updates when the next timer fires.
    pub fn arm(&self, deadline: u64, interval: u64) {
        self.time.set(deadline, interval);
        let next = TIMERS.all.iter().map(|timer| timer.time.deadline()).min();
        TIMERS.next.set(next.unwrap_or(u64::MAX));
    }

    /// Resets its count.
    pub fn take_count(&self) {
        let mut count = 0u64;
        let piece = Piece { base: &raw mut count as usize, length: 8 };
        sys::read_now(self.fd.get() - 1, &raw const piece as usize, 1);
    }
}

/// Fires the timers that are due; returns whether there was one.
pub fn fire_due(now: u64) -> bool {
    if TIMERS.next.get() > now {
        return false;
    }
    for timer in TIMERS.all.iter().filter(|timer| timer.time.deadline() <= now) {
        let (missed, again) = timer.time.expire(now);
        let times = missed + 1;
        sys::call(sys::SYS_WRITE, [(timer.fd.get() - 1) as usize, &raw const times as usize, 8, 0, 0, 0]);
        timer.arm(again, timer.time.interval());
    }
    true
}

/// Descriptors are about to be closed.
pub fn closed(first: i32, last: i32) {
    for timer in TIMERS.all.iter().filter(|timer| (first..=last).contains(&(timer.fd.get() - 1))) {
        timer.arm(u64::MAX, 0);
        timer.fd.set(0);
    }
}
