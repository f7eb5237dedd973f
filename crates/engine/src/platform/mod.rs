//! Wraps the machine below the engine: system calls, atomic file writes, wildcards.
//!
//! This is the lowest folder: of the engine, it uses only the errors.
//!
//! | module | what it is for |
//! | --- | --- |
//! | `sys`, `seccomp` | system interfaces; the kernel's filter for calls that change the machine |
//! | [`atomic_file`] | files that no reader sees half-written |
//! | [`glob`] | patterns with wildcards |

pub mod atomic_file;
pub mod glob;
pub(crate) mod seccomp;
pub(crate) mod sys;

pub use sys::own_stdio;
