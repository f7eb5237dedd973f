//! Which accesses of memory conflict, and are ordered by nothing: the race check, and the source of scheduling points at
//! accesses.
//!
//! Musuvathi and Qadeer, "Iterative context bounding" (PLDI'07), sections 3.1 and 4 and appendix A: to schedule at
//! synchronisation only is sound as long as every explored execution is free of races; where one is not, the accesses
//! that race are made scheduling points. CHESS (OSDI'08), sections 3.5 and 4.4.1, does the same with volatile accesses, and
//! leaves out those that other synchronisation always orders. Here plain and atomic accesses are treated alike: one is
//! a scheduling point if, in some execution, an access from its place in the code conflicted with one of another thread
//! and nothing ordered the two. The engine gathers these places and gives them to later executions ([`points`]).
//!
//! Order is happens-before, by vector clocks ([`clock`], [`order`]), over all synchronisation that the shim knows and the
//! atomic operations with their memory orders ([`atomic`]). Accesses are remembered in [`shadow`] memory and compared in
//! [`access`], as in FastTrack (Flanagan and Freund, PLDI'09): an epoch for the last write and one for the last read,
//! more where that is not enough. Only one thread runs at a time, so nothing here is atomic or locked.

pub mod access;
mod arena;
pub mod atomic;
pub mod clock;
pub mod epoch;
mod found;
pub mod order;
pub mod points;
pub mod shadow;

use crate::sched::S;
use crate::{free, heap, report, script, sys};
use core::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};
use heisen_wire::access as flags;

/// What is done at a plain access; 0 if nothing, which is all that an uninteresting one looks at.
pub static MODE: AtomicU8 = AtomicU8::new(0);

/// Whether all atomic operations are scheduling points: the check is off, so nobody knows which matter.
static ALL_ATOMICS: AtomicBool = AtomicBool::new(false);

/// Bits of [`MODE`].
pub mod mode {
    /// Order is kept and accesses are compared.
    pub const CHECK: u8 = 1;
    /// Accesses at some places are scheduling points.
    pub const POINTS: u8 = 2;
    /// All accesses are.
    pub const ALL: u8 = 4;
    /// The engine watches for some accesses, in a close look.
    pub const WATCH: u8 = 8;
    /// A script wants to know of accesses, or of functions that are entered.
    pub const SCRIPT: u8 = 16;
    /// The heap looks at accesses, though they are not compared: under a script.
    pub const HEAP: u8 = 32;
}

/// Whether any of the bits is set.
#[inline(always)]
pub fn is_on(bits: u8) -> bool {
    MODE.load(Relaxed) & bits != 0
}

/// The program has instrumented code: perhaps only now, if it is in a library that was just loaded.
pub fn instrumented() {
    if free::is_on() {
        report::wire().instrumented.store(1, Relaxed);
    } else if S.active.get() && report::wire().instrumented.swap(1, Relaxed) == 0 && S.running.get() {
        begin();
    }
}

/// The program is about to be parked: gets memory ready that every execution would have to ask for.
pub fn prepare() {
    /// What is larger is not touched everywhere.
    const LARGE: usize = 64 << 20;
    let wire = report::wire();
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
    let wire = report::wire();
    if wire.instrumented.load(Relaxed) == 0 {
        return;
    }
    let asked = wire.access_flags.load(Relaxed);
    let mut bits = 0;
    if asked & flags::CHECK != 0 {
        bits |= mode::CHECK;
        order::begin();
        crate::budget::follow();
    }
    ALL_ATOMICS.store(bits == 0, Relaxed);
    if asked & flags::ALL != 0 {
        bits |= mode::ALL;
    }
    if points::any() {
        bits |= mode::POINTS;
    }
    if report::stops() && wire.watch.load(Relaxed) != 0 {
        bits |= mode::WATCH;
    }
    MODE.store(bits, Relaxed);
}

/// A script has another wish.
pub fn look_at_script() {
    if report::wire().instrumented.load(Relaxed) != 0 {
        let mut bits = MODE.load(Relaxed) & !(mode::SCRIPT | mode::HEAP);
        if script::sees_memory() {
            bits |= mode::SCRIPT;
        }
        if heap::serves() {
            bits |= mode::HEAP;
        }
        MODE.store(bits, Relaxed);
    }
}

/// Whether an atomic operation from there is a scheduling point.
pub fn is_atomic_point(pc: usize) -> bool {
    ALL_ATOMICS.load(Relaxed) || is_on(mode::ALL) || is_on(mode::POINTS) && points::has(pc)
}

/// Whether an atomic instruction of patched code is a scheduling point. Where nothing is instrumented it always is: that it
/// conflicts may show only by loads and stores, which nobody sees.
pub fn is_patched_point(pc: usize) -> bool {
    report::wire().instrumented.load(Relaxed) == 0 || is_atomic_point(pc)
}

/// The process is not controlled any more.
pub fn leave() {
    MODE.store(0, Relaxed);
}

/// Whether an address is of what is remembered here, rather than of the program.
pub fn owns(address: usize) -> bool {
    (arena::BASE..shadow::END).contains(&address)
}
