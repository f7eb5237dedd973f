//! Addresses for objects that have none, such as descriptors, signals and the time. Dependence and the race
//! check identify an object by its address.

use heisen_trace::touch::NOWHERE;

/// The address that stands for an object without one, such as a descriptor.
pub fn key(space: usize, number: usize) -> usize {
    /// The size of a space. All eight spaces lie below `NOWHERE_END`.
    const SPACE: usize = 1 << 24;
    NOWHERE as usize + space * SPACE + number.wrapping_mul(8) % SPACE
}

/// Spaces of [`key`].
pub mod space {
    /// Arrivals at barriers, by a hash.
    pub const ARRIVALS: usize = 0;
    /// Pipes and similar files, by their inode number.
    pub const FILE: usize = 1;
    /// All other descriptors, and other state of the kernel.
    pub const KERNEL: usize = 2;
    /// Signals, by their number.
    pub const SIGNAL: usize = 3;
    /// Cancellation, by the thread.
    pub const CANCEL: usize = 4;
    /// The table of threads.
    pub const THREADS: usize = 5;
    /// The time.
    pub const TIME: usize = 6;
    /// The remaining budgets for faults and spurious wake-ups.
    pub const BUDGET: usize = 7;
}
