//! Timers on virtual time: `alarm`, `setitimer`, `timer_create`.
//!
//! A timer is a task: it has a place among the threads, with a small stack on which only the runtime runs, and
//! waits like a sleeping thread. When it fires, relative to the threads, is therefore a decision, like a
//! time-out. By default it fires when nothing else can run, and time jumps to the earliest deadline. At the
//! cost of one preemption it fires at any earlier point. It then sends its signal or starts its thread, and
//! waits again.
//!
//! There is one exception. A timer whose signal would end the program, because nothing handles it, is a
//! watchdog. An early expiry of a watchdog says nothing about the program. It fires only if nothing else can
//! run and no other deadline is earlier.

use super::signal::action::{Effect, effect};
use super::signal::pending::{self, code};
use super::signal::{SIGALRM, is_valid, send};
use super::{pthread, shims, time};
use crate::blocking::interval_timer::{IntervalTimer, Setting, deadline_of};
use crate::carrier::fibers;
use crate::carrier::fibers::Wish;
use crate::platform::baton::Guarded;
use crate::platform::glibc;
use crate::platform::glibc::real;
use crate::platform::sys;
use crate::platform::sys::Info;
use crate::sched::clock;
use crate::sched::clock::Timespec;
use crate::sched::events;
use crate::sched::handles;
use crate::sched::{self, SCHED, me, thread};
use crate::wire_log;
use core::cell::Cell;
use core::ffi::c_int;
use heisen_trace::{Note, Op};
use heisen_wire::MAX_THREADS;

/// The number of timers of `timer_create`; the entry behind them is the timer of `alarm` and `setitimer`.
const ROOM: usize = 256;
const REAL: usize = ROOM;
const STACK: usize = 64 << 10;
const GUARD: usize = 4096;

const TIMER_ABSTIME: c_int = 1;
const ITIMER_REAL: c_int = 0;
const MAX_CLOCK: c_int = 11;
const ENOTSUP: c_int = 95;
const SECOND: u64 = 1_000_000_000;

/// Ways to notify.
const SIGEV_SIGNAL: c_int = 0;
const SIGEV_NONE: c_int = 1;
const SIGEV_THREAD: c_int = 2;
const SIGEV_THREAD_ID: c_int = 4;

/// `struct sigevent`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Event {
    value: usize,
    signal: c_int,
    notify: c_int,
    /// The function, or a thread id.
    function: usize,
    attributes: usize,
}

struct Timer {
    used: Cell<bool>,
    clock: Cell<c_int>,
    event: Cell<Event>,
    /// Its task, as a thread number of the scheduler; 0 if it has none yet.
    task: Cell<usize>,
    /// When it fires.
    time: IntervalTimer,
    /// How often it fired since its signal became pending, and the value of that for the last delivered signal.
    overrun: Cell<u64>,
    reported_overrun: Cell<u64>,
}

struct Timers([Timer; ROOM + 1]);

const NO_EVENT: Event = Event { value: 0, signal: 0, notify: SIGEV_NONE, function: 0, attributes: 0 };

static TIMERS: Guarded<Timers> = Guarded::new(Timers(
    [const {
        Timer {
            used: Cell::new(false),
            clock: Cell::new(0),
            event: Cell::new(NO_EVENT),
            task: Cell::new(0),
            time: IntervalTimer::new(),
            overrun: Cell::new(0),
            reported_overrun: Cell::new(0),
        }
    }; ROOM + 1],
));

