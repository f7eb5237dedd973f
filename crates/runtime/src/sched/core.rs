//! The core of the scheduler: the sets of threads, the choice and the switch.
//!
//! After CHESS (OSDI'08), sections 3.3, 3.4 and 4.1: a thread stops just *before* each visible operation. It
//! is enabled if it can do that operation now. An execution follows the overrides of its plan; after the last
//! one its policy chooses.
//!
//! CHESS wakes all waiters of a resource and lets them try again. Here enabledness is exact: a thread that
//! takes a lock disables the threads that are about to take it. So no step is wasted, and the number of
//! executions of a small program can be worked out by hand.
//!
//! This file holds the state that every scheduling point uses. [`Thread`] is the record of a thread. The ways
//! to wait have files of their own: for an object or a signal (`wait`), in a queue (`queue`), until a
//! deadline (`deadline`).
//!
//! Everything is a [`Cell`] in one static. Only the kernel thread that holds the baton uses it (see
//! [`Guarded`]). Only [`reschedule`] switches threads, and nothing is borrowed at that moment.

use super::alarm::alarm;
use super::deadline::{self, is_near, let_time_pass, not_far, time_passed};
use super::epoch::Epoch;
use super::events::event;
use super::thread_set::Bits;
use super::{KnownChoice, Thread};
use super::{
    atomic_section, clock, decision, dependence, fair, hooks, operation_log, pause, policy, recurrence,
    scope, script_state, symmetry,
};
use crate::platform::baton::{Flag, Guarded};
use crate::platform::{registers, xsave};
use crate::wire_log;
use crate::wire_log::symbolic_log;
use core::cell::Cell;
use core::mem::offset_of;
use core::ops::Deref;
use heisen_trace::decision::PATIENCE;
use heisen_trace::{Op, hash};
use heisen_wire::MAX_THREADS;

/// In place of the number of a thread: no thread.
pub const NONE: u16 = 0xffff;

/// The number of buckets of `needed`, a power of two.
const NEEDED: usize = 64;

/// The scheduler's state. The fields that every execution writes come first and share one page, so that
/// restoring a snapshot copies few pages.
#[derive(Debug)]
#[repr(C, align(4096))]
pub struct Sched {
    /// Whether the runtime controls this process. False before start-up, without an engine, and in a forked
    /// child.
    pub active: Flag,
    state: Guarded<State>,
}

impl Deref for Sched {
    type Target = State;

    #[inline(always)]
    #[track_caller]
    fn deref(&self) -> &State {
        &self.state
    }
}

impl Sched {
    /// The offset of the running thread's epoch, for assembly.
    pub const NOW: usize = offset_of!(Sched, state) + offset_of!(State, now);
}

