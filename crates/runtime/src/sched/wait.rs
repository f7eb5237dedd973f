//! Waits: for an object that others take and free, for a signal, and for what the scheduler does not know of.
//!
//! A wait has at most three ends: what it is for is there, its time has run out, or the thread has a signal to take. The
//! scheduler decides only who runs; which of the three it was is read off the sets when the thread runs again, by
//! [`settle`]. Handlers run between two turns of a wait, when the thread needs nothing and has no deadline.

use super::deadline::{not_far, set_deadline};
use super::events::{event, failed};
use super::{Delivered, clock, dependence, fair, hooks};
use super::{Gives, S, disable, enable, me, reschedule, set_need, thread};
use heisen_trace::Op;

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// What was waited for is there.
    Ready,
    /// The time ran out first.
    TimedOut,
    /// A handler of a signal has run; only from waits that say so.
    Interrupted,
}

/// What becomes of a wait after a handler of a signal has run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signals {
    /// It goes on.
    GoOn,
    /// It goes on if the handler was installed with `SA_RESTART`, and is interrupted otherwise.
    Restart,
    /// It is interrupted.
    Interrupt,
}

/// Whether what a wait is for is there. A closure is asked again after a handler has run; a plain value stands for
/// "no" by then, as it may be out of date.
pub trait Free {
    /// Whether it is there, at the first look or at a later one.
    fn look(&self, first: bool) -> bool;
}

impl Free for bool {
    #[inline(always)]
    fn look(&self, first: bool) -> bool {
        *self && first
    }
}

impl<F: Fn() -> bool> Free for F {
    #[inline(always)]
    fn look(&self, _first: bool) -> bool {
        self()
    }
}

/// A scheduling point before an operation that needs `object`, which is `free` or not at this moment. Returns when
/// the object is free, or when the deadline has passed first.
#[inline(always)]
pub fn wait_for(op: Op, object: usize, pc: usize, free: impl Free, deadline: u64) -> Woken {
    wait_for_key(op, object, object, pc, free, deadline)
}

/// As [`wait_for`], for a call that a handler of a signal may interrupt.
#[inline(always)]
pub fn wait_for_interruptibly(
    op: Op,
    object: usize,
    pc: usize,
    free: impl Free,
    deadline: u64,
    signals: Signals,
) -> Woken {
    let mut first = true;
    loop {
        let woken = wait_once(op, object, object, pc, free.look(first), deadline);
        if woken != Woken::Interrupted {
            return woken;
        }
        // One that need not wait is not interrupted.
        let signals = if free.look(false) { Signals::GoOn } else { signals };
        if !goes_on(signals) {
            return woken;
        }
        first = false;
    }
}

/// As [`wait_for`], where what is waited for is one of several sides of `object`: `key` is the name under which it is
/// [`taken`](super::taken) and [`freed`](super::freed).
#[inline(always)]
pub fn wait_for_key(op: Op, object: usize, key: usize, pc: usize, free: impl Free, deadline: u64) -> Woken {
    let mut first = true;
    loop {
        let woken = wait_once(op, object, key, pc, free.look(first), deadline);
        if woken != Woken::Interrupted {
            return woken;
        }
        hooks::deliver();
        first = false;
    }
}

/// Runs the handlers of the signals for which a wait was interrupted; whether it goes on.
#[cold]
fn goes_on(signals: Signals) -> bool {
    match hooks::deliver() {
        Delivered::Nothing => true,
        Delivered::Restart => signals != Signals::Interrupt,
        Delivered::Interrupt => signals == Signals::GoOn,
    }
}

