//! What the scheduler knows of signals: whether some have come from outside, and what delivering them did to a wait.

use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Signals that have come from outside, as bits; set by the handler of `shim::signal`.
pub static ARRIVED: AtomicU64 = AtomicU64::new(0);

/// Whether signals have come that no thread has been given yet. What blocks in the kernel returns EINTR by them.
pub fn arrived() -> bool {
    ARRIVED.load(SeqCst) != 0
}

/// What was done when the running thread took its signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivered {
    /// No handler has run.
    Nothing,
    /// The first handler that was due lets calls go on.
    Restart,
    /// The first handler that was due interrupts calls.
    Interrupt,
}
