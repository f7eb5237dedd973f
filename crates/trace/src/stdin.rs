//! The standard input of a program, the same in every execution.
//!
//! The schedule stores it: a small one in the schedule file itself, a large one in a file beside it.

use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The largest number of bytes that a schedule file itself holds.
pub const INLINE: usize = 4096;

/// A standard input.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stdin {
    /// These bytes.
    Bytes(Arc<[u8]>),
    /// The bytes of a file beside the schedule file.
    Beside {
        /// Its name.
        name: String,
        /// SHA-256 of its bytes.
        hash: String,
    },
}

impl std::fmt::Debug for Stdin {
    /// Leaves out the bytes, of which there may be many.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Stdin::Bytes(bytes) => write!(f, "{} bytes", bytes.len()),
            Stdin::Beside { name, hash } => write!(f, "{name} ({hash})"),
        }
    }
}
