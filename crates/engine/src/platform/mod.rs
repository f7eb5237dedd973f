//! The machine below the engine: system calls, files that are replaced as a whole, wildcards.
//!
//! The lowest room: it uses nothing of the engine but its errors.
//!
//! | module | what it is |
//! | --- | --- |
//! | `sys`, `seccomp` | system interfaces; the kernel's filter for calls that change the machine |
//! | [`atomic_file`] | files that no reader sees half-written |
//! | [`glob`] | patterns with wildcards |

pub mod atomic_file;
pub mod glob;
pub(crate) mod seccomp;
pub(crate) mod sys;
