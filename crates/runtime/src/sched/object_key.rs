//! Addresses for objects that have none, such as descriptors, signals and the time: dependence and the race check know an
//! object by its address.

use heisen_trace::touch::NOWHERE;

/// An address for something that has none: a descriptor, say.
pub fn key(space: usize, number: usize) -> usize {
    /// Within `NOWHERE_END`: there are fewer than eight.
    const SPACE: usize = 1 << 24;
    NOWHERE as usize + space * SPACE + number.wrapping_mul(8) % SPACE
}

/// Spaces of [`key`].
pub mod space {
    /// Arrivals at barriers, by a hash.
    pub const ARRIVALS: usize = 0;
    /// Pipes and the like, by their file's number.
    pub const FILE: usize = 1;
    /// All other descriptors, and what else the kernel keeps.
    pub const KERNEL: usize = 2;
    /// Signals, by their number.
    pub const SIGNAL: usize = 3;
    /// Cancellation, by the thread.
    pub const CANCEL: usize = 4;
    /// The table of threads.
    pub const THREADS: usize = 5;
    /// The time.
    pub const TIME: usize = 6;
    /// Faults and spurious wake-ups that are left.
    pub const BUDGET: usize = 7;
}
