//! What is done at an access of memory, in one byte: all that an uninteresting access of instrumented code reads.

use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// What is done at a plain access; 0 if nothing, which is all that an uninteresting one looks at.
pub static MODE: AtomicU8 = AtomicU8::new(0);

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

/// Sets some of the bits anew.
pub fn change(bits: u8, to: u8) {
    MODE.store(MODE.load(Relaxed) & !bits | to, Relaxed);
}
