//! Happens-before between threads: what each thread knows of the others, and what it leaves at objects for those that
//! come after it.
//!
//! The shim calls [`release`] where a thread lets others pass, and [`acquire`] where it passes itself, both with the address of
//! the object. What is left there is kept with the memory of the object (see `shadow`), so that it is forgotten when the
//! memory is used for something else. Things that have no address have one made up by
//! [`key`](crate::sched::object_key::key).

use super::shadow;
use super::vector_clock::Known;
use crate::platform::baton::Guarded;
use crate::sched::access_mode::{is_on, mode};
use crate::sched::epoch::Epoch;
use crate::sched::hooks::HOOKS;
use crate::sched::{S, me, thread as record, threads};
use core::cell::Cell;
use heisen_wire::MAX_THREADS;

// As for `sched::Sched`.
#[repr(C, align(4096))]
pub struct Threads {
    /// Counts what changes any clock.
    changes: Cell<u64>,
    /// For [`settled`]: the thread that was asked for last, at which change, and the answer.
    settled: Cell<(u32, u64, u32)>,
    clocks: [Known; MAX_THREADS],
    /// For fences: what was known at the last release fence, what acquire fences will learn.
    fence_release: [Known; MAX_THREADS],
    fence_acquire: [Known; MAX_THREADS],
}

pub static T: Guarded<Threads> = Guarded::new(Threads {
    clocks: [const { Known::new() }; MAX_THREADS],
    fence_release: [const { Known::new() }; MAX_THREADS],
    fence_acquire: [const { Known::new() }; MAX_THREADS],
    changes: Cell::new(1),
    settled: Cell::new((0, 0, 0)),
});

/// Lets the scheduler call this module.
pub fn plug_in() {
    HOOKS.created.set(created);
    HOOKS.acquire.set(acquire);
    HOOKS.release.set(release);
}

/// The epoch of the running thread, without any bytes.
#[inline(always)]
pub fn now() -> Epoch {
    S.now.get()
}

/// Whether scheduling points order what happened at an epoch before what the thread does now.
#[inline(always)]
pub fn knows(thread: usize, epoch: Epoch) -> bool {
    T.clocks[thread].points.of(epoch.thread()) >= epoch.clock()
}

/// Whether anything does.
pub fn knows_at_all(thread: usize, epoch: Epoch) -> bool {
    T.clocks[thread].all.of(epoch.thread()) >= epoch.clock()
}

fn changed() {
    T.changes.set(T.changes.get() + 1);
}

/// What happened at an epoch is known to every thread that can still do anything, so that nothing can conflict with it.
pub fn settled(epoch: Epoch) -> bool {
    let thread = epoch.thread();
    let (asked, at, answer) = T.settled.get();
    let answer = if (asked as usize, at) == (thread, T.changes.get()) {
        answer
    } else {
        let live = threads().filter(|(_, t)| !t.ended.get());
        let least = live.map(|(number, _)| T.clocks[number].points.of(thread)).min().unwrap_or(u32::MAX);
        T.settled.set((thread as u32, T.changes.get(), least));
        least
    };
    answer >= epoch.clock()
}

/// The thread's next accesses are later than those it had.
fn advance(thread: usize) {
    let clock = T.clocks[thread].points.of(thread) + 1;
    T.clocks[thread].set(thread, clock);
    record(thread).epoch.set(Epoch::new(clock, thread));
    S.now.set(record(me()).epoch.get());
    changed();
}

/// From here on order is kept: everyone knows what anyone has done so far.
pub fn begin() {
    for (number, _) in threads() {
        advance(number);
    }
    for (number, _) in threads() {
        for (other, _) in threads() {
            T.clocks[number].join(&T.clocks[other]);
        }
    }
    for (number, _) in threads() {
        advance(number);
    }
}

/// The running thread has created one, which knows what it knows.
pub fn created(thread: usize) {
    if is_on(mode::CHECK) {
        T.clocks[thread].join(&T.clocks[me()]);
        advance(me());
        advance(thread);
    }
}

/// The running thread knows from now on all that the other did.
pub fn learn_from(thread: usize) {
    if is_on(mode::CHECK) {
        T.clocks[me()].join(&T.clocks[thread]);
        changed();
    }
}

/// Another thread, which waits, knows from now on all that the running one did.
pub fn teach(thread: usize) {
    if is_on(mode::CHECK) {
        T.clocks[thread].join(&T.clocks[me()]);
        advance(me());
    }
}

/// The running thread passes an object: it knows what was left there.
#[inline]
pub fn acquire(object: usize) {
    if is_on(mode::CHECK) {
        acquire_for(me(), object);
    }
}

/// Another thread, which waits, passes an object.
#[cold]
pub fn acquire_for(thread: usize, object: usize) {
    if is_on(mode::CHECK)
        && let Some(clock) = shadow::left_at(object)
    {
        T.clocks[thread].join(clock);
        changed();
    }
}

/// The running thread lets others pass an object: it leaves there what it knows.
#[inline]
pub fn release(object: usize) {
    if is_on(mode::CHECK) {
        leave(object);
    }
}

#[cold]
fn leave(object: usize) {
    let thread = me();
    shadow::leave_at(object).join(&T.clocks[thread]);
    advance(thread);
}

/// What the running thread knows.
pub fn mine() -> &'static Known {
    &T.clocks[me()]
}

/// The running thread learns what is known elsewhere, by an operation that is a scheduling point or not.
pub fn learn(is_point: bool, known: &Known) {
    T.clocks[me()].join_by(is_point, known);
    changed();
}

/// The running thread's accesses from now on are later than what it has left.
pub fn step() {
    advance(me());
}

/// What the running thread knew at its last release fence.
pub fn fence_release() -> &'static Known {
    &T.fence_release[me()]
}

/// What its next acquire fence will learn.
pub fn fence_acquire() -> &'static Known {
    &T.fence_acquire[me()]
}
