//! Data races: two accesses of the same memory by different threads, of which at least one writes and not both are atomic,
//! and which nothing orders.

use crate::finding::{Held, Stack};
use crate::thread::ThreadId;
use serde::{Deserialize, Serialize};

/// One of the two accesses.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Access {
    /// Who did it.
    pub thread: ThreadId,
    /// Whether it writes.
    pub write: bool,
    /// Whether it is atomic.
    pub atomic: bool,
    /// Bytes of it, of those that lie in the same 8.
    pub size: u32,
    /// The locks that the thread held.
    pub holds: Vec<Held>,
    /// Where it was.
    pub stack: Stack,
}

impl Access {
    /// What it is: `read`, `atomic write`.
    pub fn kind(&self) -> &'static str {
        match (self.atomic, self.write) {
            (false, false) => "read",
            (false, true) => "write",
            (true, false) => "atomic read",
            (true, true) => "atomic write",
        }
    }

    /// What the thread does, as a verb: `writes 4 bytes`.
    pub fn does(&self) -> String {
        let verb = if self.write { "writes" } else { "reads" };
        let bytes = if self.size == 1 { "byte" } else { "bytes" };
        let how = if self.atomic { " atomically" } else { "" };
        format!("{verb} {} {bytes}{how}", self.size)
    }

    /// The place of it: `file.c:9 function`.
    pub fn place(&self) -> String {
        self.stack.place().map_or(String::new(), |f| format!("{} {}", f.place(), f.function))
    }
}

/// A data race, as a close look has seen it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Race {
    /// The earlier access.
    pub first: Access,
    /// The later one.
    pub second: Access,
    /// What both touch, in words.
    pub object: String,
    /// In how many executions of the search it was seen; 0 in a replay.
    pub executions: u64,
}

impl Race {
    /// The race in one sentence.
    pub fn message(&self) -> String {
        let side = |a: &Access| {
            let at = a.stack.place().map_or(String::new(), |f| format!(" at {}", f.place()));
            format!("{} {}{at}", a.thread, a.does())
        };
        format!("{}: {}, {}, and nothing orders the two", self.object, side(&self.first), side(&self.second))
    }

    /// What makes it the same race as another: the two places and what is done there, in no order.
    pub fn identity(&self) -> String {
        let mut sides =
            [&self.first, &self.second].map(|access| format!("{} {}", access.kind(), access.place()));
        sides.sort();
        sides.join("\n")
    }
}
