//! The race check: finds accesses that conflict and that nothing orders. It is also the source of scheduling
//! points at accesses.
//!
//! Order is happens-before, by vector clocks ([`vector_clock`], [`order`]). It covers all synchronisation that
//! the shim knows, and the atomic operations with their memory orders ([`atomic_order`]). Accesses are
//! remembered in [`shadow`] memory and compared in [`access`], as in FastTrack (Flanagan and Freund, PLDI'09):
//! one epoch for the last write and one for the last read, and more where that is not enough. Only one thread
//! runs at a time, so nothing here is atomic or locked.
//!
//! # The rule
//!
//! Musuvathi and Qadeer, "Iterative context bounding" (PLDI'07), sections 3.1 and 4 and appendix A: every
//! synchronisation operation is a scheduling point, and data accesses may be left out as long as no explored
//! execution has a race on them. CHESS (OSDI'08), sections 3.5 and 4.4.1, leaves out volatile accesses as well,
//! if other synchronisation always orders them. Heisen treats all accesses in the same way. Let P be the set of
//! scheduling points: every intercepted call, and the places in the code whose accesses are in [`points`].
//!
//! 1. Every operation that may block or wake a thread is a call, and therefore in P from the start.
//! 2. Only operations in P make happens-before order; an atomic operation outside of P orders nothing. (There
//!    is one exception: the end of an initialiser of `pthread_once` may order without being in P. Other threads
//!    can only wait for it, so nothing can come just before it that could not come after.)
//! 3. If two accesses conflict (same memory, different threads, at least one a write) and this order does not
//!    order them, both places enter P. The search then starts over.
//!
//! When the search ends, every explored execution has this property: of two conflicting accesses that are not
//! both in P, one happens before the other.
//!
//! # Why nothing is missed
//!
//! Between two operations in P a thread runs a *block*: one operation in P and the accesses outside of P that
//! follow it. The search runs each block without a switch.
//!
//! Claim: suppose that no explored execution fails or runs for ever. Let E be any execution of the program, with
//! switches anywhere. Then some explored execution has the same conflicting accesses in the same order.
//!
//! The proof is by induction on the length of E = E'·e. Here e is the next access of thread t. F' is the
//! explored execution for E': each thread has done the same as in E' and then finished its block.
//!
//! - Let u be another thread. The accesses of its block that u has done in F', but not in E', are outside of P.
//!   Suppose that e conflicts with one of them, a. What t does up to e is the same in F'·e as in E, because
//!   none of it depends on a. The explored F'·e therefore contains a and e, and a is outside of P. By the
//!   property one happens before the other, so a happens before e. But by rule 2 only an operation in P, done
//!   by u after a, could make that order, and u has done none since. This is a contradiction: e conflicts with
//!   none of these accesses. Once t has finished its block, too, F'·e is the execution for E.
//! - If e is in P, a block of t begins with e, and the search tries every thread there. If e is not in P, it is
//!   in the block that t finished in F'.
//!
//! Without rule 2, the step "only an operation in P" fails: an atomic operation outside of P that happened to
//! come first in all explored executions would order accesses that might have come in another order. For a
//! bound on preemptions the same argument holds with the count of appendix A: F' has no more preemptions than
//! E'.
//!
//! A data race is a conflict that *all* atomic operations, in P or not, leave unordered. The check therefore
//! keeps two clocks ([`vector_clock::Known`]). Rule 3 takes all pairs of conflicting atomics, but of pairs with
//! a plain access only data races. This is enough. Suppose that each pair of conflicting atomics is in P or
//! ordered by P. Then every order that a thread gets by reading another thread's value is also made by P, so
//! the two orders agree. Where they do not agree, rule 3 has found an atomic for the next round.

pub mod access;
mod arena;
pub mod atomic_order;
pub mod dead_stack;
mod found;
pub mod order;
pub mod points;
pub mod shadow;
pub mod vector_clock;

use crate::memory::symbolic;
use crate::platform::{allocation, sys};
use crate::sched::SCHED;
pub use crate::sched::access_mode::{MODE, is_on, mode};
use crate::script::system_mode;
use crate::wire_log;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use heisen_wire::access as flags;
use heisen_wire::flag;

/// Whether all atomic operations are scheduling points. This is so if the check is off, because then nothing
/// shows which of them conflict.
static ALL_ATOMICS: AtomicBool = AtomicBool::new(false);

/// The program has instrumented code. This may become known late, when a library was just loaded.
pub fn instrumented() {
    if system_mode::is_on() {
        wire_log::wire().instrumented.store(1, Relaxed);
    } else if SCHED.active.get() && wire_log::wire().instrumented.swap(1, Relaxed) == 0 && SCHED.running.get()
    {
        begin();
    }
}

/// The zygote is about to park: maps memory that every execution would need.
pub fn prepare() {
    /// A larger mapping is not prepared, because executions access only parts of it.
    const LARGE: usize = 64 << 20;
    let wire = wire_log::wire();
    if wire.instrumented.load(Relaxed) == 0 || wire.access_flags.load(Relaxed) & flags::CHECK == 0 {
        return;
    }
    sys::each_mapping(|from, to, rights, _| {
        if rights[1] == b'w'
            && rights[3] == b'p'
            && to - from <= LARGE
            && !owns(from)
            && !symbolic::owns(from)
        {
            shadow::prepare(from, to);
        }
    });
    arena::give(arena::take(1), 1);
}

/// An execution begins. Without instrumented code this costs nothing.
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
    if asked & flags::ALL != 0 || wire_log::flags() & flag::SYMBOLIC != 0 {
        bits |= mode::ALL;
    }
    if points::any() {
        bits |= mode::POINTS;
    }
    if wire_log::stops() && wire.watch.load(Relaxed) != 0 || wire_log::logs_accesses() {
        bits |= mode::WATCH;
    }
    MODE.store(bits, Relaxed);
}

/// Whether an atomic operation at this code address is a scheduling point.
pub fn is_atomic_point(pc: usize) -> bool {
    ALL_ATOMICS.load(Relaxed) || is_on(mode::ALL) || is_on(mode::POINTS) && points::has(pc)
}

/// Whether an atomic instruction of patched code is a scheduling point. Where nothing is instrumented it always
/// is: a conflict may show only in loads and stores, which the runtime does not see then.
pub fn is_patched_point(pc: usize) -> bool {
    wire_log::wire().instrumented.load(Relaxed) == 0 || is_atomic_point(pc)
}

/// The process is no longer controlled.
pub fn leave() {
    MODE.store(0, Relaxed);
}

/// Whether an address belongs to the memory of the race check, and not to the program.
pub fn owns(address: usize) -> bool {
    (arena::BASE..shadow::END).contains(&address)
}
