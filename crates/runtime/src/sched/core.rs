//! The core of the scheduler: the sets of threads, the choice and the switch.
//!
//! After CHESS (OSDI'08), sections 3.3, 3.4 and 4.1: a thread stops just *before* each visible operation; it is
//! enabled if that operation can be done now; replay follows the plan's overrides, then the policy records. Unlike
//! CHESS, which wakes all waiters of a resource and lets them try again, whether a thread is enabled is exact here:
//! taking a lock disables those that are about to take it, so no step is wasted and the number of executions of a
//! small program can be worked out by hand.
//!
//! Here is what every scheduling point touches. The record of a thread is in [`Thread`], and the ways to wait are in files of
//! their own: for an object or a signal (`wait`), in a queue (`queue`), until a deadline (`deadline`).
//!
//! Everything is a [`Cell`] in one static, which only the kernel thread that holds the baton touches (see [`Guarded`]). A
//! switch happens only in [`reschedule`], when nothing is borrowed.

use super::alarm::alarm;
use super::deadline::{self, is_near, let_time_pass, not_far, time_passed};
use super::epoch::Epoch;
use super::events::event;
use super::thread_set::Bits;
use super::{KnownChoice, Thread};
use super::{
    atomic_section, clock, decision, dependence, fair, hooks, pause, policy, recurrence, scope, script_state,
    symmetry,
};
use crate::platform::baton::{Flag, Guarded};
use crate::platform::{registers, xsave};
use crate::wire_log;
use core::cell::Cell;
use core::mem::offset_of;
use core::ops::Deref;
use heisen_trace::{Op, hash};
use heisen_wire::MAX_THREADS;

/// "No thread".
pub const NONE: u16 = 0xffff;

/// A power of two.
const NEEDED: usize = 64;

/// The scheduler's state. What every execution writes is at the beginning, and so on one page: snapshots restore whole pages.
#[derive(Debug)]
#[repr(C, align(4096))]
pub struct Sched {
    /// Whether this process is controlled; false before start-up, without an engine, and in a forked child.
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
    /// Where the epoch of the running thread is, for assembly.
    pub const NOW: usize = offset_of!(Sched, state) + offset_of!(State, now);
}

/// What only a controlled process has. Its fields are those of [`Sched`], by its `Deref`.
#[derive(Debug)]
#[repr(C)]
pub struct State {
    /// Whether an execution runs; false from start-up to the zygote point.
    pub running: Cell<bool>,
    /// Whether threads are kernel threads rather than fibers; see `carrier::kernel_threads`.
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
    /// Whether the running thread is in an atomic section: see `atomic_section`.
    pub in_section: Cell<bool>,
    /// A choice that is known before it comes up.
    pub known: KnownChoice,
    /// For the race check: the epoch of the running thread.
    pub now: Cell<Epoch>,
    /// Threads whose next operation can be done, or can time out.
    pub enabled: Bits,
    /// Those of `enabled` whose next operation cannot be done: if scheduled, they time out.
    pub late: Bits,
    /// Threads that wait with a deadline, may wake up spuriously, or wait and are `signalled`; those without a deadline
    /// have one of `u64::MAX`.
    pub(super) timed: Bits,
    /// Those of `timed` that are not enabled, as their deadline is too far away for a timeout while others can go on;
    /// and how many they are.
    pub(super) far: Bits,
    pub(super) fars: Cell<usize>,
    /// How far away a deadline may be for a timeout while others can go on.
    pub horizon: Cell<u64>,
    /// Threads that have a signal to take before they go on. One whose operation cannot be done is `late`, too: it is
    /// enabled, since it can run the handler.
    pub signalled: Bits,
    /// Threads that may not run: while a thread they have to give way to is enabled, see `fair`, or while a script holds them.
    pub barred: Bits,
    /// How many there are that [`look_again`] has to look at in each step: threads that wait for a `pthread_once` in
    /// progress (see `shim::once`), timers that would end the program (see `shim::timer`), waits for descriptors
    /// and calls that are out (see `blocking`), real time. And [`WATCHED`], where every step is looked at.
    pub(super) look_again: Cell<usize>,
    /// Source of [`Thread::ticket`].
    pub(super) tickets: Cell<u64>,
    /// Of the first 64 threads, those that need something, by a hash of it: acquiring and releasing look at few of them.
    needed: [Cell<u64>; NEEDED],
    /// What the next operation of each thread needs to be available; 0 if it never blocks, or if the thread runs.
    pub(super) needs: [Cell<usize>; MAX_THREADS],
    threads: [Thread; MAX_THREADS],
}