/// The state of a controlled process. Through `Deref` its fields are those of [`Sched`].
#[derive(Debug)]
#[repr(C)]
pub struct State {
    /// Whether an execution runs. False from start-up until an execution begins, after the zygote has parked.
    pub running: Cell<bool>,
    /// Whether threads are kernel threads instead of fibers; see `carrier::kernel_threads`.
    pub kernel: Cell<bool>,
    /// The running thread.
    pub current: Cell<u16>,
    /// The number of threads created. Their slots are not reused within an execution.
    pub count: Cell<usize>,
    /// The number of threads that have not ended.
    pub live: Cell<usize>,
    /// The number of steps taken.
    pub step: Cell<u32>,
    /// The first step at which [`alarm`] has something to check: an override, the fair tail, the limit and
    /// more.
    pub alarm: Cell<u32>,
    /// The first step of the fair tail, in which no thread can be delayed for ever.
    pub tail: Cell<u32>,
    /// Before this step every scheduling point with more than one candidate is a decision. It is `tail`, or 0
    /// if there is a scope.
    pub plain_until: Cell<u32>,
    /// The step at which the execution is ended.
    pub limit: Cell<u32>,
    /// The running hash of the steps.
    pub hash: Cell<u64>,
    /// Whether the running thread is in an atomic section; see `atomic_section`.
    pub in_section: Cell<bool>,
    /// The choice that the policy has announced in advance, if any.
    pub known: KnownChoice,
    /// For the race check: the epoch of the running thread.
    pub now: Cell<Epoch>,
    /// Threads whose next operation can be done or can time out.
    pub enabled: Bits,
    /// The threads of `enabled` whose next operation cannot be done: if scheduled, they time out or run a
    /// signal handler.
    pub late: Bits,
    /// Threads that wait with a deadline, that may wake up spuriously, or that wait and are `signalled`. A
    /// thread of this set without a deadline has the deadline `u64::MAX`.
    pub(super) timed: Bits,
    /// The disabled threads of `timed`: while other threads can run, their deadlines are too distant to fire.
    /// `fars` is their number.
    pub(super) far: Bits,
    pub(super) fars: Cell<usize>,
    /// The time-out horizon: how far ahead a deadline may lie and still fire while other threads can run.
    pub horizon: Cell<u64>,
    /// How often a thread may repeat itself in vain, or yield, before it has to give way to the others.
    pub patience: Cell<u32>,
    /// Threads with a signal to take before they continue. If such a thread waits, it is enabled, because it
    /// can run the handler. If its operation cannot be done, it is in `late`, too.
    pub signalled: Bits,
    /// Threads that may not run now. Fairness makes them give way to an enabled thread (see `fair`), a script
    /// holds them, or they are watchdog timers, which come last (see `shim::timer`).
    pub barred: Bits,
    /// The number of errands, which [`step_work`] checks in each step. Errands are waits for a
    /// `pthread_once` in progress (`shim::once`), armed timers (`shim::timer`), waits for descriptors and
    /// calls that block in the kernel (`blocking`), and real time. The bit [`WATCHED`] is set where every
    /// step has to be reported.
    pub(super) step_work: Cell<usize>,
    /// The last [`Thread::ticket`] that was handed out.
    pub(super) tickets: Cell<u64>,
    /// A hash table from objects to the threads that need them, for the first 64 threads. So acquiring and
    /// releasing look at few threads.
    needed: [Cell<u64>; NEEDED],
    /// The object that the next operation of each thread needs. It is 0 if the operation never blocks, or if
    /// the thread runs.
    pub(super) needs: [Cell<usize>; MAX_THREADS],
    threads: [Thread; MAX_THREADS],
}

/// The scheduler. All fields are zero, so it takes no space in the library; [`init`] sets other initial
/// values.
pub static SCHED: Sched = Sched {
    active: Flag::new(false),
    state: Guarded::new(State {
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
        in_section: Cell::new(false),
        known: KnownChoice::new(),
        now: Cell::new(Epoch::NONE),
        enabled: Bits::new(),
        late: Bits::new(),
        timed: Bits::new(),
        far: Bits::new(),
        fars: Cell::new(0),
        horizon: Cell::new(0),
        patience: Cell::new(0),
        signalled: Bits::new(),
        barred: Bits::new(),
        needed: [const { Cell::new(0) }; NEEDED],
        needs: [const { Cell::new(0) }; MAX_THREADS],
        step_work: Cell::new(0),
        tickets: Cell::new(0),
        threads: [const { Thread::new() }; MAX_THREADS],
    }),
};

/// Adds the main thread and sets no limit.
pub fn init() {
    for never in [&SCHED.alarm, &SCHED.tail, &SCHED.plain_until, &SCHED.limit] {
        never.set(u32::MAX);
    }
    SCHED.patience.set(PATIENCE);
    SCHED.hash.set(hash::EMPTY);
    add(0, None);
}

/// Why the running thread calls the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The thread could continue: running another one is a preemption.
    Preemptible,
    /// The thread yields: running another one costs no preemption.
    Yields,
    /// The thread cannot continue.
    Blocks,
}

/// The number of the running thread.
#[inline]
pub fn me() -> usize {
    SCHED.current.get() as usize
}

/// The record of the thread with this number.
#[inline]
pub fn thread(number: usize) -> &'static Thread {
    &SCHED.threads[number]
}

/// All threads created so far.
pub fn threads() -> impl Iterator<Item = (usize, &'static Thread)> {
    SCHED.threads[..SCHED.count.get()].iter().enumerate()
}

