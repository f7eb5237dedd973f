//! The scheduler: which threads exist, which can take their next step, and who takes it.
//!
//! After CHESS (OSDI'08), sections 3.3, 3.4 and 4.1: a thread stops just *before* each visible operation; it is
//! enabled if that operation can be done now; replay follows the plan's overrides, then the policy records. Unlike
//! CHESS, which wakes all waiters of a resource and lets them try again, whether a thread is enabled is exact here:
//! taking a lock disables those that are about to take it, so no step is wasted and the number of executions of a
//! small program can be worked out by hand.
//!
//! Everything is a [`Cell`] in one static: there is one kernel thread, or one at a time that runs, and a switch happens
//! only in [`reschedule`], when nothing is borrowed.

use crate::bits::Bits;
use crate::race::order;
use crate::shim::signal::{self, Delivered};
use crate::{budget, choose, clock, extended, fair, fibers, policy, report, scope, touch};
use core::cell::Cell;
use core::sync::atomic::AtomicU32;
use heisen_trace::{Op, hash};
use heisen_wire::MAX_THREADS;

/// "No thread".
pub const NONE: u16 = 0xffff;

/// One thread of the program. The main thread is number 0. What every scheduling point touches comes first, in one
/// cache line.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Thread {
    /// Saved stack pointer; meaningful while another thread runs.
    pub sp: Cell<usize>,
    /// Base of its thread-local storage, which is also its `pthread_t`.
    pub fs: Cell<usize>,
    /// What it is about to do, as a number so that an unused slot is all zeros and costs no space in the library.
    op: Cell<u8>,
    /// What `shim::cancel` knows of it, as bits.
    pub cancel: Cell<u8>,
    /// Whether it is in the middle of a function of the program's, rather than at a call: see `patch`.
    pub amid: Cell<bool>,
    /// On what.
    pub object: Cell<usize>,
    /// Called from where.
    pub pc: Cell<usize>,
    /// Virtual time at which its wait ends; `u64::MAX` if never.
    pub deadline: Cell<u64>,
    /// For `fair`: when it was last switched to.
    pub scheduled_at: Cell<u32>,

    /// Start function, argument and, once ended, result.
    pub start: Cell<usize>,
    pub arg: Cell<usize>,
    pub result: Cell<usize>,
    /// Its place in the tree of creation.
    pub parent: Cell<u16>,
    pub child: Cell<u16>,
    pub children: Cell<u16>,
    pub begun: Cell<bool>,
    pub ended: Cell<bool>,
    pub detached: Cell<bool>,
    /// Someone has joined it, or is about to.
    pub joined: Cell<bool>,

    /// Condition variable or futex in whose queue it waits; 0 if none.
    pub queue: Cell<usize>,
    /// Order of arrival there.
    pub ticket: Cell<u64>,
    /// Which wakes of a futex it listens to; all bits for a condition variable.
    pub mask: Cell<u32>,
    /// The mutex to acquire after being taken off a condition variable's queue.
    pub relock: Cell<usize>,
    /// Descriptors it waits for, see `io`: an array of so many `pollfd`.
    pub polls: Cell<usize>,
    pub polls_count: Cell<usize>,
    /// Whether it is in the middle of [`wait_in_queue`] or its like.
    waits: Cell<bool>,
    /// The queue in which it stays while a handler of a signal runs; 0 if none.
    parked: Cell<usize>,

    /// Signals that it blocks, as bits; those it waits for in `sigwait` and its like.
    pub blocked: Cell<u64>,
    pub awaits: Cell<u64>,
    /// Whether it is no thread of the program but a timer (see `shim::timer`).
    pub timer: Cell<bool>,
    /// The futexes that it waits on if its queue is [`MANY`]: where they are listed, and how many.
    pub many: Cell<usize>,
    pub many_count: Cell<usize>,
    /// The robust mutex that it acquired last and still holds, the head of a list; 0 if none.
    pub robust: Cell<usize>,

    /// Stack, as mapped: lowest address, size without and of the guard; size 0 for the main thread.
    pub stack: Cell<usize>,
    pub stack_size: Cell<usize>,
    pub guard_size: Cell<usize>,
    /// Whether the program brought the stack.
    pub stack_foreign: Cell<bool>,
    /// For `kernel`: 1 when it may run, 0 while it waits for that; a futex word.
    pub baton: AtomicU32,
    /// For `kernel`: whether it has signals to take when it runs again, and its stack for signal handlers.
    pub diverted: Cell<bool>,
    pub handler_stack: Cell<usize>,
    /// For `kernel`: the kernel thread must stay, though the thread has ended.
    pub stays: Cell<bool>,
    /// What the program believes its alternate signal stack to be: base, size; size 0 if none.
    pub alt_base: Cell<usize>,
    pub alt_size: Cell<usize>,
    /// Name, zero-terminated.
    pub name: [Cell<u8>; 16],

    /// For `fair`: since when it has been enabled, last yielded (0 if never), last disabled and by whom; all in steps.
    pub enabled_since: Cell<u32>,
    pub yielded_at: Cell<u32>,
    pub disabled_at: Cell<u32>,
    pub disabled_by: Cell<u16>,
    /// For `fair`: when it last let others run, 0 if never: it yielded, its time ran out, or it waited for something
    /// else than a lock. Unlike `yielded_at`, not when it was found to spin.
    pub gave_way_at: Cell<u32>,
    /// For `spin`: whether its last attempt failed, and how many in a row did.
    pub failed: Cell<bool>,
    pub failures: Cell<u32>,
    /// For `patch`: in how many places it is where atomic instructions are no scheduling points.
    pub quiet: Cell<u32>,
    /// For `scope`: how many regions without preemption it is in.
    pub no_preempt: Cell<u32>,
    /// For `policy`: PCT priority, higher runs first.
    pub priority: Cell<u64>,
}

