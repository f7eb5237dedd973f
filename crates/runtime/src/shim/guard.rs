//! Guards of static variables of C++: locks without an owner. Who takes the lock and finds the variable initialised releases
//! it at once; otherwise it holds the lock until the initialiser has ended, or an exception has left it.
//!
//! By the C++ ABI the first byte of a guard says whether the variable is initialised. The compiler reads it before it calls
//! these functions. The second byte is 1 while the initialiser runs, as in libstdc++.

use super::{detours, shims};
use crate::memory::race;
use crate::memory::race::atomic_order;
use crate::memory::race::atomic_order::Does;
use crate::memory::race::atomic_order::memory_order::SEQ_CST;
use crate::memory::race::order;
use crate::memory::symbolic;
use crate::platform::glibc::Real;
use crate::sched::{self, SCHED, dependence};
use core::cell::Cell;
use core::ffi::c_int;
use heisen_trace::Op;

/// The size of the part of a guard that says whether the variable is initialised.
const GUARD_BYTES: usize = 1;

/// The first two bytes of a guard.
struct Guard {
    initialised: Cell<u8>,
    in_progress: Cell<u8>,
}

impl Guard {
    fn at(address: usize) -> &'static Guard {
        // SAFETY: the program passes a guard, which is a static variable of 8 bytes.
        unsafe { &*(address as *const Guard) }
    }
}

detours! {
    /// Called before a static variable of C++ is initialised, if it may not be. Waits while another thread is inside the
    /// initialiser.
    fn __cxa_guard_acquire = before_acquire;
}

static REAL: Real = Real::new(c"__cxa_guard_acquire");

/// What `__cxa_guard_acquire` goes on with: a function that returns its result, or the real one.
extern "C" fn before_acquire(guard: usize, _: usize, pc: usize) -> usize {
    let state = Guard::at(guard);
    let is_free = || state.in_progress.get() == 0;
    // In a program with one thread an initialiser that needs its own variable ends by an exception.
    let is_recursive = SCHED.count.get() == 1 && !is_free();
    if !SCHED.active.get() || !SCHED.running.get() || is_recursive {
        return REAL.address();
    }
    sched::wait_for_key(Op::Lock, guard, sched::without_owner(guard), pc, is_free, u64::MAX);
    state.in_progress.set(1);
    sched::taken(sched::without_owner(guard));
    order::acquire(guard);
    atomic_order::done(Does::Load, guard, GUARD_BYTES, SEQ_CST, pc);
    let initialised = state.initialised.get() != 0;
    symbolic::finds_initialised(guard, initialised, pc);
    if initialised {
        release(guard, pc);
        return leaves as *const () as usize;
    }
    initialises as *const () as usize
}

extern "C" fn initialises() -> c_int {
    1
}

extern "C" fn leaves() -> c_int {
    0
}

shims! {
    if SCHED.active.get() && SCHED.running.get();

    /// Called after a static variable of C++ is initialised. The first scheduling point, of the write of the guard, is left out
    /// if no other thread's read of the guard conflicts with it.
    fn __cxa_guard_release(guard: usize) -> () = pc {
        if race::is_atomic_point(pc) {
            sched::point(Op::AtomicStore, guard, pc);
            dependence::memory(guard, GUARD_BYTES, true);
        }
        Guard::at(guard).initialised.set(1);
        atomic_order::done(Does::Store, guard, GUARD_BYTES, SEQ_CST, pc);
        symbolic::is_initialised(guard, pc);
        release(guard, pc);
    }

    /// Called if an exception leaves the initialiser of a static variable of C++: the next thread runs it.
    fn __cxa_guard_abort(guard: usize) -> () = pc {
        release(guard, pc);
    }
}

/// Releases the lock.
fn release(guard: usize, pc: usize) {
    sched::point(Op::Unlock, guard, pc);
    order::release(guard);
    Guard::at(guard).in_progress.set(0);
    sched::freed(sched::without_owner(guard));
}
