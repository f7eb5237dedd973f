//! Livelocks: finds out whether an execution that does not end returns to the same state.
//!
//! An execution that is too long is not yet a livelock: a program may have a million things to do. A livelock
//! is a fair cycle of states (Musuvathi, Qadeer, "Fair stateless model checking", PLDI'08, section 2). The
//! program is in the same state as before, so it can continue like this for ever, and every thread that could
//! run in between did run. Only a close-up checks this, and only past half of the step limit, in the *fair
//! tail*. In the first half of the tail threads run at random (see [`decision`](super::decision)); in the
//! second half they take turns.
//!
//! The engine stores a few states from the random half; it reads the program's memory and registers from
//! outside. The runtime finds out cheaply when a later state may be the same: every thread is about to do the
//! same operation as then. The engine compares the rest. There are three more conditions:
//!
//! - At least a quarter of the random half, and at least 128 steps, lie between the two states. So random
//!   scheduling has made no progress in that many steps. A round of turns that only happens to keep one
//!   thread from a lock is not enough.
//! - Every thread that could run at any time in between, or whose wait could time out, has run (strong
//!   fairness).
//! - Nothing came from outside: no clock was read, no random number drawn, no descriptor, signal or process
//!   was involved. None of these is in the program's memory, so the next round might differ.

use super::{SCHED, clock, has_errands, me, needs, pause, script_state, thread, threads};
use crate::platform::baton::Guarded;
use crate::platform::glibc;
use crate::wire_log;
use core::cell::Cell;
use core::sync::atomic::Ordering::Relaxed;
use heisen_trace::{Op, hash};
use heisen_wire::stop;

/// The number of states that the engine stores.
const ANCHORS: usize = 4;
/// How often the engine is asked to compare with each of them.
const TRIES: u32 = 256;
/// The smallest number of steps between two states. In fewer random steps, threads may block each other by
/// chance.
const FEWEST: u32 = 128;

#[derive(Debug)]
struct Anchor {
    step: Cell<u32>,
    /// A hash of the operations that the threads are about to do.
    positions: Cell<u64>,
    /// The count of values from outside at that step; see [`consulted`].
    consulted: Cell<u32>,
    tries: Cell<u32>,
}

struct Recurrence {
    anchors: [Anchor; ANCHORS],
    kept: Cell<usize>,
    consulted: Cell<u32>,
}

static RECURRENCE: Guarded<Recurrence> = Guarded::new(Recurrence {
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

/// The first step at which threads take turns. From the beginning of the fair tail up to here they run at
/// random.
pub fn turns() -> u32 {
    SCHED.tail.get() + (SCHED.limit.get() - SCHED.tail.get()) / 2
}

/// The program gets a value that is not in its memory: the time, a random number.
#[inline]
pub fn consulted() {
    RECURRENCE.consulted.set(RECURRENCE.consulted.get().wrapping_add(1));
}

/// The running thread does an operation. Some operations involve things that are not in the program's memory.
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

/// A step of a close-up: has the engine store the state, or compare it with a stored one.
#[cold]
pub fn stepped(step: u32) {
    if step < SCHED.tail.get() || !wanted() || script_state::is_on() {
        return;
    }
    let length = turns() - SCHED.tail.get();
    let kept = RECURRENCE.kept.get();
    if kept < ANCHORS && step >= SCHED.tail.get() + length / 8 * (kept as u32 + 1) {
        let anchor = &RECURRENCE.anchors[kept];
        anchor.step.set(step);
        anchor.positions.set(positions());
        anchor.consulted.set(RECURRENCE.consulted.get());
        RECURRENCE.kept.set(kept + 1);
        if is_closed() {
            show(kept, step);
        }
        return;
    }
    for (number, anchor) in RECURRENCE.anchors[..kept].iter().enumerate() {
        let since = anchor.step.get();
        let may_be = anchor.tries.get() < TRIES
            && anchor.consulted.get() == RECURRENCE.consulted.get()
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

/// Whether nothing outside the program takes part in the execution.
fn is_closed() -> bool {
    !clock::is_real() && !has_errands() && !wire_log::started_others()
}

/// A hash of the operation that every thread is about to do, and of whether it is enabled.
fn positions() -> u64 {
    let mut all = hash::mix(hash::EMPTY, me() as u64);
    for (number, t) in threads() {
        if t.ended.get() {
            continue;
        }
        let can = u64::from(SCHED.enabled.has(number))
            | u64::from(SCHED.late.has(number)) << 1
            | u64::from(SCHED.signalled.has(number)) << 2
            | u64::from(t.begun.get()) << 3;
        let words = [number, t.op() as usize, t.object.get(), t.pc.get(), needs(number), t.queue.get()];
        all = words.iter().fold(hash::mix(all, can), |hash, &word| hash::mix(hash, word as u64));
    }
    all
}

/// Whether every thread that could have run since that step has run.
fn all_have_run_since(step: u32) -> bool {
    threads().all(|(number, t)| {
        let could = SCHED.enabled.has(number) || t.enabled_since.get() > step || t.deadline.get() != u64::MAX;
        t.ended.get() || !could || number == me() || thread(number).scheduled_at.get() > step
    })
}