impl Timer {
    /// The timer with the id that the program uses.
    fn of(id: usize) -> Option<&'static Timer> {
        TIMERS.0[..ROOM].get(id).filter(|timer| timer.used.get())
    }

    fn index(&self) -> usize {
        (core::ptr::from_ref(self) as usize - TIMERS.0.as_ptr() as usize) / size_of::<Timer>()
    }

    /// Its number in pending signals.
    fn number(&self) -> u16 {
        self.index() as u16 + 1
    }

    fn armed(&self) -> bool {
        self.used.get() && self.time.is_armed()
    }

    /// Makes its task, unless an earlier timer left one; returns false if there is no room.
    fn prepare(&self) -> bool {
        if self.task.get() != 0 {
            return true;
        }
        let number = SCHED.count.get();
        let wish = Wish { stack: None, size: STACK, guard: GUARD };
        if number == MAX_THREADS
            || fibers::create(number, run as *const () as usize, self.index(), &wish).is_err()
        {
            return false;
        }
        sched::add(number, Some(me()));
        sched::become_timer(number);
        self.task.set(number);
        true
    }

    fn set(&self, deadline: u64, interval: u64, pc: usize) {
        self.time.set(deadline, interval);
        self.overrun.set(0);
        crate::memory::race::order::teach(self.task.get());
        sched::set_timer(self.task.get(), 0, pc, deadline);
        SCHED.barred.remove(self.task.get());
    }

    /// Fires, because its time has come, and sets the next deadline.
    fn fire(&self) {
        let t = thread(me());
        events::event(Op::Timer, 0, t.pc.get());
        let (deadline, interval) = (self.time.deadline(), self.time.interval());
        let (missed, next) = self.time.expire(clock::now());
        self.notify(missed);
        if self.armed() && self.time.deadline() == deadline {
            let overrun = self.overrun.get();
            self.set(next, interval, t.pc.get());
            self.overrun.set(overrun);
        }
    }

    fn notify(&self, missed: u64) {
        let event = self.event.get();
        let signal = event.signal;
        if event.notify == SIGEV_NONE {
            return;
        }
        if event.notify == SIGEV_THREAD {
            start(&event);
            return;
        }
        if pending::has_of_timer(self.number()) {
            self.overrun.set(self.overrun.get() + 1 + missed);
            return;
        }
        self.overrun.set(missed);
        let info = if self.index() == REAL {
            Info::new(signal, code::KERNEL)
        } else {
            let who = [self.index() as i32, 0];
            Info { who, value: event.value, ..Info::new(signal, code::TIMER) }
        };
        let target = (event.notify == SIGEV_THREAD_ID).then(|| send::thread_of_id(event.function as c_int));
        match target {
            Some(None) => {}
            Some(Some(number)) if thread(number).ended.get() => {}
            Some(target) => _ = send::post(target, &info, self.number()),
            None => _ = send::post(None, &info, self.number()),
        }
    }

    /// Whether its signal would end the program.
    fn is_watchdog(&self) -> bool {
        let event = self.event.get();
        event.notify == SIGEV_SIGNAL
            && matches!(effect(event.signal), Effect::Terminate)
            && send::first_taker(event.signal).is_some_and(|taker| thread(taker).awaits.get() == 0)
    }
}

/// The code of a timer's task, which is scheduled whenever the timer fires.
extern "C" fn run(index: usize) -> usize {
    let timer = &TIMERS.0[index];
    loop {
        sched::timer_fires();
        timer.fire();
        sched::timer_waits();
    }
}

/// Starts the thread of a timer of kind SIGEV_THREAD: detached, with no signal blocked.
fn start(event: &Event) {
    let mut handle = 0;
    if pthread::make(&raw mut handle, event.attributes, event.function, event.value) == 0
        && let Some(number) = handles::thread_of_handle(handle)
    {
        thread(number).detached.set(true);
    }
}

/// A timer's signal is delivered; returns how often the timer fired in addition.
pub fn delivered(index: usize) -> i32 {
    let timer = &TIMERS.0[index];
    timer.reported_overrun.set(timer.overrun.replace(0));
    timer.reported_overrun.get().min(i32::MAX as u64) as i32
}

/// Whether a thread is the task of a watchdog timer.
pub fn is_watchdog(number: usize) -> bool {
    let mine = |timer: &&Timer| timer.used.get() && timer.task.get() == number;
    thread(number).timer.get() && TIMERS.0.iter().find(mine).is_some_and(Timer::is_watchdog)
}

