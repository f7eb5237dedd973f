//! The engine: starts a program under the runtime, runs plans, watches, judges what it sees, and replays what it found
//! with everything on. It prints nothing.
//!
//! | room | what it is |
//! | --- | --- |
//! | [`program`] | what is run: compiled, instrumented, or refused with a reason |
//! | [`process`] | the processes of the program: started, parked, run under plans, watched |
//! | [`patch`] | atomic instructions of uninstrumented code |
//! | [`inspect`] | stacks, names and values of a paused process |
//! | [`explain`] | from an execution that went wrong to a finding |
//! | [`check`] | the search: batches of plans over all workers, and the verdict |

pub mod check;
pub mod error;
pub mod explain;
pub mod inspect;
pub mod patch;
pub mod platform;
pub mod process;
pub mod program;

pub use error::Error;
