//! The engine: starts a program under the runtime, runs plans, watches, judges what it sees, and replays what it found
//! with everything on. It prints nothing.
//!
//! Each room uses only rooms above it in this table; `tests/rooms.rs` checks that.
//!
//! | room | what it is |
//! | --- | --- |
//! | [`error`] | why a command cannot go on |
//! | [`platform`] | system calls, atomic files, wildcards |
//! | [`program`] | what is run: compiled, instrumented, or refused with a reason |
//! | [`inspect`] | stacks, names and values of a paused process |
//! | [`patch`] | atomic instructions of uninstrumented code |
//! | [`process`] | the processes of the program: started, parked, run under plans, watched |
//! | [`explain`] | from an execution that failed to a finding |
//! | [`check`] | a check: batches of plans over all workers, and the verdict |

pub mod check;
pub mod error;
pub mod explain;
pub mod inspect;
pub mod patch;
pub mod platform;
pub mod process;
pub mod program;

pub use error::Error;