/// Whether any thread other than the running one may still take a step: a thread that has not ended, or a
/// timer.
pub fn has_others() -> bool {
    let number = me();
    let own = |word: usize| if word == number / 64 { 1 << (number % 64) } else { 0 };
    SCHED.live.get() > 1 || (0..words()).any(|word| SCHED.enabled.word(word) & !own(word) != 0)
}

/// The number of words in use in a set of threads.
#[inline]
pub fn words() -> usize {
    SCHED.count.get().div_ceil(64)
}

/// A scheduling point before an operation that never blocks. Returns when the thread shall do the operation.
#[inline(always)]
pub fn point(op: Op, object: usize, pc: usize) {
    let number = me();
    thread(number).about_to(op, object, pc);
    if !SCHED.known.goes_on(number, op as u8) {
        reschedule(Reason::Preemptible);
    }
    event(op, object, pc);
}

/// A scheduling point at which the thread yields.
pub fn yield_point(op: Op, pc: usize) {
    let t = thread(me());
    t.about_to(op, 0, pc);
    clock::yielded();
    fair::yielded(me());
    reschedule(Reason::Yields);
    event(op, 0, pc);
}

/// The bit of `step_work` that reports every step to `policy`, `dependence` or `symmetry`. Other executions
/// pay nothing for it.
const WATCHED: usize = 1 << 63;

/// Sets, as an execution begins, whether every step is reported to `policy`, `dependence` or `symmetry`.
pub fn watch_steps() {
    let watched = policy::watches() || dependence::wanted() || symmetry::wanted();
    SCHED.step_work.set(SCHED.step_work.get() & !WATCHED | if watched { WATCHED } else { 0 });
    SCHED.known.forget();
}

/// Adds an errand: something that [`step_work`] has to check in each step.
pub fn add_errand() {
    SCHED.step_work.set(SCHED.step_work.get() + 1);
    SCHED.known.forget();
}

/// Whether there are errands.
pub fn has_errands() -> bool {
    SCHED.step_work.get() & !WATCHED != 0
}

/// Removes an errand.
pub fn remove_errand() {
    SCHED.step_work.set(SCHED.step_work.get() - 1);
}

/// Enables a thread: it can do its next operation from now on.
#[inline]
pub fn enable(number: usize) {
    if fair::in_use() {
        fair::enabled(number);
    }
    SCHED.enabled.add(number);
    SCHED.late.remove(number);
    not_far(number);
}

/// Disables a thread: it cannot do its next operation from now on. If it has a near deadline, it can still
/// time out.
#[inline]
pub(super) fn disable(number: usize) {
    if fair::in_use() {
        fair::disabled(number);
    }
    if !SCHED.timed.has(number) {
        SCHED.enabled.remove(number);
    } else if SCHED.signalled.has(number) || is_near(thread(number).deadline.get()) {
        SCHED.late.add(number);
        SCHED.enabled.add(number);
    } else {
        SCHED.enabled.remove(number);
        if !SCHED.far.has(number) {
            SCHED.far.add(number);
            SCHED.fars.set(SCHED.fars.get() + 1);
        }
        deadline::note_far();
    }
}

/// Prevents a thread that was just added from starting.
pub fn hold(number: usize) {
    disable(number);
}

/// `object` is no longer available: disables all threads that need it.
#[inline]
pub fn taken(object: usize) {
    each_in_need(object, disable);
}

/// `object` is available: enables all threads that need it.
#[inline]
pub fn freed(object: usize) {
    each_in_need(object, enable);
}

/// Calls `change` with every thread that needs `object`.
#[inline(always)]
fn each_in_need(object: usize, change: impl Fn(usize)) {
    let mut set = SCHED.needed[place_of_need(object)].get();
    while set != 0 {
        let number = set.trailing_zeros() as usize;
        set &= set - 1;
        if SCHED.needs[number].get() == object {
            change(number);
        }
    }
    for number in 64..SCHED.count.get() {
        if SCHED.needs[number].get() == object {
            change(number);
        }
    }
}

#[inline]
fn place_of_need(object: usize) -> usize {
    object.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (usize::BITS - NEEDED.ilog2())
}