impl Thread {
    const fn new() -> Thread {
        Thread {
            sp: Cell::new(0),
            fs: Cell::new(0),
            op: Cell::new(0),
            cancel: Cell::new(0),
            amid: Cell::new(false),
            object: Cell::new(0),
            pc: Cell::new(0),
            start: Cell::new(0),
            arg: Cell::new(0),
            result: Cell::new(0),
            parent: Cell::new(0),
            child: Cell::new(0),
            children: Cell::new(0),
            begun: Cell::new(false),
            ended: Cell::new(false),
            detached: Cell::new(false),
            joined: Cell::new(false),
            queue: Cell::new(0),
            ticket: Cell::new(0),
            mask: Cell::new(0),
            relock: Cell::new(0),
            polls: Cell::new(0),
            polls_count: Cell::new(0),
            waits: Cell::new(false),
            parked: Cell::new(0),
            blocked: Cell::new(0),
            awaits: Cell::new(0),
            timer: Cell::new(false),
            many: Cell::new(0),
            many_count: Cell::new(0),
            robust: Cell::new(0),
            deadline: Cell::new(0),
            stack: Cell::new(0),
            stack_size: Cell::new(0),
            guard_size: Cell::new(0),
            stack_foreign: Cell::new(false),
            baton: AtomicU32::new(0),
            diverted: Cell::new(false),
            handler_stack: Cell::new(0),
            stays: Cell::new(false),
            alt_base: Cell::new(0),
            alt_size: Cell::new(0),
            name: [const { Cell::new(0) }; 16],
            enabled_since: Cell::new(0),
            scheduled_at: Cell::new(0),
            yielded_at: Cell::new(0),
            disabled_at: Cell::new(0),
            disabled_by: Cell::new(0),
            gave_way_at: Cell::new(0),
            failed: Cell::new(false),
            failures: Cell::new(0),
            quiet: Cell::new(0),
            no_preempt: Cell::new(0),
            priority: Cell::new(0),
        }
    }

    /// What it is about to do.
    pub fn op(&self) -> Op {
        Op::from_code(self.op.get()).unwrap_or(Op::Start)
    }

    /// Whether it waits in that queue, or in several of which that is one.
    #[inline]
    pub fn waits_in(&self, queue: usize) -> bool {
        let own = self.queue.get();
        own == queue || own == MANY && self.several().iter().any(|one| one.get() == queue)
    }

    /// The queues it waits in if they are [`MANY`].
    #[cold]
    pub fn several(&self) -> &[Cell<usize>] {
        // SAFETY: set by the thread itself to an array in a frame that it does not leave while it waits.
        unsafe { core::slice::from_raw_parts(self.many.get() as *const Cell<usize>, self.many_count.get()) }
    }

