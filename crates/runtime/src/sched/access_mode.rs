//! The mode of memory accesses: one byte that says what is done at an access. Instrumented code reads nothing
//! else at an access of no interest.

use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// What is done at a plain access, as bits of [`mode`]; 0 if nothing.
pub static MODE: AtomicU8 = AtomicU8::new(0);

/// Bits of [`MODE`].
pub mod mode {
    /// The race check tracks order and compares accesses.
    pub const CHECK: u8 = 1;
    /// Accesses at some places are scheduling points.
    pub const POINTS: u8 = 2;
    /// All accesses are scheduling points.
    pub const ALL: u8 = 4;
    /// The engine watches some accesses, in a close-up.
    pub const WATCH: u8 = 8;
    /// A script wants to know of accesses, or of functions that are entered.
    pub const SCRIPT: u8 = 16;
    /// The checked heap checks accesses although the race check does not compare them: under a script.
    pub const HEAP: u8 = 32;
}

/// Whether any of the bits is set.
#[inline(always)]
pub fn is_on(bits: u8) -> bool {
    MODE.load(Relaxed) & bits != 0
}

/// Replaces some of the bits.
pub fn change(bits: u8, to: u8) {
    MODE.store(MODE.load(Relaxed) & !bits | to, Relaxed);
}