/// Sets the object that a thread needs before it can continue; 0 for none.
#[inline]
pub(super) fn set_need(number: usize, object: usize) {
    let before = SCHED.needs[number].replace(object);
    if number < 64 {
        let place = |object| &SCHED.needed[place_of_need(object)];
        if before != 0 {
            place(before).set(place(before).get() & !(1 << number));
        }
        if object != 0 {
            place(object).set(place(object).get() | 1 << number);
        }
    }
}

/// Whether any thread needs `object` or waits in its queue.
pub fn awaited(object: usize) -> bool {
    threads().any(|(number, t)| SCHED.needs[number].get() == object || t.waits_in(object))
}

/// The key of a lock that does not record its owner. It differs from the lock's address, because the engine
/// looks for the owner of a mutex there.
pub const fn without_owner(lock: usize) -> usize {
    lock | heisen_wire::WITHOUT_OWNER as usize
}

/// Whether any thread needs `object`.
#[inline]
pub fn is_needed(object: usize) -> bool {
    (SCHED.needed[place_of_need(object)].get() != 0 || SCHED.count.get() > 64)
        && (0..SCHED.count.get()).any(|number| SCHED.needs[number].get() == object)
}

/// The object that a thread needs before it can continue; 0 for none.
pub fn needs(number: usize) -> usize {
    SCHED.needs[number].get()
}

/// The running thread can never continue, because it needs `object`.
pub fn cannot(object: usize) {
    set_need(me(), object);
    SCHED.enabled.remove(me());
}

/// Counts a step.
#[inline]
pub fn next_step() -> u32 {
    let step = SCHED.step.get() + 1;
    SCHED.step.set(step);
    wire_log::steps(step);
    if step >= SCHED.alarm.get() {
        alarm(step);
    }
    step
}

/// Counts a step at a scheduling point, where the runtime also notices signals from outside. Returns `None`
/// in an atomic section if the thread is able to continue: that is not a step.
#[inline]
fn next_step_at_point(able: bool) -> Option<u32> {
    let step = SCHED.step.get() + 1;
    SCHED.step.set(step);
    wire_log::steps(step);
    if step >= SCHED.alarm.get() { alarm_at_point(step, able) } else { Some(step) }
}

/// Handles the things that are due at a scheduling point. A script may hold the running thread, signals from
/// outside are handed to threads, and the running thread takes its own signals. Returns the step from here
/// on, if it is a step.
#[cold]
fn alarm_at_point(step: u32, able: bool) -> Option<u32> {
    if SCHED.in_section.get() {
        if able {
            SCHED.step.set(step - 1);
            wire_log::steps(step - 1);
            return None;
        }
        atomic_section::interrupted();
    }
    if script_state::is_on() {
        hooks::script_step();
    }
    hooks::collect_signals();
    alarm(step);
    recurrence::stepped(step);
    let number = me();
    if SCHED.signalled.has(number) && !SCHED.timed.has(number) {
        hooks::deliver();
    }
    Some(if SCHED.step.get() == step { step } else { next_step() })
}

/// Does the work of each step for state that changes without a call of the scheduler. `able` says whether the
/// running thread is able to continue.
#[cold]
fn step_work(able: bool) {
    if SCHED.step_work.get() & WATCHED != 0 {
        if policy::watches() {
            policy::stepped(me());
        }
        if symmetry::wanted() {
            symmetry::stepped();
        }
        // A thread that the script has stopped has not taken its step.
        if dependence::wanted() && !(script_state::is_on() && hooks::script_stopped()) {
            dependence::stepped();
        }
    }
    if !has_errands() {
        return;
    }
    hooks::recheck();
    if clock::is_real() {
        time_passed();
    }
    hooks::errands(able);
}

/// A word of the set of candidates for the next step: threads that are enabled and not barred.
#[inline]
pub fn candidates(word: usize) -> u64 {
    SCHED.enabled.word(word) & !SCHED.barred.word(word)
}

/// Whether a thread is a candidate.
#[inline]
pub fn is_candidate(number: usize) -> bool {
    candidates(number / 64) >> (number % 64) & 1 != 0
}