    /// Sets what it is about to do, on what, called from where.
    #[inline]
    pub fn about_to(&self, op: Op, object: usize, pc: usize) {
        self.op.set(op as u8);
        self.object.set(object);
        self.pc.set(pc);
    }
}

/// The scheduler's state.
#[derive(Debug)]
pub struct Sched {
    /// Whether this process is controlled; false before start-up, without an engine, and in a forked child.
    pub active: Cell<bool>,
    /// Whether an execution runs; false from start-up to the zygote point.
    pub running: Cell<bool>,
    /// Whether threads are kernel threads rather than fibers; see `kernel`.
    pub kernel: Cell<bool>,
    /// The running thread.
    pub current: Cell<u16>,
    /// Threads created; slots are not reused in an execution.
    pub count: Cell<usize>,
    /// Threads that have not ended.
    pub live: Cell<usize>,
    /// Steps taken.
    pub step: Cell<u32>,
    /// The first step at which [`alarm`] must look: the next override, the fair tail, the limit.
    pub alarm: Cell<u32>,
    /// Step from which the schedule is a fair round-robin.
    pub tail: Cell<u32>,
    /// Step up to which every point with more than one candidate is a decision: `tail`, or 0 if there is a scope.
    pub plain_until: Cell<u32>,
    /// Step at which the execution is ended.
    pub limit: Cell<u32>,
    /// Running hash of the steps.
    pub hash: Cell<u64>,
    /// Threads whose next operation can be done, or can time out.
    pub enabled: Bits,
    /// Those of `enabled` whose next operation cannot be done: if scheduled, they time out.
    pub late: Bits,
    /// Threads that wait with a deadline, may wake up spuriously, or wait and are `signalled`; those without a deadline
    /// have one of `u64::MAX`.
    timed: Bits,
    /// Those of `timed` that are not enabled, as their deadline is too far away for a timeout while others can go on;
    /// and how many they are.
    far: Bits,
    fars: Cell<usize>,
    /// How far away a deadline may be for a timeout while others can go on.
    pub horizon: Cell<u64>,
    /// Threads that have a signal to take before they go on. One whose operation cannot be done is `late`, too: it is
    /// enabled, since it can run the handler.
    pub signalled: Bits,
    /// Threads that may not run while a thread they have to give way to is enabled; see `fair`.
    pub barred: Bits,
    /// What the next operation of each thread needs to be available; 0 if it never blocks. Kept apart from `threads`
    /// since acquiring and releasing look at all of them.
    needs: [Cell<usize>; MAX_THREADS],
    /// How many there are that [`look_again`] has to look at in each step: threads that wait for a `pthread_once` in
    /// progress (see `shim::once`), timers that would end the program (see `shim::timer`), waits for descriptors
    /// and calls that are out (see `io`), real time.
    look_again: Cell<usize>,
    /// Source of [`Thread::ticket`].
    tickets: Cell<u64>,
    threads: [Thread; MAX_THREADS],
}

// SAFETY: the process has one kernel thread, or several of which only the one that has the baton touches this (see
// `kernel`, which also gives the ordering); signal handlers that touch the state end the process.
unsafe impl Sync for Sched {}

/// The one scheduler. All zeros, so that it takes no space in the library; [`init`] sets the rest.
pub static S: Sched = Sched {
    active: Cell::new(false),
    running: Cell::new(false),
    kernel: Cell::new(false),
    current: Cell::new(0),
    count: Cell::new(0),
    live: Cell::new(0),
    step: Cell::new(0),
    alarm: Cell::new(0),
    tail: Cell::new(0),
    plain_until: Cell::new(0),
    limit: Cell::new(0),
    hash: Cell::new(0),
    enabled: Bits::new(),
    late: Bits::new(),
    timed: Bits::new(),
    far: Bits::new(),
    fars: Cell::new(0),
    horizon: Cell::new(0),
    signalled: Bits::new(),
    barred: Bits::new(),
    needs: [const { Cell::new(0) }; MAX_THREADS],
    look_again: Cell::new(0),
    tickets: Cell::new(0),
    threads: [const { Thread::new() }; MAX_THREADS],
};

/// The main thread exists, and no limit is near.
pub fn init() {
    for never in [&S.alarm, &S.tail, &S.plain_until, &S.limit] {
        never.set(u32::MAX);
    }
    S.hash.set(hash::EMPTY);
    add(0, None);
}

