//! Deadlines: which waits may time out while other threads can run, and how time passes when no thread can.
//!
//! A deadline is *near* or *far*. A thread that waits with a near deadline is enabled, and in `late`. With a
//! far deadline it is disabled until time comes near the deadline, or until no other thread can run. Timers
//! are threads that have nothing but a deadline.

use super::wait::settle;
use super::{Reason, SCHED, count_candidates, disable, enable, me, reschedule, thread, threads, words};
use super::{clock, dependence, fair, hooks};
use crate::wire_log;
use heisen_trace::{Note, Op};

pub(super) fn set_deadline(number: usize, deadline: u64) {
    thread(number).deadline.set(deadline);
    SCHED.timed.add(number);
}

/// Whether a wait with this deadline may time out while other threads can run.
pub fn is_near(deadline: u64) -> bool {
    // A wait that may end spuriously has no deadline, and counts as near at all times.
    deadline == u64::MAX || deadline <= clock::now().saturating_add(SCHED.horizon.get())
}

/// Notes that the time-out of a wait with a far deadline is not explored, if another thread can run. Real
/// time needs no such note, because deadlines come when they come. An early expiry of a watchdog is never
/// explored.
#[cold]
pub(super) fn note_far() {
    let others_run = || (0..words()).any(|word| SCHED.enabled.word(word) != 0);
    let waits = || threads().any(|(number, _)| SCHED.far.has(number) && !hooks::is_watchdog(number));
    if SCHED.fars.get() != 0 && !clock::is_real() && others_run() && waits() {
        wire_log::note(Note::FarTimeout);
    }
}

#[inline]
pub(super) fn not_far(number: usize) {
    if SCHED.fars.get() != 0 && SCHED.far.has(number) {
        SCHED.far.remove(number);
        SCHED.fars.set(SCHED.fars.get() - 1);
    }
}

/// Lets the waits with a deadline up to `until` time out from now on, even if other threads can run.
#[cold]
fn approach(until: u64) {
    for (number, t) in threads() {
        if SCHED.far.has(number) && t.deadline.get() <= until {
            dependence::enables(number);
            enable(number);
            SCHED.late.add(number);
        }
    }
}

/// Time has passed, so some deadlines may have become near.
#[inline]
pub fn time_passed() {
    if SCHED.fars.get() != 0 {
        approach(clock::now().saturating_add(SCHED.horizon.get()));
    }
}

/// No thread can run. All deadlines count as near up to the horizon after the earliest one. In real time,
/// waits for it.
#[cold]
pub(super) fn let_time_pass() {
    /// The interval at which the engine gets a sign of life.
    const BEAT: u64 = 500_000_000;
    if !clock::is_real() {
        if SCHED.fars.get() != 0 {
            dependence::idles();
            approach(next_deadline().saturating_add(SCHED.horizon.get()));
            note_far();
        }
        return;
    }
    while SCHED.fars.get() != 0 && count_candidates() == 0 {
        crate::platform::sys::sleep_until(next_deadline().min(clock::now() + BEAT));
        wire_log::heartbeat();
        time_passed();
        fair::bar();
    }
}

/// The earliest time at which a wait times out.
pub fn next_deadline() -> u64 {
    let waits = threads().filter(|&(number, _)| SCHED.late.has(number) || SCHED.far.has(number));
    waits.map(|(_, t)| t.deadline.get()).min().unwrap_or(u64::MAX)
}

/// Makes a thread that was just added a timer: only its deadline matters, if it has one.
pub fn become_timer(number: usize) {
    thread(number).timer.set(true);
    thread(number).blocked.set(0);
    SCHED.live.set(SCHED.live.get() - 1);
    SCHED.enabled.remove(number);
}

/// Arms a timer with this deadline; with `u64::MAX` it never fires.
pub fn set_timer(number: usize, object: usize, pc: usize, deadline: u64) {
    thread(number).about_to(Op::Timer, object, pc);
    thread(number).deadline.set(u64::MAX);
    for set in [&SCHED.timed, &SCHED.late, &SCHED.enabled] {
        set.remove(number);
    }
    if deadline != u64::MAX {
        set_deadline(number, deadline);
        disable(number);
    }
}

/// The running timer waits until its deadline comes.
pub fn timer_waits() {
    reschedule(Reason::Blocks);
}

/// The running timer was scheduled: its deadline has come.
pub fn timer_fires() {
    settle(me());
}
