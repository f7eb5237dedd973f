//! Operations that would block in the kernel: their thread is disabled instead, and the other threads run.
//!
//! **Rule:** uses `platform`, `wire_log`, `sched` and `memory` (for the happens-before order that communication
//! through a descriptor creates).
//!
//! | module | what it is |
//! | --- | --- |
//! | [`descriptors`] | waits for descriptors to become ready |
//! | [`kernel_calls`] | calls without a descriptor to poll, each on a kernel thread of its own |
//! | [`input_log`] | input from outside, recorded and replayed |
//! | [`interval_timer`] | timers that are armed, expire and are armed again |
//! | [`timer_descriptors`] | timers that are read from a descriptor |

pub mod descriptors;
pub mod input_log;
pub mod interval_timer;
pub mod kernel_calls;
pub mod timer_descriptors;