/// Why the running thread lets the others have a look in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gives {
    /// It could go on: to run another thread is a preemption.
    Able,
    /// It yields: to run another thread is free.
    Yields,
    /// It cannot go on.
    Blocks,
}

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

/// The number of the running thread.
#[inline]
pub fn me() -> usize {
    S.current.get() as usize
}

/// The thread of that number.
#[inline]
pub fn thread(number: usize) -> &'static Thread {
    &S.threads[number]
}

/// All threads created so far.
pub fn threads() -> impl Iterator<Item = (usize, &'static Thread)> {
    S.threads[..S.count.get()].iter().enumerate()
}

/// Words in use of the sets of threads.
#[inline]
pub fn words() -> usize {
    S.count.get().div_ceil(64)
}

/// A fresh ticket, for the order of arrival in a queue.
pub fn ticket() -> u64 {
    let next = S.tickets.get() + 1;
    S.tickets.set(next);
    next
}

/// A scheduling point before an operation that never blocks. Returns when it is to be done.
#[inline(always)]
pub fn point(op: Op, object: usize, pc: usize) {
    let t = thread(me());
    t.about_to(op, object, pc);
    reschedule(Gives::Able);
    report::event(op, object, pc);
}

/// A scheduling point at which the thread gives way.
pub fn yield_point(op: Op, pc: usize) {
    let t = thread(me());
    t.about_to(op, 0, pc);
    clock::yielded();
    fair::yielded(me());
    reschedule(Gives::Yields);
    report::event(op, 0, pc);
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
/// [`taken`] and [`freed`].
#[inline(always)]
pub fn wait_for_key(op: Op, object: usize, key: usize, pc: usize, free: impl Free, deadline: u64) -> Woken {
    let mut first = true;
    loop {
        let woken = wait_once(op, object, key, pc, free.look(first), deadline);
        if woken != Woken::Interrupted {
            return woken;
        }
        signal::deliver();
        first = false;
    }
}

/// Runs the handlers of the signals for which a wait was interrupted; whether it goes on.
#[cold]
fn goes_on(signals: Signals) -> bool {
    match signal::deliver() {
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
    if deadline != u64::MAX {
        set_deadline(number, deadline);
    }
    S.needs[number].set(key);
    if !free {
        disable(number);
    }
    reschedule(if free { Gives::Able } else { Gives::Blocks });
    S.needs[number].set(0);
    let woken = settle(number);
    if woken != Woken::Interrupted {
        report::event(op, object, pc);
    }
    if woken == Woken::TimedOut {
        report::failed();
    }
    woken
}

/// In place of a queue: those that [`Thread::several`] lists. No object can be at this address.
pub const MANY: usize = 1;

/// Every wake of a queue, and every waiter.
pub const ANY: u32 = u32::MAX;

/// Waits in the queue of `queue` until someone calls [`take_off`], or the deadline passes. The thread then needs what
/// the waker set, which it has to look at again: a handler may have run since. `op` is what it will do when it goes on.
/// While handlers of signals run it stays in the queue.
pub fn wait_in_queue(op: Op, queue: usize, mask: u32, pc: usize, deadline: u64) -> Woken {
    let t = thread(me());
    let outer = (t.queue.get(), t.parked.replace(0));
    enter_queue(queue, mask);
    let woken = loop {
        let woken = wait_still(op, queue, pc, deadline);
        if woken != Woken::Interrupted {
            break woken;
        }
        t.parked.set(queue);
        signal::deliver();
        t.parked.set(0);
        if t.queue.get() != queue {
            break Woken::Ready;
        }
    };
    t.queue.set(outer.0);
    t.parked.set(outer.1);
    woken
}

/// As [`wait_in_queue`], for a call that a handler of a signal interrupts: the thread leaves the queue before the
/// handler runs.
fn wait_in_queue_interruptibly(op: Op, queue: usize, mask: u32, pc: usize, deadline: u64) -> Left {
    let t = thread(me());
    let outer = t.queue.get();
    enter_queue(queue, mask);
    let woken = wait_still(op, queue, pc, deadline);
    let taken_off = t.queue.get() != queue;
    t.queue.set(outer);
    match woken {
        Woken::Ready => Left::Woken,
        Woken::TimedOut => Left::TimedOut,
        Woken::Interrupted => match signal::deliver() {
            _ if taken_off => Left::Woken,
            Delivered::Interrupt => Left::Interrupted,
            Delivered::Restart => Left::Restarts,
            Delivered::Nothing => Left::Undisturbed,
        },
    }
}

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

/// Waits for a signal, or for the deadline; nothing else ends it. Handlers are not run here: that is left to the
/// caller, as the signal may be one that it only takes.
pub fn wait_for_signal(op: Op, pc: usize, deadline: u64) -> Woken {
    wait_still(op, 0, pc, deadline)
}

fn enter_queue(queue: usize, mask: u32) {
    let t = thread(me());
    t.queue.set(queue);
    t.mask.set(mask);
    t.ticket.set(ticket());
}

/// Waits until the thread is taken off its queue, or enabled by other means, the deadline passes or a signal comes.
fn wait_still(op: Op, object: usize, pc: usize, deadline: u64) -> Woken {
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
    S.needs[number].set(0);
    settle(number)
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
    touch::enables(number);
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

/// Waits for something that the scheduler does not know of, until [`set_ready`] says that it is there, the deadline
/// passes, or there is a signal to take, which is left to the caller.
pub fn wait_outside(op: Op, object: usize, pc: usize, deadline: u64) -> Woken {
    let woken = wait_still(op, object, pc, deadline);
    if woken != Woken::Interrupted {
        report::event(op, object, pc);
    }
    if woken == Woken::TimedOut {
        report::failed();
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

/// There is one thing more, or less, that [`look_again`] has to look at.
pub fn add_errand() {
    S.look_again.set(S.look_again.get() + 1);
}

/// Whether there is anything for [`look_again`] to look at.
pub fn has_errands() -> bool {
    S.look_again.get() != 0
}

pub fn remove_errand() {
    S.look_again.set(S.look_again.get() - 1);
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
    let spurious = budget::spurious(op, queue, pc);
    if spurious {
        S.timed.add(me());
    }
    (spurious, if spurious { u64::MAX } else { deadline })
}

fn set_deadline(number: usize, deadline: u64) {
    thread(number).deadline.set(deadline);
    S.timed.add(number);
}

/// After a wait: if the thread was scheduled although what it needs is not there, its time has run out.
#[inline]
fn settle(number: usize) -> Woken {
    let t = thread(number);
    if !S.timed.has(number) {
        return Woken::Ready;
    }
    let deadline = t.deadline.replace(u64::MAX);
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

/// Takes a thread off the queue it waits in. It can go on at once, or, with `then_needs` not 0, as soon as that object
/// is free, which it is or not now.
pub fn take_off(number: usize, op: Op, then_needs: usize, free: bool) {
    let t = thread(number);
    if t.queue.replace(0) == t.parked.get() {
        // It runs a handler, and will see that it was taken off when that is done.
        return;
    }
    touch::enables(number);
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
    S.needs[number].set(then_needs);
    if then_needs == 0 || free {
        enable(number);
    } else if signalled {
        disable(number);
    } else {
        S.late.remove(number);
        S.enabled.remove(number);
    }
}

/// Ends the wait of a thread, whatever it is for: it goes on at once.
pub fn release(number: usize) {
    let t = thread(number);
    t.queue.set(0);
    t.deadline.set(u64::MAX);
    if !S.signalled.has(number) {
        S.timed.remove(number);
    }
    S.needs[number].set(0);
    touch::enables(number);
    enable(number);
}

/// The thread can take its step from now on.
#[inline]
pub fn enable(number: usize) {
    if fair::in_use() {
        fair::enabled(number);
    }
    S.enabled.add(number);
    S.late.remove(number);
    not_far(number);
}

/// The thread cannot take its step from now on, except to time out if it has a deadline.
#[inline]
fn disable(number: usize) {
    if fair::in_use() {
        fair::disabled(number);
    }
    if !S.timed.has(number) {
        S.enabled.remove(number);
    } else if S.signalled.has(number) || is_near(thread(number).deadline.get()) {
        S.late.add(number);
        S.enabled.add(number);
    } else {
        S.enabled.remove(number);
        if !S.far.has(number) {
            S.far.add(number);
            S.fars.set(S.fars.get() + 1);
        }
    }
}

/// Whether a wait with this deadline may time out while others can go on.
fn is_near(deadline: u64) -> bool {
    // One that may end spuriously has no deadline, and is near at all times.
    deadline == u64::MAX || deadline <= clock::now().saturating_add(S.horizon.get())
}

#[inline]
fn not_far(number: usize) {
    if S.fars.get() != 0 && S.far.has(number) {
        S.far.remove(number);
        S.fars.set(S.fars.get() - 1);
    }
}

/// Lets the waits with a deadline up to `until` time out from now on, whoever else can go on.
#[cold]
fn approach(until: u64) {
    for (number, t) in threads() {
        if S.far.has(number) && t.deadline.get() <= until {
            enable(number);
            S.late.add(number);
        }
    }
}

/// Time has passed, so that deadlines may have come near.
#[inline]
pub fn time_passed() {
    if S.fars.get() != 0 {
        approach(clock::now().saturating_add(S.horizon.get()));
    }
}

/// Nobody can go on: all deadlines count as near up to the earliest, and so much more. Real time is waited for.
#[cold]
fn let_time_pass() {
    /// So often the engine is told that we have not got stuck.
    const BEAT: u64 = 500_000_000;
    if !clock::is_real() {
        if S.fars.get() != 0 {
            approach(next_deadline().saturating_add(S.horizon.get()));
        }
        return;
    }
    while S.fars.get() != 0 && count_candidates() == 0 {
        crate::sys::sleep_until(next_deadline().min(clock::now() + BEAT));
        report::heartbeat();
        time_passed();
        fair::bar();
    }
}

/// The earliest moment at which a wait times out.
pub fn next_deadline() -> u64 {
    let waits = threads().filter(|&(number, _)| S.late.has(number) || S.far.has(number));
    waits.map(|(_, t)| t.deadline.get()).min().unwrap_or(u64::MAX)
}

/// `object` is no longer free: disables all that need it.
#[inline]
pub fn taken(object: usize) {
    for (number, needs) in S.needs[..S.count.get()].iter().enumerate() {
        if needs.get() == object {
            disable(number);
        }
    }
}

/// `object` is free: enables all that need it.
#[inline]
pub fn freed(object: usize) {
    for (number, needs) in S.needs[..S.count.get()].iter().enumerate() {
        if needs.get() == object {
            enable(number);
        }
    }
}

/// Whether any thread needs `object`, or waits in its queue.
pub fn awaited(object: usize) -> bool {
    threads().any(|(number, t)| S.needs[number].get() == object || t.waits_in(object))
}

/// What a thread needs before it can go on; 0 if nothing.
pub fn needs(number: usize) -> usize {
    S.needs[number].get()
}

/// The running thread can never go on, as it needs `object`.
pub fn cannot(object: usize) {
    S.needs[me()].set(object);
    S.enabled.remove(me());
}

/// How many threads wait in the queue of `queue`, of those that `mask` selects.
pub fn waiters(queue: usize, mask: u32) -> usize {
    threads().filter(|(_, t)| t.waits_in(queue) && t.mask.get() & mask != 0).count()
}

/// Counts a step.
#[inline]
pub fn next_step() -> u32 {
    let step = S.step.get() + 1;
    S.step.set(step);
    report::steps(step);
    if step >= S.alarm.get() {
        report::alarm(step);
    }
    step
}

/// Counts a step at a scheduling point, where signals from outside are noticed.
#[inline]
fn next_step_at_point() -> u32 {
    let step = S.step.get() + 1;
    S.step.set(step);
    report::steps(step);
    if step >= S.alarm.get() { alarm_at_point(step) } else { step }
}

/// Something is due. Signals from outside are handed to threads; the running one takes its own here. The step from
/// here on.
#[cold]
fn alarm_at_point(step: u32) -> u32 {
    signal::collect();
    report::alarm(step);
    let number = me();
    if S.signalled.has(number) && !S.timed.has(number) {
        signal::deliver();
    }
    if S.step.get() == step { step } else { next_step() }
}

/// What has to be looked at in each step, where nobody tells when it changes; `able` says whether the running thread can go
/// on in any case.
#[cold]
fn look_again(able: bool) {
    crate::shim::once::recheck();
    crate::shim::timer::recheck();
    if clock::is_real() {
        time_passed();
    }
    crate::io::errands(able);
}

/// Candidates for the next step: enabled and not barred.
#[inline]
pub fn candidates(word: usize) -> u64 {
    S.enabled.word(word) & !S.barred.word(word)
}

#[inline(always)]
fn count_candidates() -> usize {
    let mut count = candidates(0).count_ones() as usize;
    for word in 1..words() {
        count += candidates(word).count_ones() as usize;
    }
    count
}

/// Ends the running thread's turn: chooses who takes the next step and switches there. Returns when the thread that
/// called is scheduled again.
///
/// Inlined all the way into the intercepted functions: after a switch every return goes to another place than the
/// processor predicts, so the fewer of them the better.
#[inline(always)]
pub fn reschedule(gives: Gives) {
    let number = me();
    let step = next_step_at_point();
    if S.look_again.get() != 0 {
        look_again(gives == Gives::Able);
    }
    fair::bar();
    let mut options = count_candidates();
    if options == 0 {
        let_time_pass();
        options = count_candidates();
    }
    let able = gives == Gives::Able && (!S.barred.has(number) || scope::in_region(number));
    let next = if options > 1 {
        choose::decide(number, step, able, options)
    } else if able {
        number
    } else if options == 1 {
        choose::after(number).unwrap_or(number)
    } else {
        nobody(number)
    };
    S.hash.set(hash::fold(S.hash.get(), number as u16, thread(number).op.get(), options as u16));
    if next != number {
        switch_to(number, next);
    }
}

/// Nobody can take a step: waits for a signal from outside, if one may come; else that is a deadlock.
#[cold]
fn nobody(number: usize) -> usize {
    while signal::wait_for_outside() {
        if let Some(next) = choose::after(number) {
            return next;
        }
    }
    report::deadlock()
}

#[inline(always)]
fn switch_to(from: usize, to: usize) {
    S.current.set(to as u16);
    let t = thread(to);
    t.scheduled_at.set(S.step.get());
    order::switched(to);
    touch::switched(to);
    fair::scheduled(to);
    if thread(from).amid.get() {
        extended::kept(|| fibers::switch(thread(from), t));
    } else {
        fibers::switch(thread(from), t);
    }
}

/// Adds a thread, enabled and about to start; `parent` is none for the main thread. What the carrier knows of it is
/// filled in before.
pub fn add(number: usize, parent: Option<usize>) {
    let t = thread(number);
    t.parent.set(NONE);
    if let Some(parent) = parent {
        let children = thread(parent).children.get() + 1;
        thread(parent).children.set(children);
        t.parent.set(parent as u16);
        t.child.set(children);
    }
    t.deadline.set(u64::MAX);
    t.disabled_by.set(NONE);
    t.about_to(Op::Start, 0, t.start.get());
    S.count.set(number + 1);
    S.live.set(S.live.get() + 1);
    report::threads_created(number + 1);
    policy::created(t);
    if let Some(parent) = parent {
        t.blocked.set(thread(parent).blocked.get());
        order::created(number);
        touch::enables(number);
    }
    enable(number);
}

/// Makes a thread that was just added a timer: it counts for nothing but its deadline, if it has one.
pub fn become_timer(number: usize) {
    thread(number).timer.set(true);
    thread(number).blocked.set(0);
    S.live.set(S.live.get() - 1);
    S.enabled.remove(number);
}

/// The timer fires at the deadline, from now on; at `u64::MAX` it never does.
pub fn set_timer(number: usize, object: usize, pc: usize, deadline: u64) {
    thread(number).about_to(Op::Timer, object, pc);
    thread(number).deadline.set(u64::MAX);
    for set in [&S.timed, &S.late, &S.enabled] {
        set.remove(number);
    }
    if deadline != u64::MAX {
        set_deadline(number, deadline);
        disable(number);
    }
}

/// The running timer has nothing to do until its deadline comes.
pub fn timer_waits() {
    reschedule(Gives::Blocks);
}

/// The running timer was scheduled: its time has come.
pub fn timer_fires() {
    settle(me());
}

/// The running thread has ended: those that join it can go on. Never returns to it.
pub fn end() -> ! {
    let number = me();
    let t = thread(number);
    t.ended.set(true);
    t.about_to(Op::End, 0, 0);
    S.live.set(S.live.get() - 1);
    S.enabled.remove(number);
    S.signalled.remove(number);
    signal::thread_ended(number);
    touch::write(t.fs.get());
    freed(t.fs.get());
    reschedule(Gives::Blocks);
    unreachable!()
}
