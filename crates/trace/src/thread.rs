//! The identity of a thread.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A thread of the program under test, numbered in order of creation: `T0` is the main thread.
///
/// Under one schedule the number is always the same; the creation path (`0.1.3`), which the schedule file lists
/// beside it, is the same under every schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ThreadId(pub u16);

impl fmt::Display for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "T{}", self.0)
    }
}

impl std::str::FromStr for ThreadId {
    type Err = ();

    fn from_str(text: &str) -> Result<ThreadId, ()> {
        text.strip_prefix('T').and_then(|n| n.parse().ok()).map(ThreadId).ok_or(())
    }
}