/// Keeps watchdogs from firing while another thread or deadline comes first.
pub fn recheck() {
    for timer in TIMERS.0.iter().filter(|timer| timer.armed()) {
        let task = timer.task.get();
        if !timer.is_watchdog() {
            SCHED.barred.remove(task);
            continue;
        }
        let earlier = |number: usize| {
            let waits = SCHED.late.has(number) && !SCHED.signalled.has(number);
            let watches = thread(number).timer.get();
            SCHED.enabled.has(number)
                && (!waits || !watches && thread(number).deadline.get() < timer.time.deadline())
        };
        if (0..SCHED.count.get()).any(|number| number != task && earlier(number)) {
            SCHED.barred.add(task);
            // A distant watchdog guards against a program that hangs, and is not noted.
            if !clock::is_real() && sched::is_near(timer.time.deadline()) {
                wire_log::note(Note::Watchdog);
            }
        } else {
            SCHED.barred.remove(task);
        }
    }
}

/// Sets the timer of `alarm` and `setitimer`; returns its previous remaining time and interval, or `None` if
/// there is no room.
fn set_real(value: u64, interval: u64, pc: usize) -> Option<(u64, u64)> {
    let timer = &TIMERS.0[REAL];
    sched::point(Op::Timer, 0, pc);
    let before = timer.time.left();
    if !timer.used.get() {
        if value == 0 {
            return Some(before);
        }
        if !timer.prepare() {
            return None;
        }
        timer.used.set(true);
        timer.event.set(Event { signal: SIGALRM, notify: SIGEV_SIGNAL, ..NO_EVENT });
    }
    timer.set(if value == 0 { u64::MAX } else { clock::deadline_in(value) }, interval, pc);
    Some(before)
}

/// A `struct timeval` in nanoseconds.
fn of_timeval(time: &Timespec) -> Option<u64> {
    let valid = time.seconds >= 0 && (0..1_000_000).contains(&time.nanoseconds);
    valid
        .then(|| (time.seconds as u64).saturating_mul(SECOND).saturating_add(time.nanoseconds as u64 * 1_000))
}

fn to_timeval(nanos: u64) -> Timespec {
    // Rounded up: remaining time is never shown as 0.
    Timespec {
        seconds: (nanos / SECOND) as i64,
        nanoseconds: (nanos % SECOND).div_ceil(1_000).min(999_999) as i64,
    }
}

