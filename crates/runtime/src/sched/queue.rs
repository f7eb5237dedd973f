//! Queues of condition variables, futexes and similar objects, in which threads wait until another thread
//! removes them.
//!
//! A queue is only the address of its object, recorded in the threads that wait there. So nothing is
//! allocated or freed with the object. A ticket gives the order of arrival.

use super::deadline::not_far;
use super::wait::{Woken, wait_still};
use super::{Delivered, dependence, faults, hooks, operation_log};
use super::{SCHED, disable, enable, me, set_need, thread, threads};
use heisen_trace::Op;

/// In place of a queue: the thread waits in the queues that [`Thread::several`](super::Thread::several)
/// lists. No object has this address.
pub const MANY: usize = 1;

/// A mask that selects every wake and every waiter of a queue.
pub const ANY: u32 = u32::MAX;

/// How a thread left a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// Another thread removed it.
    Woken,
    /// The time ran out first.
    TimedOut,
    /// The wait ended without a wake, a time-out or a signal.
    Spuriously,
    /// A signal handler has run.
    Interrupted,
    /// A signal handler has run that was installed with `SA_RESTART`.
    Restarts,
    /// There was a signal without a handler.
    Undisturbed,
}

/// Waits in the queue of `queue` until another thread calls [`take_off`] or the deadline passes. The thread
/// then needs the object that the waker has set. The caller has to check that object again, because a signal
/// handler may have run since. `op` is the operation that the thread does when it continues. It remains in
/// the queue while signal handlers run.
pub fn wait_in_queue(op: Op, queue: usize, mask: u32, pc: usize, deadline: u64) -> Woken {
    let t = thread(me());
    let outer = (t.queue.get(), t.parked.replace(0));
    enter_queue(queue, mask);
    let may_leave = SCHED.timed.has(me()) || deadline != u64::MAX;
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

/// A thread that could have left the queue by itself continues. Its order against a wake matters: a wake
/// before that would have led it another way.
fn touch_queue(queue: usize) {
    if queue != MANY {
        dependence::write(queue);
    } else if dependence::wanted() {
        thread(me()).several().iter().for_each(|one| dependence::write(one.get()));
    }
}

/// As [`wait_in_queue`], for a call that a signal handler interrupts: the thread leaves the queue before the
/// handler runs.
fn wait_in_queue_interruptibly(op: Op, queue: usize, mask: u32, pc: usize, deadline: u64) -> Left {
    let t = thread(me());
    let outer = t.queue.get();
    enter_queue(queue, mask);
    let may_leave = SCHED.timed.has(me()) || deadline != u64::MAX;
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

/// As [`wait_in_queue`], for waits that may end spuriously: a decision says whether this one may. If so, the
/// thread is enabled at once. By default all other threads run before it, as before a thread whose deadline
/// never comes.
pub fn sleep_in_queue(op: Op, queue: usize, mask: u32, pc: usize, deadline: u64) -> Left {
    let (spurious, deadline) = may_end_spuriously(op, queue, pc, deadline);
    match wait_in_queue(op, queue, mask, pc, deadline) {
        Woken::TimedOut if spurious => Left::Spuriously,
        Woken::TimedOut => Left::TimedOut,
        _ => Left::Woken,
    }
}

/// As [`sleep_in_queue`], for a call that a signal handler interrupts.
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
        SCHED.timed.add(me());
    }
    (spurious, if spurious { u64::MAX } else { deadline })
}

fn enter_queue(queue: usize, mask: u32) {
    let t = thread(me());
    t.queue.set(queue);
    t.mask.set(mask);
    t.ticket.set(ticket());
}

/// A new ticket, for the order of arrival in a queue.
pub fn ticket() -> u64 {
    let next = SCHED.tickets.get() + 1;
    SCHED.tickets.set(next);
    next
}

/// Removes a thread from its queue. It can continue at once; or, if `then_needs` is not 0, as soon as that
/// object is available. `free` says whether the object is available now.
pub fn take_off(number: usize, op: Op, then_needs: usize, free: bool) {
    if leaves_queue(number) {
        dependence::enables(number);
        goes_on(number, op, then_needs, free);
    }
}

/// Removes a thread from the queue of a barrier, because all threads have arrived.
pub fn take_off_met(number: usize, op: Op) {
    if leaves_queue(number) {
        dependence::lets_pass(number);
        goes_on(number, op, 0, true);
    }
}

/// Removes a thread from its queue. False if it runs a signal handler: it will notice after the handler that
/// it was removed.
fn leaves_queue(number: usize) -> bool {
    let t = thread(number);
    let leaves = t.queue.replace(0) != t.parked.get();
    operation_log::wakes(number);
    leaves
}

fn goes_on(number: usize, op: Op, then_needs: usize, free: bool) {
    let t = thread(number);
    t.op.set(op as u8);
    t.deadline.set(u64::MAX);
    not_far(number);
    let signalled = SCHED.signalled.has(number);
    if !signalled {
        SCHED.timed.remove(number);
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
        SCHED.late.remove(number);
        SCHED.enabled.remove(number);
    }
}

/// The number of threads in the queue of `queue` that `mask` selects.
pub fn waiters(queue: usize, mask: u32) -> usize {
    threads().filter(|(_, t)| t.waits_in(queue) && t.mask.get() & mask != 0).count()
}
