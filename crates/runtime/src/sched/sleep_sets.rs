//! Sleep sets: threads whose next step was explored from this state already. Every execution that begins with
//! that step was explored, unless a step that depends on it comes first. Until then the default policy does
//! not schedule them.
//!
//! Godefroid, Partial-Order Methods for the Verification of Concurrent Systems, 1996, chapter 5. The plan
//! lists the sleeping threads and what the next step of each touches. Touches of other threads wake them.

use crate::platform::baton::Guarded;
use crate::sched::thread_set::Bits;
use crate::sched::{SCHED, me};
use core::cell::Cell;
use core::sync::atomic::Ordering::Relaxed;
use heisen_wire::{MAX_THREADS, Override, Plan, sleeper};

struct Sleep {
    asleep: Bits,
    /// The number of sleeping threads.
    count: Cell<usize>,
    /// The step from which on they sleep.
    from: Cell<u32>,
    /// The list of their next touches, in the plan.
    list: Cell<&'static [Override]>,
}

static SLEEP: Guarded<Sleep> = Guarded::new(Sleep {
    asleep: Bits::new(),
    count: Cell::new(0),
    from: Cell::new(0),
    list: Cell::new(&[]),
});

/// An execution begins. The first entries of `list` describe the sleeping threads.
pub fn begin(list: &'static [Override], plan: &Plan) {
    wake_all();
    SLEEP.from.set(plan.sleep_from.load(Relaxed));
    SLEEP.list.set(&list[..list.len().min(plan.sleepers.load(Relaxed) as usize)]);
    for thread in sleepers(SLEEP.list.get()) {
        if !SLEEP.asleep.has(thread) {
            SLEEP.asleep.add(thread);
            SLEEP.count.set(SLEEP.count.get() + 1);
        }
    }
}

/// Wakes all threads.
pub fn wake_all() {
    for thread in sleepers(SLEEP.list.replace(&[])) {
        SLEEP.asleep.remove(thread);
    }
    SLEEP.count.set(0);
}

fn sleepers(list: &[Override]) -> impl Iterator<Item = usize> {
    list.iter().map(|one| one.expect.load(Relaxed) as usize % MAX_THREADS)
}

/// Whether any thread sleeps.
#[inline]
pub fn any() -> bool {
    SLEEP.count.get() != 0
}

/// Whether a thread sleeps.
pub fn asleep(thread: usize) -> bool {
    SLEEP.asleep.has(thread)
}

fn wake(thread: usize) {
    if SLEEP.asleep.has(thread) {
        SLEEP.asleep.remove(thread);
        SLEEP.count.set(SLEEP.count.get() - 1);
    }
}

/// The running thread touches an object.
pub fn touched(object: u64, write: bool) {
    if !any() || SCHED.step.get() < SLEEP.from.get() {
        return;
    }
    for (one, thread) in SLEEP.list.get().iter().zip(sleepers(SLEEP.list.get())) {
        let name = u64::from(one.step.load(Relaxed)) | u64::from(one.choice.load(Relaxed)) << 32;
        let wakes = match one.kind.load(Relaxed) {
            sleeper::READS => write && name == object,
            sleeper::WRITES => name == object,
            _ => false,
        };
        if wakes && thread != me() {
            wake(thread);
        }
    }
}

/// The running thread enables another thread, which wakes up.
pub fn enabled(thread: usize) {
    if any() && SCHED.step.get() >= SLEEP.from.get() {
        wake(thread);
    }
}

/// The running thread has ended its step. The scheduler's step number is one higher already.
pub fn stepped() {
    if !any() || SCHED.step.get() <= SLEEP.from.get() {
        return;
    }
    for (one, thread) in SLEEP.list.get().iter().zip(sleepers(SLEEP.list.get())) {
        if one.kind.load(Relaxed) == sleeper::EVERYTHING && thread != me() {
            wake(thread);
        }
    }
}
