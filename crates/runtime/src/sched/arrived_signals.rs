//! The state of signals that the scheduler needs: whether some have arrived from outside, and how their
//! delivery affects a wait.

use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Signals that have arrived from outside, as bits. The handler in `shim::signal` sets them.
pub static ARRIVED: AtomicU64 = AtomicU64::new(0);

/// Whether signals have arrived that no thread has been given yet. They make blocking system calls return
/// EINTR.
pub fn arrived() -> bool {
    ARRIVED.load(SeqCst) != 0
}

/// What happened when the running thread took its signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivered {
    /// No handler has run.
    Nothing,
    /// The first handler that was due lets interrupted calls continue.
    Restart,
    /// The first handler that was due interrupts calls.
    Interrupt,
}
