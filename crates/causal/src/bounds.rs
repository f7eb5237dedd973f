//! What limits the work of a search: the caller may stop it, and its constraints may take only so much memory.
//!
//! Two threads that take thousands of locks have millions of pairs of sections, and each pair has constraints.

use std::fmt;
use std::sync::Arc;

/// Says whether the search should stop.
pub type Stop = Arc<dyn Fn() -> bool + Send + Sync>;

/// The limits.
#[derive(Clone)]
pub struct Bounds {
    /// `None` if nobody stops the search.
    pub stop: Option<Stop>,
    /// How many bytes the constraints may take.
    pub bytes: usize,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { stop: None, bytes: usize::MAX }
    }
}

impl fmt::Debug for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bounds").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Bounds {
    /// Whether the caller asks the search to stop.
    pub fn is_stopped(&self) -> bool {
        self.stop.as_ref().is_some_and(|stop| stop())
    }
}