shims! {
    /// Sets the process's timer, which sends SIGALRM. When it fires is a decision. A scheduling point.
    fn alarm(seconds: u32) -> u32 = pc {
        match set_real(seconds as u64 * SECOND, 0, pc) {
            Some((0, _)) | None => 0,
            // Rounds as the kernel does.
            Some((left, _)) => ((left + SECOND / 2) / SECOND).max(1) as u32,
        }
    }

    /// As `alarm`, in microseconds, and optionally repeated.
    fn ualarm(value: u32, interval: u32) -> u32 = pc {
        match set_real(value as u64 * 1_000, interval as u64 * 1_000, pc) {
            Some((left, _)) => left.div_ceil(1_000) as u32,
            None => u32::MAX,
        }
    }

    /// As `alarm`. Timers of processor time are the kernel's, which is noted.
    fn setitimer(which: c_int, new: *const Setting, old: *mut Setting) -> c_int = pc {
        if which != ITIMER_REAL {
            wire_log::note(Note::CpuTimer);
            return real!(setitimer, fn(which => c_int, new => *const Setting, old => *mut Setting) -> c_int);
        }
        // SAFETY: the program passes one, or null, which Linux treats as a time of 0.
        let times = unsafe { new.as_ref() }
            .map_or(Some((0, 0)), |new| of_timeval(&new.value).zip(of_timeval(&new.interval)));
        let Some((value, interval)) = times else { return glibc::result(sys::EINVAL) };
        let Some((left, before)) = set_real(value, interval, pc) else { return glibc::result(sys::EAGAIN) };
        if !old.is_null() {
            // SAFETY: the program passes room for one, or null.
            unsafe { *old = Setting { interval: to_timeval(before), value: to_timeval(left) } };
        }
        0
    }

    /// Returns the remaining time of `setitimer`. Not a scheduling point.
    fn getitimer(which: c_int, out: *mut Setting) -> c_int = pc {
        if which != ITIMER_REAL {
            return real!(getitimer, fn(which => c_int, out => *mut Setting) -> c_int);
        }
        let (left, interval) = TIMERS.0[REAL].time.left();
        // SAFETY: the program passes room for one.
        unsafe { *out = Setting { interval: to_timeval(interval), value: to_timeval(left) } };
        0
    }

    /// Creates a timer, which is a task of its own. Timers of processor time are refused with `ENOTSUP`, which
    /// is noted. Not a scheduling point.
    fn timer_create(clock: c_int, event: *const Event, out: *mut usize) -> c_int = pc {
        if !time::modelled(clock) {
            // Clocks of processes and threads have negative numbers.
            if clock > MAX_CLOCK {
                return glibc::result(sys::EINVAL);
            }
            wire_log::note(Note::CpuTimer);
            return glibc::result(ENOTSUP);
        }
        let free = TIMERS.0[..ROOM].iter().position(|timer| !timer.used.get());
        let Some(index) = free.filter(|&index| TIMERS.0[index].prepare()) else {
            wire_log::note(Note::TooManyTimers);
            return glibc::result(sys::EAGAIN);
        };
        // SAFETY: the program passes one, or null for the default.
        let event = match unsafe { event.as_ref() } {
            Some(event) => *event,
            None => Event { value: index, signal: SIGALRM, notify: SIGEV_SIGNAL, ..NO_EVENT },
        };
        let valid = match event.notify {
            SIGEV_NONE | SIGEV_THREAD => true,
            SIGEV_SIGNAL => is_valid(event.signal),
            SIGEV_THREAD_ID => is_valid(event.signal) && send::thread_of_id(event.function as c_int).is_some(),
            _ => false,
        };
        if !valid {
            return glibc::result(sys::EINVAL);
        }
        let timer = &TIMERS.0[index];
        timer.clock.set(clock);
        timer.event.set(event);
        timer.reported_overrun.set(0);
        timer.used.set(true);
        // SAFETY: the program passes room for the id.
        unsafe { *out = index };
        0
    }

    /// Sets a timer. When it fires is a decision. A scheduling point.
    fn timer_settime(id: usize, flags: c_int, new: *const Setting, old: *mut Setting) -> c_int = pc {
        let Some(timer) = Timer::of(id) else { return glibc::result(sys::EINVAL) };
        // SAFETY: the program passes one, or null.
        let Some((value, interval)) = unsafe { new.as_ref() }.and_then(Setting::nanos) else {
            return glibc::result(sys::EINVAL);
        };
        sched::point(Op::Timer, 0, pc);
        if !old.is_null() {
            // SAFETY: the program passes room for one, or null.
            unsafe { *old = Setting::of(timer.time.left()) };
        }
        let deadline = deadline_of(timer.clock.get(), value, flags & TIMER_ABSTIME != 0);
        timer.set(deadline, interval, pc);
        0
    }

    /// Returns the remaining time of a timer. Not a scheduling point.
    fn timer_gettime(id: usize, out: *mut Setting) -> c_int = pc {
        let Some(timer) = Timer::of(id) else { return glibc::result(sys::EINVAL) };
        // SAFETY: the program passes room for one.
        unsafe { *out = Setting::of(timer.time.left()) };
        0
    }

    /// Returns how often the timer fired in addition to the last delivered signal. Not a scheduling point.
    fn timer_getoverrun(id: usize) -> c_int = pc {
        let Some(timer) = Timer::of(id) else { return glibc::result(sys::EINVAL) };
        timer.reported_overrun.get().min(i32::MAX as u64) as c_int
    }

    /// Deletes a timer. Not a scheduling point.
    fn timer_delete(id: usize) -> c_int = pc {
        let Some(timer) = Timer::of(id) else { return glibc::result(sys::EINVAL) };
        timer.set(u64::MAX, 0, pc);
        timer.used.set(false);
        0
    }
}
