//! What can go wrong, in words that say what to do next.

use std::fmt;

/// An error, sorted by what it means for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// What was asked for makes no sense or is not there: exit code 2.
    Input(String),
    /// The program cannot be controlled: exit code 3.
    Uncontrolled(String),
    /// Something that should not happen: exit code 5.
    Internal(String),
    /// The user interrupted: exit code 130.
    Interrupted,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Input(text) | Error::Uncontrolled(text) | Error::Internal(text) => f.write_str(text),
            Error::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for Error {}

/// The result of most of the engine's functions.
pub type Result<T> = std::result::Result<T, Error>;
