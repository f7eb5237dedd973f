//! Waits: for an object that threads take and release, for a signal, or for something that the scheduler does
//! not know of.
//!
//! A wait ends in one of three ways: it gets what it waits for, its deadline passes, or the thread has a
//! signal to take. The scheduler only decides which thread runs. When the thread runs again, [`settle`]
//! derives the way from the sets of threads. Signal handlers run between two turns of a wait, when the thread
//! needs nothing and has no deadline.

use super::deadline::{not_far, set_deadline};
use super::events::{event, failed};
use super::{Delivered, clock, dependence, fair, hooks};
use super::{Reason, SCHED, disable, enable, me, reschedule, set_need, thread};
use heisen_trace::Op;

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// It got what it waited for.
    Ready,
    /// The deadline passed first.
    TimedOut,
    /// A signal ended the wait; only waits that say so return this. The handler has run, unless it is left to
    /// the caller.
    Interrupted,
}

/// How a wait continues after a signal handler has run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signals {
    /// It continues.
    GoOn,
    /// It continues if the handler was installed with `SA_RESTART`; otherwise it is interrupted.
    Restart,
    /// It is interrupted.
    Interrupt,
}

/// Whether the object of a wait is available. A closure is asked again after a signal handler has run. A
/// plain value counts as "no" then, because it may be out of date.
pub trait Free {
    /// Whether the object is available, at the first look or at a later one.
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

/// A scheduling point before an operation that needs `object`; `free` says whether the object is available
/// now. Returns when the object is available, or when the deadline has passed first.
#[inline(always)]
pub fn wait_for(op: Op, object: usize, pc: usize, free: impl Free, deadline: u64) -> Woken {
    wait_for_key(op, object, object, pc, free, deadline)
}

/// As [`wait_for`], for a call that a signal handler may interrupt.
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
        // A thread that need not wait is not interrupted.
        let signals = if free.look(false) { Signals::GoOn } else { signals };
        if !goes_on(signals) {
            return woken;
        }
        first = false;
    }
}

/// As [`wait_for`], for a lock that is needed under a key other than its address: [`taken`](super::taken) and
/// [`freed`](super::freed) are called with `key`. The report shows `object`.
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

/// Runs the handlers of the signals that interrupted a wait; returns whether the wait continues.
#[cold]
fn goes_on(signals: Signals) -> bool {
    match hooks::deliver() {
        Delivered::Nothing => true,
        Delivered::Restart => signals != Signals::Interrupt,
        Delivered::Interrupt => signals == Signals::GoOn,
    }
}

/// One turn of [`wait_for_key`]. It is interrupted if the thread has a signal to take first.
#[inline(always)]
fn wait_once(op: Op, object: usize, key: usize, pc: usize, free: bool, deadline: u64) -> Woken {
    let number = me();
    let t = thread(number);
    t.about_to(op, object, pc);
    if free && deadline == u64::MAX && SCHED.known.goes_on(number, op as u8) {
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
    reschedule(if free { Reason::Preemptible } else { Reason::Blocks });
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

/// Waits for a signal or for the deadline. It runs no handler: that is left to the caller, because a call
/// such as `sigwait` takes the signal without one.
pub fn wait_for_signal(op: Op, pc: usize, deadline: u64) -> Woken {
    wait_still(op, 0, pc, deadline)
}

/// Waits for something that the scheduler does not know of, until [`set_ready`] reports it, the deadline
/// passes, or the thread has a signal to take. Taking the signal is left to the caller.
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

/// Sets whether the thing that a thread waits for in [`wait_outside`] has come.
pub fn set_ready(number: usize, ready: bool) {
    let is = SCHED.enabled.has(number) && !SCHED.late.has(number);
    if ready && !is {
        enable(number);
    } else if !ready && is {
        disable(number);
    }
}

/// Waits until the thread is removed from its queue or enabled in another way, the deadline passes, or a
/// signal comes.
pub(super) fn wait_still(op: Op, object: usize, pc: usize, deadline: u64) -> Woken {
    let number = me();
    let t = thread(number);
    t.about_to(op, object, pc);
    t.waits.set(true);
    if deadline != u64::MAX {
        set_deadline(number, deadline);
    }
    disable(number);
    reschedule(Reason::Blocks);
    t.waits.set(false);
    set_need(number, 0);
    settle(number)
}

/// After a wait: derives how it ended. A thread that was scheduled although its need is not met has timed
/// out, or has a signal to take.
#[inline(always)]
pub(super) fn settle(number: usize) -> Woken {
    if SCHED.timed.has(number) { settle_timed(number) } else { Woken::Ready }
}

fn settle_timed(number: usize) -> Woken {
    let deadline = thread(number).deadline.replace(u64::MAX);
    SCHED.timed.remove(number);
    not_far(number);
    if SCHED.signalled.has(number) {
        SCHED.late.remove(number);
        return Woken::Interrupted;
    }
    if !SCHED.late.has(number) {
        return Woken::Ready;
    }
    SCHED.late.remove(number);
    if deadline != u64::MAX {
        clock::reach(deadline);
        fair::yielded(number);
    }
    Woken::TimedOut
}

/// Ends the wait of a thread, whatever it waits for: the thread is enabled at once.
pub fn release(number: usize) {
    let t = thread(number);
    t.queue.set(0);
    t.deadline.set(u64::MAX);
    if !SCHED.signalled.has(number) {
        SCHED.timed.remove(number);
    }
    set_need(number, 0);
    dependence::enables(number);
    enable(number);
}

/// The running thread abandons all its waits, because it ends in a signal handler.
pub fn leave_waits() {
    let t = thread(me());
    t.queue.set(0);
    t.parked.set(0);
    t.relock.set(0);
    t.awaits.set(0);
}

/// Gives a thread a signal to take. A waiting thread is enabled, so that it can run the handler. For another
/// thread, true means that the caller has to divert it to the handler; it is false if the thread is diverted
/// already.
pub fn interrupt(number: usize) -> bool {
    dependence::enables(number);
    let already = SCHED.signalled.has(number);
    SCHED.signalled.add(number);
    let t = thread(number);
    let waiting = t.waits.get() || SCHED.needs[number].get() != 0;
    if waiting {
        SCHED.timed.add(number);
        not_far(number);
        if !SCHED.enabled.has(number) {
            if fair::in_use() {
                fair::enabled(number);
            }
            SCHED.late.add(number);
            SCHED.enabled.add(number);
        }
    }
    !waiting && !already
}