/// One turn of [`wait_for_key`]: interrupted if there is a signal to take first.
#[inline(always)]
fn wait_once(op: Op, object: usize, key: usize, pc: usize, free: bool, deadline: u64) -> Woken {
    let number = me();
    let t = thread(number);
    t.about_to(op, object, pc);
    if free && deadline == u64::MAX && S.known.goes_on(number, op as u8) {
        event(op, object, pc);
        return Woken::Ready;
    }
    dependence::arrives(object);
    if deadline != u64::MAX {
        set_deadline(number, deadline);
    }
    set_need(number, key);
    if !free {
        disable(number);
    }
    reschedule(if free { Gives::Able } else { Gives::Blocks });
    set_need(number, 0);
    let woken = settle(number);
    if woken != Woken::Interrupted {
        event(op, object, pc);
    }
    if woken == Woken::TimedOut {
        failed();
    }
    woken
}

/// Waits for a signal, or for the deadline; nothing else ends it. Handlers are not run here: that is left to the
/// caller, as the signal may be one that it only takes.
pub fn wait_for_signal(op: Op, pc: usize, deadline: u64) -> Woken {
    wait_still(op, 0, pc, deadline)
}

/// Waits for something that the scheduler does not know of, until [`set_ready`] says that it is there, the deadline
/// passes, or there is a signal to take, which is left to the caller.
pub fn wait_outside(op: Op, object: usize, pc: usize, deadline: u64) -> Woken {
    let woken = wait_still(op, object, pc, deadline);
    if woken != Woken::Interrupted {
        event(op, object, pc);
    }
    if woken == Woken::TimedOut {
        failed();
    }
    woken
}

/// Whether what a thread waits for in [`wait_outside`] is there.
pub fn set_ready(number: usize, ready: bool) {
    let is = S.enabled.has(number) && !S.late.has(number);
    if ready && !is {
        enable(number);
    } else if !ready && is {
        disable(number);
    }
}

/// Waits until the thread is taken off its queue, or enabled by other means, the deadline passes or a signal comes.
pub(super) fn wait_still(op: Op, object: usize, pc: usize, deadline: u64) -> Woken {
    let number = me();
    let t = thread(number);
    t.about_to(op, object, pc);
    t.waits.set(true);
    if deadline != u64::MAX {
        set_deadline(number, deadline);
    }
    disable(number);
    reschedule(Gives::Blocks);
    t.waits.set(false);
    set_need(number, 0);
    settle(number)
}

/// After a wait: if the thread was scheduled although what it needs is not there, its time has run out.
#[inline(always)]
pub(super) fn settle(number: usize) -> Woken {
    if S.timed.has(number) { settle_timed(number) } else { Woken::Ready }
}

fn settle_timed(number: usize) -> Woken {
    let deadline = thread(number).deadline.replace(u64::MAX);
    S.timed.remove(number);
    not_far(number);
    if S.signalled.has(number) {
        S.late.remove(number);
        return Woken::Interrupted;
    }
    if !S.late.has(number) {
        return Woken::Ready;
    }
    S.late.remove(number);
    if deadline != u64::MAX {
        clock::reach(deadline);
        fair::yielded(number);
    }
    Woken::TimedOut
}

/// Ends the wait of a thread, whatever it is for: it goes on at once.
pub fn release(number: usize) {
    let t = thread(number);
    t.queue.set(0);
    t.deadline.set(u64::MAX);
    if !S.signalled.has(number) {
        S.timed.remove(number);
    }
    set_need(number, 0);
    dependence::enables(number);
    enable(number);
}

/// The running thread leaves whatever it was in the middle of: it ends in a handler.
pub fn leave_waits() {
    let t = thread(me());
    t.queue.set(0);
    t.parked.set(0);
    t.relock.set(0);
    t.awaits.set(0);
}

/// The thread has a signal to take. If it waits it can go on to run the handler; else it is told by the result that
/// it has to be diverted there, unless it is already.
pub fn interrupt(number: usize) -> bool {
    dependence::enables(number);
    let already = S.signalled.has(number);
    S.signalled.add(number);
    let t = thread(number);
    let waiting = t.waits.get() || S.needs[number].get() != 0;
    if waiting {
        S.timed.add(number);
        not_far(number);
        if !S.enabled.has(number) {
            if fair::in_use() {
                fair::enabled(number);
            }
            S.late.add(number);
            S.enabled.add(number);
        }
    }
    !waiting && !already
}
