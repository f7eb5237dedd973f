//! Spin locks. The scheduler treats them as mutexes without an owner: a thread that would spin waits.

use super::shims;
use crate::memory::race::order;
use crate::platform::sys;
use crate::sched;
use crate::sched::{decision, dependence, spin};
use core::cell::Cell;
use core::ffi::c_int;
use heisen_trace::{Fault, Op};

/// The value of a spin lock that no thread holds, in glibc for x86-64; it is 0 or less while held.
const FREE: i32 = 1;

fn word(lock: usize) -> &'static Cell<i32> {
    // SAFETY: the program passes a spin lock; if it is not mapped, the program crashes here as it would in glibc.
    unsafe { &*(lock as *const Cell<i32>) }
}

fn is_free(lock: usize) -> bool {
    word(lock).get() == FREE
}

fn acquire(lock: usize) {
    word(lock).set(0);
    order::acquire(lock);
    sched::taken(sched::without_owner(lock));
}

shims! {
    /// Waits until no thread holds the lock, then takes it. A thread that would spin is disabled.
    fn pthread_spin_lock(lock: usize) -> c_int = pc {
        sched::wait_for_key(Op::Lock, lock, sched::without_owner(lock), pc, || is_free(lock), u64::MAX);
        acquire(lock);
        0
    }

    /// A scheduling point; never waits. Gives `EBUSY` if a thread holds the lock.
    fn pthread_spin_trylock(lock: usize) -> c_int = pc {
        spin::attempt(Op::TryLock, lock, pc);
        dependence::tried(Op::TryLock, lock, pc, is_free(lock));
        if !is_free(lock) || decision::fault(Fault::TryLock) {
            spin::failed();
            return sys::EBUSY;
        }
        acquire(lock);
        0
    }

    /// Enables the threads that wait for the lock; the one that runs first gets it.
    fn pthread_spin_unlock(lock: usize) -> c_int = pc {
        sched::point(Op::Unlock, lock, pc);
        order::release(lock);
        word(lock).set(FREE);
        sched::freed(sched::without_owner(lock));
        0
    }
}
