//! The engine: starts a program under the runtime, runs plans, watches and judges the executions, and takes
//! close-ups of failures. It prints nothing.
//!
//! Each folder uses only folders above it in this table; `tests/it/rooms.rs` checks that.
//!
//! | folder | what it is for |
//! | --- | --- |
//! | [`error`] | why a command cannot go on |
//! | [`platform`] | system calls, atomic file writes, wildcards |
//! | [`program`] | the program under test: compiled, instrumented, or refused with a reason |
//! | [`patch`] | makes atomic instructions of uninstrumented code scheduling points |
//! | [`process`] | the processes of the program: started, parked, run under plans, watched |
//! | [`explain`] | turns an execution that failed into a finding |
//! | [`check`] | a check: batches of plans over all workers, and the verdict |

pub mod check;
pub mod error;
pub mod explain;
pub mod patch;
pub mod platform;
pub mod process;
pub mod program;

pub use error::Error;
