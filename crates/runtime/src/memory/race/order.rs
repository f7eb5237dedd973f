//! Happens-before between threads: what each thread knows of the others, and the clocks that it leaves at
//! objects for later threads.
//!
//! The shim calls [`release`] where a thread lets others pass, and [`acquire`] where it passes itself, both
//! with the address of the object. The clock of an object is stored with the object's memory (see `shadow`), so
//! that it is forgotten when the memory is reused. Objects without an address get an artificial one from
//! [`key`](crate::sched::object_key::key).

use super::shadow;
use super::vector_clock::Known;
use crate::platform::baton::Guarded;
use crate::sched::access_mode::{is_on, mode};
use crate::sched::epoch::Epoch;
use crate::sched::hooks::HOOKS;
use crate::sched::{SCHED, me, thread as record, threads};
use core::cell::Cell;
use heisen_wire::MAX_THREADS;

// As for `sched::Sched`.
#[repr(C, align(4096))]
pub struct Threads {
    /// Counts the changes to all clocks.
    changes: Cell<u64>,
    /// For [`settled`]: the thread of the last question, the number of changes at that time, and the answer.
    settled: Cell<(u32, u64, u32)>,
    clocks: [Known; MAX_THREADS],
    /// For fences: the clock at the last release fence, and the clock that the next acquire fence will join.
    fence_release: [Known; MAX_THREADS],
    fence_acquire: [Known; MAX_THREADS],
}

pub static THREADS: Guarded<Threads> = Guarded::new(Threads {
    clocks: [const { Known::new() }; MAX_THREADS],
    fence_release: [const { Known::new() }; MAX_THREADS],
    fence_acquire: [const { Known::new() }; MAX_THREADS],
    changes: Cell::new(1),
    settled: Cell::new((0, 0, 0)),
});

/// Plugs this module into the hooks of the scheduler.
pub fn plug_in() {
    HOOKS.created.set(created);
    HOOKS.acquire.set(acquire);
    HOOKS.release.set(release);
}

/// The epoch of the running thread, without any bytes.
#[inline(always)]
pub fn now() -> Epoch {
    SCHED.now.get()
}

/// Whether scheduling points order an epoch before the thread's current step.
#[inline(always)]
pub fn knows(thread: usize, epoch: Epoch) -> bool {
    THREADS.clocks[thread].points.of(epoch.thread()) >= epoch.clock()
}

/// Whether any operation orders an epoch before the thread's current step.
pub fn knows_at_all(thread: usize, epoch: Epoch) -> bool {
    THREADS.clocks[thread].all.of(epoch.thread()) >= epoch.clock()
}

fn changed() {
    THREADS.changes.set(THREADS.changes.get() + 1);
}

/// Whether an epoch is ordered before the next step of every live thread, so that nothing can conflict with it.
pub fn settled(epoch: Epoch) -> bool {
    let thread = epoch.thread();
    let (asked, at, answer) = THREADS.settled.get();
    let answer = if (asked as usize, at) == (thread, THREADS.changes.get()) {
        answer
    } else {
        let live = threads().filter(|(_, t)| !t.ended.get());
        let least =
            live.map(|(number, _)| THREADS.clocks[number].points.of(thread)).min().unwrap_or(u32::MAX);
        THREADS.settled.set((thread as u32, THREADS.changes.get(), least));
        least
    };
    answer >= epoch.clock()
}

/// Begins a new epoch of the thread: its next accesses are later than all earlier ones.
fn advance(thread: usize) {
    let clock = THREADS.clocks[thread].points.of(thread) + 1;
    THREADS.clocks[thread].set(thread, clock);
    record(thread).epoch.set(Epoch::new(clock, thread));
    SCHED.now.set(record(me()).epoch.get());
    changed();
}

/// From here on order is recorded: every thread is ordered after everything so far.
pub fn begin() {
    for (number, _) in threads() {
        advance(number);
    }
    for (number, _) in threads() {
        for (other, _) in threads() {
            THREADS.clocks[number].join(&THREADS.clocks[other]);
        }
    }
    for (number, _) in threads() {
        advance(number);
    }
}

/// The running thread has created a thread, which is ordered after it.
pub fn created(thread: usize) {
    if is_on(mode::CHECK) {
        THREADS.clocks[thread].join(&THREADS.clocks[me()]);
        advance(me());
        advance(thread);
    }
}

/// Orders the running thread after everything that the other thread did.
pub fn learn_from(thread: usize) {
    if is_on(mode::CHECK) {
        THREADS.clocks[me()].join(&THREADS.clocks[thread]);
        changed();
    }
}

/// Orders another thread, which waits, after everything that the running thread did.
pub fn teach(thread: usize) {
    if is_on(mode::CHECK) {
        THREADS.clocks[thread].join(&THREADS.clocks[me()]);
        advance(me());
    }
}

/// The running thread passes an object: it joins the object's clock.
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
        THREADS.clocks[thread].join(clock);
        changed();
    }
}

/// The running thread lets others pass an object: it adds its clock to the object's.
#[inline]
pub fn release(object: usize) {
    if is_on(mode::CHECK) {
        leave(object);
    }
}

#[cold]
fn leave(object: usize) {
    let thread = me();
    shadow::leave_at(object).join(&THREADS.clocks[thread]);
    advance(thread);
}

/// The clock of the running thread.
pub fn mine() -> &'static Known {
    &THREADS.clocks[me()]
}

/// The running thread joins a clock, by an operation that is a scheduling point or not.
pub fn learn(is_point: bool, known: &Known) {
    THREADS.clocks[me()].join_by(is_point, known);
    changed();
}

/// Begins a new epoch of the running thread, after it has left its clock somewhere.
pub fn step() {
    advance(me());
}

/// The running thread's clock at its last release fence.
pub fn fence_release() -> &'static Known {
    &THREADS.fence_release[me()]
}

/// The clock that its next acquire fence will join.
pub fn fence_acquire() -> &'static Known {
    &THREADS.fence_acquire[me()]
}
