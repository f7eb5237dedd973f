//! Which accesses of memory conflict, and are ordered by nothing: the race check, and the source of scheduling points at
//! accesses.
//!
//! Order is happens-before, by vector clocks ([`vector_clock`], [`order`]), over all synchronisation that the shim knows and the
//! atomic operations with their memory orders ([`atomic_order`]). Accesses are remembered in [`shadow`] memory and compared in
//! [`access`], as in FastTrack (Flanagan and Freund, PLDI'09): an epoch for the last write and one for the last read,
//! more where that is not enough. Only one thread runs at a time, so nothing here is atomic or locked.
//!
//! # The rule
//!
//! Musuvathi and Qadeer, "Iterative context bounding" (PLDI'07), sections 3.1 and 4 and appendix A: every synchronisation operation
//! is a scheduling point, and data accesses may be left out as long as no explored execution has a race on them. CHESS
//! (OSDI'08), sections 3.5 and 4.4.1, leaves out volatile accesses as well, if other synchronisation always orders them. Heisen
//! treats all accesses alike. Let P be the set of scheduling points: every intercepted call, and the places in the code
//! whose accesses are in [`points`].
//!
//! 1. Whatever may block or wake a thread is a call, and so in P from the start.
//! 2. Happens-before is made by operations in P *and by no others*: an atomic operation outside of P orders nothing. (The end of an
//!    initialiser of `pthread_once` may order without being in P: others can only wait for it, so nothing can come just before it
//!    that could not come after.)
//! 3. Two accesses that conflict (same memory, different threads, one of them writes) and that this order leaves unordered put
//!    both places into P. The search then starts over.
//!
//! When the search ends, every explored execution has this property: of two conflicting accesses that are not both in P, one happens
//! before the other.
//!
//! # Why nothing is missed
//!
//! Between two operations in P a thread runs a *block*: one operation in P and accesses outside of it. The search runs blocks whole.
//! Claim: if no explored execution fails or runs on for ever, then for every execution E of the program, with switches anywhere,
//! some explored execution has the same conflicting accesses in the same order. By induction on the length of E = E'·e, where e
//! is the next access of thread t, and F' is the explored execution for E', in which each thread has done the same as in E' and then
//! finished its block.
//!
//! - The rest of a block that another thread u has finished in F', but not in E', consists of accesses outside of P. Suppose e
//!   conflicts with one of them, a. What t does up to e is the same in F'·e as in E, as nothing of it depends on a; so the explored
//!   F'·e has a and e, of which a is outside of P. By the property one happens before the other, so a happens before e.
//!   But by rule 2 only an operation in P after a, of u, could make that order, and u has done none since. So e conflicts with nothing
//!   of these rests, and F'·e is the execution for E, after t has finished its block, too.
//! - If e is in P, a block of t begins with it, and the search tries every thread there. If not, e is in the block that t finished in F'.
//!
//! With rule 2 broken, the step "only an operation in P" fails: an atomic outside of P that happened to come first in all explored
//! executions would order accesses that might have come in another order. For a bound on preemptions the same argument holds with the
//! count of appendix A: F' has no more preemptions than E'.
//!
//! What is called a data race is unordered by *all* atomic operations, in P or not, so two clocks are kept
//! ([`vector_clock::Known`]). Rule 3 takes all pairs of conflicting atomics, but of pairs with a plain access only those that race: as long
//! as each pair of conflicting atomics is in P or ordered by P, whatever orders by reading another thread's value is ordered by
//! P anyway, so the two orders agree. Where they do not, rule 3 has found an atomic for the next round.

pub mod access;
mod arena;
pub mod atomic_order;
pub mod dead_stack;
mod found;
pub mod order;
pub mod points;
pub mod shadow;
pub mod vector_clock;

use crate::platform::{allocation, sys};
use crate::sched::S;
pub use crate::sched::access_mode::{MODE, is_on, mode};
use crate::script::system_mode;
use crate::wire_log;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use heisen_wire::access as flags;

/// Whether all atomic operations are scheduling points: the check is off, so nobody knows which matter.
static ALL_ATOMICS: AtomicBool = AtomicBool::new(false);

/// The program has instrumented code: perhaps only now, if it is in a library that was just loaded.
pub fn instrumented() {
    if system_mode::is_on() {
        wire_log::wire().instrumented.store(1, Relaxed);
    } else if S.active.get() && wire_log::wire().instrumented.swap(1, Relaxed) == 0 && S.running.get() {
        begin();
    }
}

/// The program is about to be parked: gets memory ready that every execution would have to ask for.
pub fn prepare() {
    /// What is larger is not touched everywhere.
    const LARGE: usize = 64 << 20;
    let wire = wire_log::wire();
    if wire.instrumented.load(Relaxed) == 0 || wire.access_flags.load(Relaxed) & flags::CHECK == 0 {
        return;
    }
    sys::each_mapping(|from, to, rights, _| {
        if rights[1] == b'w' && rights[3] == b'p' && to - from <= LARGE && !owns(from) {
            shadow::prepare(from, to);
        }
    });
    arena::give(arena::take(1), 1);
}

/// An execution begins. One of a program without instrumented code pays nothing.
pub fn begin() {
    let wire = wire_log::wire();
    if wire.instrumented.load(Relaxed) == 0 {
        return;
    }
    let asked = wire.access_flags.load(Relaxed);
    let mut bits = 0;
    if asked & flags::CHECK != 0 {
        bits |= mode::CHECK;
        order::begin();
        allocation::follow();
    }
    ALL_ATOMICS.store(bits == 0, Relaxed);
    if asked & flags::ALL != 0 {
        bits |= mode::ALL;
    }
    if points::any() {
        bits |= mode::POINTS;
    }
    if wire_log::stops() && wire.watch.load(Relaxed) != 0 {
        bits |= mode::WATCH;
    }
    MODE.store(bits, Relaxed);
}

/// Whether an atomic operation from there is a scheduling point.
pub fn is_atomic_point(pc: usize) -> bool {
    ALL_ATOMICS.load(Relaxed) || is_on(mode::ALL) || is_on(mode::POINTS) && points::has(pc)
}

/// Whether an atomic instruction of patched code is a scheduling point. Where nothing is instrumented it always is: that it
/// conflicts may show only by loads and stores, which nobody sees.
pub fn is_patched_point(pc: usize) -> bool {
    wire_log::wire().instrumented.load(Relaxed) == 0 || is_atomic_point(pc)
}

/// The process is not controlled any more.
pub fn leave() {
    MODE.store(0, Relaxed);
}

/// Whether an address is of what is remembered here, rather than of the program.
pub fn owns(address: usize) -> bool {
    (arena::BASE..shadow::END).contains(&address)
}