/// The one scheduler. All zeros, so that it takes no space in the library; [`init`] sets the rest.
pub static S: Sched = Sched {
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
        signalled: Bits::new(),
        barred: Bits::new(),
        needed: [const { Cell::new(0) }; NEEDED],
        needs: [const { Cell::new(0) }; MAX_THREADS],
        look_again: Cell::new(0),
        tickets: Cell::new(0),
        threads: [const { Thread::new() }; MAX_THREADS],
    }),
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

/// Whether anyone but the running thread may still take a step: a thread that has not ended, or a timer.
pub fn has_others() -> bool {
    let number = me();
    let own = |word: usize| if word == number / 64 { 1 << (number % 64) } else { 0 };
    S.live.get() > 1 || (0..words()).any(|word| S.enabled.word(word) & !own(word) != 0)
}

/// Words in use of the sets of threads.
#[inline]
pub fn words() -> usize {
    S.count.get().div_ceil(64)
}

/// A scheduling point before an operation that never blocks. Returns when it is to be done.
#[inline(always)]
pub fn point(op: Op, object: usize, pc: usize) {
    let number = me();
    thread(number).about_to(op, object, pc);
    if !S.known.goes_on(number, op as u8) {
        reschedule(Gives::Able);
    }
    event(op, object, pc);
}

/// A scheduling point at which the thread gives way.
pub fn yield_point(op: Op, pc: usize) {
    let t = thread(me());
    t.about_to(op, 0, pc);
    clock::yielded();
    fair::yielded(me());
    reschedule(Gives::Yields);
    event(op, 0, pc);
}

/// A bit of `look_again`: `policy`, `dependence` or `symmetry` has to know of every step. So no other execution pays for it.
const WATCHED: usize = 1 << 63;

/// Whether every step of the execution that begins is shown to `policy`, `dependence` or `symmetry`.
pub fn watch_steps() {
    let watched = policy::watches() || dependence::wanted() || symmetry::wanted();
    S.look_again.set(S.look_again.get() & !WATCHED | if watched { WATCHED } else { 0 });
    S.known.forget();
}

/// There is one thing more, or less, that [`look_again`] has to look at.
pub fn add_errand() {
    S.look_again.set(S.look_again.get() + 1);
    S.known.forget();
}

/// Whether there is anything for [`look_again`] to look at.
pub fn has_errands() -> bool {
    S.look_again.get() & !WATCHED != 0
}

pub fn remove_errand() {
    S.look_again.set(S.look_again.get() - 1);
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
pub(super) fn disable(number: usize) {
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
        deadline::note_far();
    }
}

/// A thread that was just added cannot start yet.
pub fn hold(number: usize) {
    disable(number);
}

/// `object` is no longer free: disables all that need it.
#[inline]
pub fn taken(object: usize) {
    each_in_need(object, disable);
}

/// `object` is free: enables all that need it.
#[inline]
pub fn freed(object: usize) {
    each_in_need(object, enable);
}

/// Calls `change` with every thread that needs `object`.
#[inline(always)]
fn each_in_need(object: usize, change: impl Fn(usize)) {
    let mut set = S.needed[place_of_need(object)].get();
    while set != 0 {
        let number = set.trailing_zeros() as usize;
        set &= set - 1;
        if S.needs[number].get() == object {
            change(number);
        }
    }
    for number in 64..S.count.get() {
        if S.needs[number].get() == object {
            change(number);
        }
    }
}

#[inline]
fn place_of_need(object: usize) -> usize {
    object.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (usize::BITS - NEEDED.ilog2())
}

/// From now on, a thread needs `object` before it can go on; nothing if that is 0.
#[inline]
pub(super) fn set_need(number: usize, object: usize) {
    let before = S.needs[number].replace(object);
    if number < 64 {
        let place = |object| &S.needed[place_of_need(object)];
        if before != 0 {
            place(before).set(place(before).get() & !(1 << number));
        }
        if object != 0 {
            place(object).set(place(object).get() | 1 << number);
        }
    }
}

/// Whether any thread needs `object`, or waits in its queue.
pub fn awaited(object: usize) -> bool {
    threads().any(|(number, t)| S.needs[number].get() == object || t.waits_in(object))
}

/// The name under which a lock that nobody owns is needed. It differs from the lock's address, where a mutex would have its owner.
pub const fn without_owner(lock: usize) -> usize {
    lock | heisen_wire::WITHOUT_OWNER as usize
}

/// Whether any thread needs `object`.
#[inline]
pub fn is_needed(object: usize) -> bool {
    (S.needed[place_of_need(object)].get() != 0 || S.count.get() > 64)
        && (0..S.count.get()).any(|number| S.needs[number].get() == object)
}