#[inline(always)]
pub(super) fn count_candidates() -> usize {
    let first = candidates(0).count_ones() as usize;
    if SCHED.count.get() <= 64 { first } else { first + count_other_candidates() }
}

#[cold]
fn count_other_candidates() -> usize {
    (1..words()).map(|word| candidates(word).count_ones() as usize).sum()
}

/// Ends the running thread's turn: chooses the thread that takes the next step and switches to it. Returns
/// when the calling thread is scheduled again.
///
/// It is inlined into the intercepted functions. After a switch the processor mispredicts every return, so
/// there should be few of them.
#[inline(always)]
pub fn reschedule(reason: Reason) {
    let number = me();
    let Some(step) = next_step_at_point(reason == Reason::Preemptible) else { return };
    if SCHED.step_work.get() != 0 {
        step_work(reason == Reason::Preemptible);
    }
    fair::bar();
    let mut options = count_candidates();
    if options == 0 {
        if !symmetry::release_all() {
            let_time_pass();
        }
        options = count_candidates();
    }
    let able = reason == Reason::Preemptible && (!SCHED.barred.has(number) || scope::in_region(number));
    let next = if options > 1 {
        decision::decide(number, step, able, options)
    } else if able {
        number
    } else if options == 1 {
        decision::after(number).unwrap_or(number)
    } else {
        nobody(number)
    };
    SCHED.hash.set(hash::fold(SCHED.hash.get(), number as u16, thread(number).op.get(), options as u16));
    if next != number {
        switch_to(number, next);
    }
}

/// No thread can take a step. Waits for a signal from outside, if one may come; otherwise it is a deadlock.
#[cold]
fn nobody(number: usize) -> usize {
    while script_state::is_on() && hooks::script_nobody() {
        if let Some(next) = decision::after(number) {
            return next;
        }
    }
    while hooks::wait_for_signal_from_outside() {
        if let Some(next) = decision::after(number) {
            return next;
        }
    }
    pause::deadlock()
}

#[inline(always)]
fn switch_to(from: usize, to: usize) {
    SCHED.current.set(to as u16);
    let t = thread(to);
    t.scheduled_at.set(SCHED.step.get());
    SCHED.now.set(t.epoch.get());
    dependence::switched(to);
    operation_log::switched(to);
    fair::scheduled(to);
    if thread(from).mid_function.get() {
        xsave::preserved(|| switch_stack(thread(from), t));
    } else {
        switch_stack(thread(from), t);
    }
}

/// Switches to another thread; returns when `from` is switched to again.
#[inline]
fn switch_stack(from: &Thread, to: &Thread) {
    if SCHED.kernel.get() {
        return hooks::switch_kernel_thread(from, to);
    }
    // SAFETY: `to` is not running. Its saved stack pointer points at a frame that this very switch or
    // `carrier::fibers::create` has written. Its fs base is a live control block.
    unsafe { registers::switch(&raw const from.sp, to.sp.get(), to.fs.get()) };
}

/// Adds a thread that is enabled and about to start. `parent` is `None` for the main thread. The carrier has
/// filled in its own fields before.
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
    SCHED.count.set(number + 1);
    SCHED.live.set(SCHED.live.get() + 1);
    wire_log::threads_created(number + 1);
    if symbolic_log::is_on() {
        operation_log::created(number);
    }
    policy::created(number);
    if let Some(parent) = parent {
        t.blocked.set(thread(parent).blocked.get());
        hooks::created(number);
        dependence::enables(number);
    }
    enable(number);
}

/// The running thread has ended: enables the threads that join it. Never returns.
pub fn end() -> ! {
    let number = me();
    let t = thread(number);
    t.ended.set(true);
    t.about_to(Op::End, 0, 0);
    operation_log::ends();
    SCHED.live.set(SCHED.live.get() - 1);
    SCHED.enabled.remove(number);
    SCHED.signalled.remove(number);
    hooks::forget_signals(number);
    dependence::ended(t.fs.get());
    freed(t.fs.get());
    if script_state::is_on() {
        hooks::script_end();
    }
    reschedule(Reason::Blocks);
    unreachable!()
}
