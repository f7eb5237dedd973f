//! The engine: starts a program under the runtime, runs plans, watches and judges the executions, and takes
//! close-ups of failures. It prints nothing.
//!
//! | folder | what it is for |
//! | --- | --- |
//! | [`program`] | the program under test: compiled, instrumented, or refused with a reason |
//! | [`process`] | the processes of the program: started, parked, run under plans, watched |
//! | [`patch`] | makes atomic instructions of uninstrumented code scheduling points |
//! | [`inspect`] | stacks, names and values of a paused process |
//! | [`explain`] | turns an execution that failed into a finding |
//! | [`check`] | the search: batches of plans over all workers, and the verdict |
//! | [`platform`] | system calls, atomic file writes, wildcards |

pub mod check;
pub mod error;
pub mod explain;
pub mod inspect;
pub mod patch;
pub mod platform;
pub mod process;
pub mod program;

pub use error::Error;
