//! The LLVM library of rustc, found and loaded at run time, so that nothing of it has to be installed or
//! linked.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`library`] | finds the library and its functions |
//! | [`module`] | a module of bitcode |
//! | [`instrument`] | instruments the accesses of a module, and writes an object file |
//! | [`symbolic`] | instruments expressions as well |

pub mod instrument;
pub mod library;
pub mod module;
pub mod symbolic;

use std::fmt;

/// What went wrong, and what to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(pub String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}
