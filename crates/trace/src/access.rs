//! Accesses of memory as scheduling points: which ones, and how that is written down.

use serde::{Deserialize, Serialize};

/// A place in the code, as it is found again in another process: an address that a call returns to.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CodePlace {
    /// The file that the code is in, by its name; empty if the offset is an address.
    pub module: String,
    /// Where in the file's memory image it is.
    pub offset: u64,
    /// File, line and function, for the reader.
    pub place: String,
}

/// What is done about accesses of memory, plain and atomic, where the program is instrumented.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Accesses {
    /// Whether they are compared with those of other threads. If not, every atomic one is a scheduling point.
    pub check: bool,
    /// Whether all are scheduling points.
    pub all: bool,
    /// Those that are.
    pub points: Vec<CodePlace>,
}

impl Default for Accesses {
    fn default() -> Accesses {
        Accesses { check: true, all: false, points: Vec::new() }
    }
}
