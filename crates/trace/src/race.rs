//! Data races: two accesses of one location by different threads that nothing orders, at least one a write
//! and not both atomic.

use crate::finding::{Held, Stack};
use crate::thread::ThreadId;
use serde::{Deserialize, Serialize};

/// One of the two accesses.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Access {
    /// The thread.
    pub thread: ThreadId,
    /// Whether it writes.
    pub write: bool,
    /// Whether it is atomic.
    pub atomic: bool,
    /// How many of its bytes lie in the same aligned 8 bytes.
    pub size: u32,
    /// The locks that the thread held.
    pub holds: Vec<Held>,
    /// Its stack.
    pub stack: Stack,
}

impl Access {
    /// Its kind: `read`, `atomic write`.
    pub fn kind(&self) -> &'static str {
        match (self.atomic, self.write) {
            (false, false) => "read",
            (false, true) => "write",
            (true, false) => "atomic read",
            (true, true) => "atomic write",
        }
    }

    /// The access as a verb: `writes 4 bytes`.
    pub fn does(&self) -> String {
        let verb = if self.write { "writes" } else { "reads" };
        let bytes = if self.size == 1 { "byte" } else { "bytes" };
        let how = if self.atomic { " atomically" } else { "" };
        format!("{verb} {} {bytes}{how}", self.size)
    }

    /// The place of the access: `file.c:9 function`.
    pub fn place(&self) -> String {
        self.stack.place().map_or(String::new(), |f| format!("{} {}", f.place(), f.function))
    }
}

/// A data race, as a close-up has seen it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Race {
    /// The earlier access.
    pub first: Access,
    /// The later one.
    pub second: Access,
    /// The location, in words.
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

    /// Two races with the same identity are the same race: the two places and their kinds of access, in no
    /// order.
    pub fn identity(&self) -> String {
        let mut sides =
            [&self.first, &self.second].map(|access| format!("{} {}", access.kind(), access.place()));
        sides.sort();
        sides.join("\n")
    }
}
