//! Defines the engine's errors, with messages that say what to do next.

use std::fmt;

/// An error, classified by what it means for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The user's input is wrong or missing: exit code 2.
    Input(String),
    /// The program cannot be controlled: exit code 3.
    Uncontrolled(String),
    /// A bug of Heisen, or a failure of the system: exit code 5.
    Internal(String),
    /// The user interrupted: exit code 130.
    Interrupted,
    /// The deadline of `--time` has passed. A search that has begun ends with its results so far.
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
