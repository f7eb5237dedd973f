//! Fairness: a thread that yields gives way to the threads it may be waiting for.
//!
//! After "Fair stateless model checking" (Musuvathi, Qadeer, PLDI'08), which CHESS (OSDI'08) section 4.3 refers to.
//! There, for each thread t: E(t) are the threads enabled ever since t last yielded, D(t) those that t disabled since,
//! S(t) those scheduled since. When t yields, it gets a lower priority than all in (E ∪ D) \ S, and may not run while
//! one of them is enabled; the edge to u is dropped when u is scheduled. Here the three sets are not kept but read off
//! time stamps, which are kept from the first yield on: a program that never yields pays nothing. (What happened before
//! the first yield of all does not matter, as every thread's sets start anew with its own first yield.)

use super::script_state::held;
use super::thread_set::{Bits, WORDS};
use super::{S, Thread, dependence, thread, threads, words};
use crate::platform::baton::Guarded;
use crate::wire_log;
use core::cell::Cell;
use heisen_trace::{Note, Op};
use heisen_wire::MAX_THREADS;

// As for `sched::Sched`.
#[repr(C, align(4096))]
struct Fair {
    /// Threads that have to give way to someone.
    lowered: Bits,
    any: Cell<bool>,
    /// Whether anyone has ever yielded.
    in_use: Cell<bool>,
    /// To whom, for each thread.
    above: [[Cell<u64>; WORDS]; MAX_THREADS],
}

static F: Guarded<Fair> = Guarded::new(Fair {
    lowered: Bits::new(),
    any: Cell::new(false),
    in_use: Cell::new(false),
    above: [const { [const { Cell::new(0) }; WORDS] }; MAX_THREADS],
});

/// Whether [`enabled`] and [`disabled`] have to be told.
#[inline]
pub fn in_use() -> bool {
    F.in_use.get()
}

/// Thread `number` is enabled.
#[cold]
pub fn enabled(number: usize) {
    if !S.enabled.has(number) {
        thread(number).enabled_since.set(S.step.get());
    }
}

/// Thread `number` is disabled by the running one.
#[cold]
pub fn disabled(number: usize) {
    let t = thread(number);
    t.disabled_at.set(S.step.get());
    t.disabled_by.set(S.current.get());
    // A lock that happens to be held for a moment is not what a good Samaritan waits for.
    if !matches!(t.op(), Op::Lock | Op::Relock | Op::ReadLock | Op::WriteLock | Op::StreamLock) {
        t.gave_way_at.set(S.step.get());
    }
}

/// Keeps the stamps from now on, though nobody has yielded.
pub fn watch() {
    F.in_use.set(true);
}

/// A thread that is no good Samaritan, at the end of a long fair schedule that began at step `since`: it neither yielded
/// nor slept nor waited for anything but a lock in all that time, and others ran all the while.
///
/// CHESS (OSDI'08) section 5.4.2: each thread either makes progress or yields the processor.
pub fn bad_samaritan(since: u32) -> Option<usize> {
    // To be switched to means that another has run before; so late, that it does so for ever.
    let late = S.step.get() - (S.step.get() - since) / 4;
    let gave_way = |t: &Thread| t.gave_way_at.get() >= since;
    let bad = |t: &Thread| !t.ended.get() && !t.timer.get() && t.scheduled_at.get() >= late && !gave_way(t);
    threads().find(|(_, t)| bad(t)).map(|(number, _)| number)
}

/// Thread `number` yields, or a wait of it has timed out.
pub fn yielded(number: usize) {
    thread(number).gave_way_at.set(S.step.get());
    spun(number);
}

/// Whether any thread has to give way to another.
pub fn any_lowered() -> bool {
    F.any.get()
}

/// Thread `number` is treated as one that yields, though it does not.
pub fn spun(number: usize) {
    F.in_use.set(true);
    S.known.forget();
    let t = thread(number);
    let last = t.yielded_at.replace(S.step.get());
    if last == 0 {
        // The first yield orders nothing: S(t) starts out as all threads.
        return;
    }
    for (other, u) in threads() {
        let stayed = S.enabled.has(other) && u.enabled_since.get() <= last;
        let disabled = u.disabled_by.get() as usize == number && u.disabled_at.get() > last;
        if other != number && !u.ended.get() && u.scheduled_at.get() <= last && (stayed || disabled) {
            let word = &F.above[number][other / 64];
            word.set(word.get() | 1 << (other % 64));
            F.lowered.add(number);
            F.any.set(true);
        }
    }
}

/// Thread `number` is scheduled: nobody has to give way to it any longer.
#[inline]
pub fn scheduled(number: usize) {
    if F.any.get() {
        drop_edges_to(number);
    }
}

#[cold]
fn drop_edges_to(number: usize) {
    let mut any = false;
    for t in lowered() {
        let word = &F.above[t][number / 64];
        word.set(word.get() & !(1 << (number % 64)));
        if F.above[t][..words()].iter().all(|w| w.get() == 0) {
            F.lowered.remove(t);
            if S.barred.has(t) {
                dependence::enables(t);
            }
            unbar(t);
        } else {
            any = true;
        }
    }
    F.any.set(any);
}

fn lowered() -> impl Iterator<Item = usize> {
    (0..S.count.get()).filter(|&t| F.lowered.has(t))
}

/// Works out who is barred: those that have to give way to a thread that is enabled.
#[inline]
pub fn bar() {
    if F.any.get() {
        bar_lowered();
    }
}

#[cold]
fn bar_lowered() {
    for t in lowered() {
        // Nobody has to wait for one that a script holds.
        if (0..words()).any(|w| F.above[t][w].get() & S.enabled.word(w) & !held(w) != 0) {
            S.barred.add(t);
            if dependence::logs() {
                wire_log::note(Note::GaveWay);
            }
        } else {
            unbar(t);
        }
    }
}

/// A thread has to give way to nobody any more; a script may hold it all the same.
fn unbar(t: usize) {
    if held(t / 64) >> (t % 64) & 1 == 0 {
        S.barred.remove(t);
    }
}
