//! Access points: which memory accesses are scheduling points, and how a schedule file lists them.

use serde::{Deserialize, Serialize};

/// A place in the code that can be found again in another process, given as the address that a call returns
/// to.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CodePlace {
    /// The name of the file that holds the code; empty if the offset is an address.
    pub module: String,
    /// The offset in the memory image of the file.
    pub offset: u64,
    /// File, line and function, for the reader.
    pub place: String,
}

/// How plain and atomic memory accesses are treated, if the program is instrumented.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Accesses {
    /// Whether they are compared with those of other threads. If not, every atomic access is a scheduling
    /// point.
    pub check: bool,
    /// Whether all accesses are scheduling points.
    pub all: bool,
    /// The places whose accesses are scheduling points.
    pub points: Vec<CodePlace>,
}

impl Default for Accesses {
    fn default() -> Accesses {
        Accesses { check: true, all: false, points: Vec::new() }
    }
}
