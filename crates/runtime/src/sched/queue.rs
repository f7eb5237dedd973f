//! Queues: of condition variables, futexes and their like, where threads wait until someone takes them off.
//!
//! A queue is only the address of its object, kept in the threads that wait there: nothing has to be made or freed with
//! the object. The order of arrival is a ticket.

use super::deadline::not_far;
use super::wait::{Woken, wait_still};
use super::{Delivered, dependence, faults, hooks};
use super::{S, disable, enable, me, set_need, thread, threads};
use heisen_trace::Op;

/// In place of a queue: those that [`Thread::several`](super::Thread::several) lists. No object can be at this address.
pub const MANY: usize = 1;

/// Every wake of a queue, and every waiter.
pub const ANY: u32 = u32::MAX;

/// How a thread left a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// Someone took it off.
    Woken,
    /// The time ran out first.
    TimedOut,
    /// Neither, nor was there a signal.
    Spuriously,
    /// A handler has run.
    Interrupted,
    /// A handler has run that was installed with `SA_RESTART`.
    Restarts,
    /// There was a signal but no handler.
    Undisturbed,
}

/// Waits in the queue of `queue` until someone calls [`take_off`], or the deadline passes. The thread then needs what
/// the waker set, which it has to look at again: a handler may have run since. `op` is what it will do when it goes on.
/// While handlers of signals run it stays in the queue.
pub fn wait_in_queue(op: Op, queue: usize, mask: u32, pc: usize, deadline: u64) -> Woken {
    let t = thread(me());
    let outer = (t.queue.get(), t.parked.replace(0));
    enter_queue(queue, mask);
    let may_leave = S.timed.has(me()) || deadline != u64::MAX;
    let woken = loop {
        let woken = wait_still(op, queue, pc, deadline);
        if woken != Woken::Interrupted {
            break woken;
        }
        t.parked.set(queue);
        hooks::deliver();
        t.parked.set(0);
        if t.queue.get() != queue {
            break Woken::Ready;
        }
    };
    t.queue.set(outer.0);
    t.parked.set(outer.1);
    if may_leave {
        touch_queue(queue);
    }
    woken
}

/// A thread that could have left the queue by itself goes on. If it was woken, it would have gone another way before that.
fn touch_queue(queue: usize) {
    if queue != MANY {
        dependence::write(queue);
    } else if dependence::wanted() {
        thread(me()).several().iter().for_each(|one| dependence::write(one.get()));
    }
}

/// As [`wait_in_queue`], for a call that a handler of a signal interrupts: the thread leaves the queue before the
/// handler runs.
fn wait_in_queue_interruptibly(op: Op, queue: usize, mask: u32, pc: usize, deadline: u64) -> Left {
    let t = thread(me());
    let outer = t.queue.get();
    enter_queue(queue, mask);
    let may_leave = S.timed.has(me()) || deadline != u64::MAX;
    let woken = wait_still(op, queue, pc, deadline);
    let taken_off = t.queue.get() != queue;
    t.queue.set(outer);
    if may_leave || woken == Woken::Interrupted {
        touch_queue(queue);
    }
    match woken {
        Woken::Ready => Left::Woken,
        Woken::TimedOut => Left::TimedOut,
        Woken::Interrupted => match hooks::deliver() {
            _ if taken_off => Left::Woken,
            Delivered::Interrupt => Left::Interrupted,
            Delivered::Restart => Left::Restarts,
            Delivered::Nothing => Left::Undisturbed,
        },
    }
}

/// As [`wait_in_queue`], for waits that may end spuriously: whether this one may is a decision. If so, the thread is
/// enabled at once, after all others, like one that waits for a time that never comes.
pub fn sleep_in_queue(op: Op, queue: usize, mask: u32, pc: usize, deadline: u64) -> Left {
    let (spurious, deadline) = may_end_spuriously(op, queue, pc, deadline);
    match wait_in_queue(op, queue, mask, pc, deadline) {
        Woken::TimedOut if spurious => Left::Spuriously,
        Woken::TimedOut => Left::TimedOut,
        _ => Left::Woken,
    }
}

/// As [`sleep_in_queue`], for a call that a handler of a signal interrupts.
pub fn sleep_in_queue_interruptibly(op: Op, queue: usize, mask: u32, pc: usize, deadline: u64) -> Left {
    let (spurious, deadline) = may_end_spuriously(op, queue, pc, deadline);
    match wait_in_queue_interruptibly(op, queue, mask, pc, deadline) {
        Left::TimedOut if spurious => Left::Spuriously,
        left => left,
    }
}

fn may_end_spuriously(op: Op, queue: usize, pc: usize, deadline: u64) -> (bool, u64) {
    let spurious = faults::spurious(op, queue, pc);
    if spurious {
        S.timed.add(me());
    }
    (spurious, if spurious { u64::MAX } else { deadline })
}

fn enter_queue(queue: usize, mask: u32) {
    let t = thread(me());
    t.queue.set(queue);
    t.mask.set(mask);
    t.ticket.set(ticket());
}

/// A fresh ticket, for the order of arrival in a queue.
pub fn ticket() -> u64 {
    let next = S.tickets.get() + 1;
    S.tickets.set(next);
    next
}

/// Takes a thread off the queue it waits in. It can go on at once, or, with `then_needs` not 0, as soon as that object
/// is free, which it is or not now.
pub fn take_off(number: usize, op: Op, then_needs: usize, free: bool) {
    if leaves_queue(number) {
        dependence::enables(number);
        goes_on(number, op, then_needs, free);
    }
}

/// Takes a thread off the queue of a barrier, since all have arrived.
pub fn take_off_met(number: usize, op: Op) {
    if leaves_queue(number) {
        dependence::lets_pass(number);
        goes_on(number, op, 0, true);
    }
}

/// Takes a thread off its queue; false if it runs a handler, and will see that it was taken off when that is done.
fn leaves_queue(number: usize) -> bool {
    let t = thread(number);
    t.queue.replace(0) != t.parked.get()
}

fn goes_on(number: usize, op: Op, then_needs: usize, free: bool) {
    let t = thread(number);
    t.op.set(op as u8);
    t.deadline.set(u64::MAX);
    not_far(number);
    let signalled = S.signalled.has(number);
    if !signalled {
        S.timed.remove(number);
    }
    if then_needs != 0 {
        t.object.set(then_needs);
    }
    set_need(number, then_needs);
    if then_needs == 0 || free {
        enable(number);
    } else if signalled {
        disable(number);
    } else {
        S.late.remove(number);
        S.enabled.remove(number);
    }
}

/// How many threads wait in the queue of `queue`, of those that `mask` selects.
pub fn waiters(queue: usize, mask: u32) -> usize {
    threads().filter(|(_, t)| t.waits_in(queue) && t.mask.get() & mask != 0).count()
}
