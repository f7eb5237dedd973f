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
    /// The deadline of `--time` has passed. A search that has begun ends with what is known by then.
    TimeOver,
}

impl Error {
    /// Whether the work was only cut short, by the user or by its deadline.
    pub fn is_cut(&self) -> bool {
        matches!(self, Error::Interrupted | Error::TimeOver)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Input(text) | Error::Uncontrolled(text) | Error::Internal(text) => f.write_str(text),
            Error::Interrupted => f.write_str("interrupted"),
            Error::TimeOver => f.write_str("--time was over before the search could begin; raise it"),
        }
    }
}

impl std::error::Error for Error {}

/// The result of most of the engine's functions.
pub type Result<T> = std::result::Result<T, Error>;
