//! What a program finds on its standard input. It is the same in every execution, and a schedule keeps it: a small one
//! in the file itself, a large one in a file beside it.

use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Most bytes of a standard input that a schedule file holds itself.
pub const INLINE: usize = 4096;

/// A standard input.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stdin {
    /// These bytes.
    Bytes(Arc<[u8]>),
    /// The bytes of a file beside the one that says so.
    Beside {
        /// Its name.
        name: String,
        /// SHA-256 of its bytes.
        hash: String,
    },
}

impl std::fmt::Debug for Stdin {
    /// Without the bytes, which may be many.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Stdin::Bytes(bytes) => write!(f, "{} bytes", bytes.len()),
            Stdin::Beside { name, hash } => write!(f, "{name} ({hash})"),
        }
    }
}
