//! Timers that are read from a descriptor, on virtual time. The kernel's own would go by real time; an `eventfd` looks
//! the same to `read`, `poll` and `epoll`: a count of eight bytes, ready when it is not 0. So each timer is one, and the
//! runtime adds to its count when virtual time passes its moment.

use super::descriptor::made;
use crate::blocking::descriptors;
use crate::blocking::descriptors::Class;
use crate::lifecycle::report;
use crate::platform::baton::Guarded;
use crate::platform::glibc;
use crate::platform::glibc::real;
use crate::platform::sys;
use crate::sched;
use crate::sched::clock;
use crate::sched::clock::Timespec;
use crate::shim::shims;
use core::cell::Cell;
use core::ffi::c_int;
use heisen_trace::{Note, Op};

/// Timers at a time; one more is refused with EMFILE.
const MAX: usize = 256;
const TFD_TIMER_ABSTIME: c_int = 1;
const EMFILE: i32 = 24;

/// `struct itimerspec`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    interval: Timespec,
    value: Timespec,
}

/// One timer.
struct Timer {
    /// Its descriptor plus 1; 0 if the entry is free.
    fd: Cell<c_int>,
    clock: Cell<c_int>,
    /// The virtual moment at which it fires next; `u64::MAX` if it is not armed.
    due: Cell<u64>,
    /// Nanoseconds from one firing to the next; 0 if it fires once.
    interval: Cell<u64>,
}

struct Timers {
    all: [Timer; MAX],
    /// The earliest moment at which one fires.
    next: Cell<u64>,
}

static TIMERS: Guarded<Timers> = Guarded::new(Timers {
    all: [const {
        Timer { fd: Cell::new(0), clock: Cell::new(0), due: Cell::new(u64::MAX), interval: Cell::new(0) }
    }; MAX],
    next: Cell::new(u64::MAX),
});

fn find(fd: c_int) -> Option<&'static Timer> {
    TIMERS.all.iter().find(|timer| timer.fd.get() == fd + 1)
}

/// The moment at which the next timer fires.
pub fn next() -> Option<u64> {
    let next = TIMERS.next.get();
    (next != u64::MAX).then_some(next)
}

/// Sets when a timer fires, and from that when the next one does.
fn arm(timer: &Timer, due: u64) {
    timer.due.set(due);
    let was_armed = TIMERS.next.get() != u64::MAX;
    let next = TIMERS.all.iter().map(|timer| timer.due.get()).min().unwrap_or(u64::MAX);
    TIMERS.next.set(next);
    match (was_armed, next != u64::MAX) {
        (false, true) => sched::add_errand(),
        (true, false) => sched::remove_errand(),
        _ => {}
    }
}

/// Fires the timers whose moment has come; whether there was one.
pub fn fire_due(now: u64) -> bool {
    if TIMERS.next.get() > now {
        return false;
    }
    for timer in &TIMERS.all {
        let due = timer.due.get();
        if due > now {
            continue;
        }
        let (mut times, mut again) = (1, u64::MAX);
        if timer.interval.get() != 0 {
            times += (now - due) / timer.interval.get();
            again = due + times * timer.interval.get();
        }
        sys::call(sys::SYS_WRITE, [(timer.fd.get() - 1) as usize, &raw const times as usize, 8, 0, 0, 0]);
        arm(timer, again);
    }
    true
}

/// Descriptors are about to be closed.
pub fn closed(first: c_int, last: c_int) {
    for timer in TIMERS.all.iter().filter(|timer| (first..=last).contains(&(timer.fd.get() - 1))) {
        arm(timer, u64::MAX);
        timer.fd.set(0);
    }
}

/// Takes back what a timer has counted.
fn reset(fd: c_int) {
    let mut count = 0u64;
    let piece = super::Piece { base: &raw mut count as usize, length: 8 };
    sys::read_now(fd, &raw const piece as usize, 1);
}

fn setting(timer: &Timer) -> Setting {
    let left = match timer.due.get() {
        u64::MAX => 0,
        // What is due and has not been noticed yet has still a moment left.
        due => due.saturating_sub(clock::now()).max(1),
    };
    Setting { interval: Timespec::of(timer.interval.get()), value: Timespec::of(left) }
}

shims! {
    /// A timer on virtual time, which fires when no thread can go on before its moment, or when time has passed it.
    fn timerfd_create(clock: c_int, flags: c_int) -> c_int = pc {
        let Some(free) = TIMERS.all.iter().find(|timer| timer.fd.get() == 0) else {
            return glibc::result(EMFILE);
        };
        // The real one checks the arguments.
        let fd = real!(timerfd_create, fn(clock => c_int, flags => c_int) -> c_int);
        if fd < 0 {
            return fd;
        }
        sys::close(fd);
        let fd = real!(eventfd, fn(0 => u32, flags => c_int) -> c_int);
        if fd >= 0 {
            free.fd.set(fd + 1);
            free.clock.set(clock);
            free.interval.set(0);
        }
        made(fd, Class::Inside)
    }

    /// Arms or disarms the timer; a scheduling point.
    fn timerfd_settime(fd: c_int, flags: c_int, new: *const Setting, old: *mut Setting) -> c_int = pc {
        let Some(timer) = find(fd) else {
            return real!(timerfd_settime, fn(
                fd => c_int, flags => c_int, new => *const Setting, old => *mut Setting
            ) -> c_int);
        };
        // SAFETY: the program passes a setting.
        let new = unsafe { *new };
        let (Some(value), Some(interval)) = (new.value.nanos_not_negative(), new.interval.nanos_not_negative())
        else {
            return glibc::result(sys::EINVAL);
        };
        sched::point(Op::TimerFd, fd as usize, pc);
        if !old.is_null() {
            // SAFETY: the program passes room for a setting, or null.
            unsafe { *old = setting(timer) };
        }
        reset(fd);
        if value != 0 && !clock::is_real() {
            report::note(Note::TimerFd);
        }
        timer.interval.set(interval);
        arm(timer, match value {
            0 => u64::MAX,
            _ if flags & TFD_TIMER_ABSTIME != 0 => clock::deadline_at(timer.clock.get(), value),
            _ => clock::deadline_in(value),
        });
        descriptors::touched();
        0
    }

    /// What is left of the timer, on virtual time.
    fn timerfd_gettime(fd: c_int, out: *mut Setting) -> c_int = pc {
        match find(fd) {
            // SAFETY: the program passes room for a setting.
            Some(timer) => unsafe { *out = setting(timer) },
            None => return real!(timerfd_gettime, fn(fd => c_int, out => *mut Setting) -> c_int),
        }
        0
    }
}
