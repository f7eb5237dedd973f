//! Whether an execution that does not end comes back to the same state, which is what makes it a livelock.
//!
//! "Too long" is no livelock: a program may have a million things to do. A livelock is a fair cycle of states (Musuvathi,
//! Qadeer, "Fair stateless model checking", PLDI'08, section 2): the whole program is as it was before, so it can go on like
//! this for ever, and every thread that could run in between did run. Only a close look asks, and only past half of the
//! step limit, in the *fair tail*. There, for a half, chance decides who runs (see [`decision`](super::decision)), then all take turns.
//!
//! A few states at random places of the first half are kept by the engine, which reads the program's memory and registers
//! from outside. Here it is found out cheaply when a later state may be the same: when every thread is about to do the same
//! thing as then. The engine compares the rest. What is asked for besides:
//!
//! - At least a quarter of the random half lies in between, and never fewer than 128 steps. So chance has not led anywhere in so many steps: a round of taking
//!   turns that only happens to keep one thread from a lock is not enough.
//! - Every thread that could run at any time in between, or whose time could run out, has run (strong fairness).
//! - Nothing came from elsewhere: no clock was read, no random number drawn, no descriptor, signal or process was involved.
//!   None of these is in the program's memory, so the next round might be another one.

use super::{S, clock, has_errands, me, needs, pause, script_state, thread, threads};
use crate::platform::baton::Guarded;
use crate::platform::glibc;
use crate::wire_log;
use core::cell::Cell;
use core::sync::atomic::Ordering::Relaxed;
use heisen_trace::{Op, hash};
use heisen_wire::stop;

/// States that are kept.
const ANCHORS: usize = 4;
/// How often the engine is asked to compare with each.
const TRIES: u32 = 256;
/// So many steps at random lie between two states at least: in fewer, threads that keep each other from going on do so by chance.
const FEWEST: u32 = 128;

#[derive(Debug)]
struct Anchor {
    step: Cell<u32>,
    /// A hash of what every thread is about to do.
    positions: Cell<u64>,
    /// How often something came from elsewhere before.
    consulted: Cell<u32>,
    tries: Cell<u32>,
}

struct Recurrence {
    anchors: [Anchor; ANCHORS],
    kept: Cell<usize>,
    consulted: Cell<u32>,
}

static R: Guarded<Recurrence> = Guarded::new(Recurrence {
    anchors: [const {
        Anchor { step: Cell::new(0), positions: Cell::new(0), consulted: Cell::new(0), tries: Cell::new(0) }
    }; ANCHORS],
    kept: Cell::new(0),
    consulted: Cell::new(0),
});

/// Whether the engine wants to compare states.
pub fn wanted() -> bool {
    wire_log::stops() && wire_log::wire().recurrence.wanted.load(Relaxed) != 0
}

/// The step from which on threads take turns; from the beginning of the fair tail up to here chance decides.
pub fn turns() -> u32 {
    S.tail.get() + (S.limit.get() - S.tail.get()) / 2
}

/// The program is told something that is not in its memory: the time, a random number.
#[inline]
pub fn consulted() {
    R.consulted.set(R.consulted.get().wrapping_add(1));
}

/// The running thread does an operation: some are of things that are not in the program's memory.
pub fn does(op: Op) {
    let elsewhere = op.is_on_descriptor()
        || matches!(
            op,
            Op::WaitChild
                | Op::SystemV
                | Op::Timer
                | Op::Kill
                | Op::SigWait
                | Op::Handler
                | Op::Choose
                | Op::Create
                | Op::Fork
        );
    if elsewhere {
        consulted();
    }
}

/// A step of a close look: keeps the state, or asks whether it is one that was kept.
#[cold]
pub fn stepped(step: u32) {
    if step < S.tail.get() || !wanted() || script_state::is_on() {
        return;
    }
    let length = turns() - S.tail.get();
    let kept = R.kept.get();
    if kept < ANCHORS && step >= S.tail.get() + length / 8 * (kept as u32 + 1) {
        let anchor = &R.anchors[kept];
        anchor.step.set(step);
        anchor.positions.set(positions());
        anchor.consulted.set(R.consulted.get());
        R.kept.set(kept + 1);
        if is_closed() {
            show(kept, step);
        }
        return;
    }
    for (number, anchor) in R.anchors[..kept].iter().enumerate() {
        let since = anchor.step.get();
        let may_be = anchor.tries.get() < TRIES
            && anchor.consulted.get() == R.consulted.get()
            && step - since >= (length / 4).max(FEWEST)
            && anchor.positions.get() == positions()
            && all_have_run_since(since);
        if may_be && is_closed() {
            anchor.tries.set(anchor.tries.get() + 1);
            show(number, since);
        }
        if !wanted() {
            return;
        }
    }
}

fn show(anchor: usize, since: u32) {
    let recurrence = &wire_log::wire().recurrence;
    recurrence.anchor.store(anchor as u32, Relaxed);
    recurrence.since.store(since, Relaxed);
    recurrence.wire.store(core::ptr::from_ref(wire_log::wire()) as u64, Relaxed);
    recurrence.rseq.store(glibc::rseq_area(thread(0).fs.get()).unwrap_or(0) as u64, Relaxed);
    pause::stop_at(stop::STATE);
}

/// Whether nothing outside of the program has a part in it.
fn is_closed() -> bool {
    !clock::is_real() && !has_errands() && !wire_log::started_others()
}

/// What every thread is about to do, and whether it can.
fn positions() -> u64 {
    let mut all = hash::mix(hash::EMPTY, me() as u64);
    for (number, t) in threads() {
        if t.ended.get() {
            continue;
        }
        let can = u64::from(S.enabled.has(number))
            | u64::from(S.late.has(number)) << 1
            | u64::from(S.signalled.has(number)) << 2
            | u64::from(t.begun.get()) << 3;
        let words = [number, t.op() as usize, t.object.get(), t.pc.get(), needs(number), t.queue.get()];
        all = words.iter().fold(hash::mix(all, can), |hash, &word| hash::mix(hash, word as u64));
    }
    all
}

/// Whether every thread has run since that step that could have.
fn all_have_run_since(step: u32) -> bool {
    threads().all(|(number, t)| {
        let could = S.enabled.has(number) || t.enabled_since.get() > step || t.deadline.get() != u64::MAX;
        t.ended.get() || !could || number == me() || thread(number).scheduled_at.get() > step
    })
}