/// What a thread needs before it can go on; 0 if nothing.
pub fn needs(number: usize) -> usize {
    S.needs[number].get()
}

/// The running thread can never go on, as it needs `object`.
pub fn cannot(object: usize) {
    set_need(me(), object);
    S.enabled.remove(me());
}

/// Counts a step.
#[inline]
pub fn next_step() -> u32 {
    let step = S.step.get() + 1;
    S.step.set(step);
    wire_log::steps(step);
    if step >= S.alarm.get() {
        alarm(step);
    }
    step
}

/// Counts a step at a scheduling point, where signals from outside are noticed. None if the thread is able to go on, in an atomic
/// section: that is no step.
#[inline]
fn next_step_at_point(able: bool) -> Option<u32> {
    let step = S.step.get() + 1;
    S.step.set(step);
    wire_log::steps(step);
    if step >= S.alarm.get() { alarm_at_point(step, able) } else { Some(step) }
}

/// Something is due. A script may hold the thread; signals from outside are handed to threads; the running one takes its own
/// here. The step from here on, if it is one.
#[cold]
fn alarm_at_point(step: u32, able: bool) -> Option<u32> {
    if S.in_section.get() {
        if able {
            S.step.set(step - 1);
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
    if S.signalled.has(number) && !S.timed.has(number) {
        hooks::deliver();
    }
    Some(if S.step.get() == step { step } else { next_step() })
}

/// What has to be looked at in each step, where nobody tells when it changes; `able` says whether the running thread can go
/// on in any case.
#[cold]
fn look_again(able: bool) {
    if S.look_again.get() & WATCHED != 0 {
        if policy::watches() {
            policy::stepped(me());
        }
        if symmetry::wanted() {
            symmetry::stepped();
        }
        // To be held is no step.
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

/// Candidates for the next step: enabled and not barred.
#[inline]
pub fn candidates(word: usize) -> u64 {
    S.enabled.word(word) & !S.barred.word(word)
}

/// Whether a thread is one of them.
#[inline]
pub fn is_candidate(number: usize) -> bool {
    candidates(number / 64) >> (number % 64) & 1 != 0
}

#[inline(always)]
pub(super) fn count_candidates() -> usize {
    let first = candidates(0).count_ones() as usize;
    if S.count.get() <= 64 { first } else { first + count_other_candidates() }
}

#[cold]
fn count_other_candidates() -> usize {
    (1..words()).map(|word| candidates(word).count_ones() as usize).sum()
}

/// Ends the running thread's turn: chooses who takes the next step and switches there. Returns when the thread that
/// called is scheduled again.
///
/// Inlined all the way into the intercepted functions: after a switch every return goes to another place than the
/// processor predicts, so the fewer of them the better.
#[inline(always)]
pub fn reschedule(gives: Gives) {
    let number = me();
    let Some(step) = next_step_at_point(gives == Gives::Able) else { return };
    if S.look_again.get() != 0 {
        look_again(gives == Gives::Able);
    }
    fair::bar();
    let mut options = count_candidates();
    if options == 0 {
        if !symmetry::release_all() {
            let_time_pass();
        }
        options = count_candidates();
    }
    let able = gives == Gives::Able && (!S.barred.has(number) || scope::in_region(number));
    let next = if options > 1 {
        decision::decide(number, step, able, options)
    } else if able {
        number
    } else if options == 1 {
        decision::after(number).unwrap_or(number)
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
    S.current.set(to as u16);
    let t = thread(to);
    t.scheduled_at.set(S.step.get());
    S.now.set(t.epoch.get());
    dependence::switched(to);
    fair::scheduled(to);
    if thread(from).amid.get() {
        xsave::preserved(|| switch_stack(thread(from), t));
    } else {
        switch_stack(thread(from), t);
    }
}

/// Switches to another thread; returns when `from` is switched to again.
#[inline]
fn switch_stack(from: &Thread, to: &Thread) {
    if S.kernel.get() {
        return hooks::switch_kernel_thread(from, to);
    }
    // SAFETY: `to` is not running, so its saved stack pointer points at a frame that this very switch, or
    // `carrier::fibers::create`, laid down; its fs base is a live control block.
    unsafe { registers::switch(&raw const from.sp, to.sp.get(), to.fs.get()) };
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
    wire_log::threads_created(number + 1);
    policy::created(number);
    if let Some(parent) = parent {
        t.blocked.set(thread(parent).blocked.get());
        hooks::created(number);
        dependence::enables(number);
    }
    enable(number);
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
    hooks::forget_signals(number);
    dependence::ended(t.fs.get());
    freed(t.fs.get());
    if script_state::is_on() {
        hooks::script_end();
    }
    reschedule(Gives::Blocks);
    unreachable!()
}
