//! Fairness: a thread that yields gives way to the threads that it may wait for.
//!
//! After "Fair stateless model checking" (Musuvathi, Qadeer, PLDI'08), which CHESS (OSDI'08) section 4.3
//! refers to. The paper has three sets for each thread t. E(t) are the threads that have been enabled ever
//! since t last yielded. D(t) are the threads that t has disabled since. S(t) are the threads scheduled
//! since. When t yields, it gets a lower priority than all threads in (E ∪ D) \ S: it may not run while one
//! of them is enabled. Its edge to thread u is dropped when u is scheduled.
//!
//! Here the three sets are computed from time stamps, which are recorded from the first yield of any thread
//! on. So a program that never yields pays nothing. Earlier events do not matter, because the sets of each
//! thread start with its own first yield.

use super::script_state::held;
use super::thread_set::{Bits, WORDS};
use super::{SCHED, Thread, dependence, thread, threads, words};
use crate::platform::baton::Guarded;
use crate::wire_log;
use core::cell::Cell;
use heisen_trace::{Note, Op};
use heisen_wire::MAX_THREADS;

// Page-aligned, and the fields that most executions write come first, as in `sched::Sched`.
#[repr(C, align(4096))]
struct Fair {
    /// Threads that have to give way to another thread.
    lowered: Bits,
    /// Whether `lowered` has any thread.
    any: Cell<bool>,
    /// Whether the time stamps are recorded.
    in_use: Cell<bool>,
    /// For each thread, the threads that it has to give way to.
    above: [[Cell<u64>; WORDS]; MAX_THREADS],
}

static FAIR: Guarded<Fair> = Guarded::new(Fair {
    lowered: Bits::new(),
    any: Cell::new(false),
    in_use: Cell::new(false),
    above: [const { [const { Cell::new(0) }; WORDS] }; MAX_THREADS],
});

/// Whether callers have to report to [`enabled`] and [`disabled`].
#[inline]
pub fn in_use() -> bool {
    FAIR.in_use.get()
}

/// Records that thread `number` becomes enabled.
#[cold]
pub fn enabled(number: usize) {
    if !SCHED.enabled.has(number) {
        thread(number).enabled_since.set(SCHED.step.get());
    }
}

/// Records that the running thread disables thread `number`.
#[cold]
pub fn disabled(number: usize) {
    let t = thread(number);
    t.disabled_at.set(SCHED.step.get());
    t.disabled_by.set(SCHED.current.get());
    // A thread that waits for a lock does not give way: such a wait is usually short.
    if !matches!(t.op(), Op::Lock | Op::Relock | Op::ReadLock | Op::WriteLock | Op::StreamLock) {
        t.gave_way_at.set(SCHED.step.get());
    }
}

/// Records time stamps from now on, even if no thread has yielded.
pub fn watch() {
    FAIR.in_use.set(true);
}

/// A thread that is not a good Samaritan, at the end of a long fair schedule that began at step `since`. In
/// all that time it neither yielded nor slept nor waited for anything but a lock, while other threads ran.
///
/// CHESS (OSDI'08) section 5.4.2: each thread either makes progress or yields the processor.
pub fn bad_samaritan(since: u32) -> Option<usize> {
    // If the scheduler switched to a thread in the last quarter of that schedule, other threads have run
    // until then.
    let late = SCHED.step.get() - (SCHED.step.get() - since) / 4;
    let gave_way = |t: &Thread| t.gave_way_at.get() >= since;
    let bad = |t: &Thread| !t.ended.get() && !t.timer.get() && t.scheduled_at.get() >= late && !gave_way(t);
    threads().find(|(_, t)| bad(t)).map(|(number, _)| number)
}

/// Thread `number` yields, or its wait has timed out.
pub fn yielded(number: usize) {
    thread(number).gave_way_at.set(SCHED.step.get());
    spun(number);
}

/// Whether any thread has to give way to another.
pub fn any_lowered() -> bool {
    FAIR.any.get()
}

/// Lowers thread `number` as a yield does. The runtime also calls this for a thread that spins without a
/// yield.
pub fn spun(number: usize) {
    FAIR.in_use.set(true);
    SCHED.known.forget();
    let t = thread(number);
    let last = t.yielded_at.replace(SCHED.step.get());
    let earlier = t.yields.replace(t.yields.get().saturating_add(1));
    if earlier < SCHED.patience.get().saturating_sub(2).max(1) {
        // The first yield orders nothing: in the paper, S(t) contains all threads at first. A search that models no
        // fairness has more patience, so that it can let a thread go on.
        return;
    }
    for (other, u) in threads() {
        let stayed = SCHED.enabled.has(other) && u.enabled_since.get() <= last;
        let disabled = u.disabled_by.get() as usize == number && u.disabled_at.get() > last;
        if other != number && !u.ended.get() && u.scheduled_at.get() <= last && (stayed || disabled) {
            let word = &FAIR.above[number][other / 64];
            word.set(word.get() | 1 << (other % 64));
            FAIR.lowered.add(number);
            FAIR.any.set(true);
        }
    }
}

/// Thread `number` is scheduled: no thread has to give way to it any longer.
#[inline]
pub fn scheduled(number: usize) {
    if FAIR.any.get() {
        drop_edges_to(number);
    }
}

#[cold]
fn drop_edges_to(number: usize) {
    let mut any = false;
    for t in lowered() {
        let word = &FAIR.above[t][number / 64];
        word.set(word.get() & !(1 << (number % 64)));
        if FAIR.above[t][..words()].iter().all(|w| w.get() == 0) {
            FAIR.lowered.remove(t);
            if SCHED.barred.has(t) {
                dependence::enables(t);
            }
            unbar(t);
        } else {
            any = true;
        }
    }
    FAIR.any.set(any);
}

fn lowered() -> impl Iterator<Item = usize> {
    (0..SCHED.count.get()).filter(|&t| FAIR.lowered.has(t))
}

/// Bars the threads that have to give way to an enabled thread.
#[inline]
pub fn bar() {
    if FAIR.any.get() {
        bar_lowered();
    }
}

#[cold]
fn bar_lowered() {
    for t in lowered() {
        // No thread gives way to a thread that a script holds.
        if (0..words()).any(|w| FAIR.above[t][w].get() & SCHED.enabled.word(w) & !held(w) != 0) {
            SCHED.barred.add(t);
            if dependence::logs() {
                wire_log::note(Note::GaveWay);
            }
        } else {
            unbar(t);
        }
    }
}

/// A thread no longer has to give way. If a script holds it, it remains barred.
fn unbar(t: usize) {
    if held(t / 64) >> (t % 64) & 1 == 0 {
        SCHED.barred.remove(t);
    }
}
