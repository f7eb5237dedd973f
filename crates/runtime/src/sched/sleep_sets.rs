//! Threads that sleep: whatever begins with their next step was explored before, unless something that it depends on comes
//! first. The default policy leaves them aside until then.
//!
//! Sleep sets: Godefroid, Partial-Order Methods for the Verification of Concurrent Systems, 1996, chapter 5. Who sleeps, and
//! what the next step of each touches, is part of the plan; what others touch wakes them.

use crate::platform::baton::Guarded;
use crate::sched::thread_set::Bits;
use crate::sched::{S, me};
use core::cell::Cell;
use core::sync::atomic::Ordering::Relaxed;
use heisen_wire::{MAX_THREADS, Override, Plan, sleeper};

struct Sleep {
    asleep: Bits,
    /// How many they are.
    count: Cell<usize>,
    /// They sleep from this step on.
    from: Cell<u32>,
    /// What they touch.
    list: Cell<&'static [Override]>,
}

static Z: Guarded<Sleep> = Guarded::new(Sleep {
    asleep: Bits::new(),
    count: Cell::new(0),
    from: Cell::new(0),
    list: Cell::new(&[]),
});

/// An execution begins; the first of `list` are those that sleep.
pub fn begin(list: &'static [Override], plan: &Plan) {
    wake_all();
    Z.from.set(plan.sleep_from.load(Relaxed));
    Z.list.set(&list[..list.len().min(plan.sleepers.load(Relaxed) as usize)]);
    for thread in sleepers(Z.list.get()) {
        if !Z.asleep.has(thread) {
            Z.asleep.add(thread);
            Z.count.set(Z.count.get() + 1);
        }
    }
}

/// Nobody sleeps.
pub fn wake_all() {
    for thread in sleepers(Z.list.replace(&[])) {
        Z.asleep.remove(thread);
    }
    Z.count.set(0);
}

fn sleepers(list: &[Override]) -> impl Iterator<Item = usize> {
    list.iter().map(|one| one.expect.load(Relaxed) as usize % MAX_THREADS)
}

/// Whether anyone sleeps.
#[inline]
pub fn any() -> bool {
    Z.count.get() != 0
}

/// Whether a thread sleeps.
pub fn asleep(thread: usize) -> bool {
    Z.asleep.has(thread)
}

fn wake(thread: usize) {
    if Z.asleep.has(thread) {
        Z.asleep.remove(thread);
        Z.count.set(Z.count.get() - 1);
    }
}

/// The running thread touches an object.
pub fn touched(object: u64, write: bool) {
    if !any() || S.step.get() < Z.from.get() {
        return;
    }
    for (one, thread) in Z.list.get().iter().zip(sleepers(Z.list.get())) {
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

/// The running thread makes another one able to go on.
pub fn enabled(thread: usize) {
    if any() && S.step.get() >= Z.from.get() {
        wake(thread);
    }
}

/// The running thread has come to the end of its step, which is the one before that of the scheduler.
pub fn stepped() {
    if !any() || S.step.get() <= Z.from.get() {
        return;
    }
    for (one, thread) in Z.list.get().iter().zip(sleepers(Z.list.get())) {
        if one.kind.load(Relaxed) == sleeper::EVERYTHING && thread != me() {
            wake(thread);
        }
    }
}
