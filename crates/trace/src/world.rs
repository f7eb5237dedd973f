//! The world that a program is shown besides its schedule: what it takes for random, how many processors it sees, which
//! time it is, what it reads from its standard input, what is done around each execution, and which of its instructions are
//! scheduling points. One world belongs to a whole check; the schedule file keeps it, so that a replay has the same.

use crate::access::Accesses;
use crate::stdin::Stdin;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What surrounds every execution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct World {
    /// Seed of the bytes that the program takes for random.
    pub seed: u64,
    /// How many processors it sees; the real ones if none.
    pub cpus: Option<u32>,
    /// Whether time is real rather than virtual.
    pub real_time: bool,
    /// How far away the deadline of a wait may be for it to time out while other threads can go on.
    pub timeouts: Duration,
    /// A shell command before each execution.
    pub before: Option<String>,
    /// A shell command after each execution; if it fails, so did the execution.
    pub after: Option<String>,
    /// The directory below which each execution has an empty one of its own.
    pub dir: Option<Vec<u8>>,
    /// What it finds on its standard input; nothing if none.
    pub stdin: Option<Stdin>,
    /// Whether its memory comes from the heap that finds memory errors; if none, when it is instrumented.
    pub heap: Option<bool>,
    /// Whether leaks are looked for at the end.
    pub leaks: bool,
    /// What is done about its accesses of memory, if it is instrumented.
    pub accesses: Accesses,
    /// Modules whose atomic instructions are scheduling points: patterns of their names.
    pub patch: Vec<String>,
}

/// How far away a deadline may be, unless told otherwise: longer delays of the other threads are not believable.
pub const TIMEOUTS: Duration = Duration::from_secs(1);

impl Default for World {
    fn default() -> World {
        World {
            seed: 0,
            cpus: None,
            real_time: false,
            timeouts: TIMEOUTS,
            before: None,
            after: None,
            dir: None,
            stdin: None,
            heap: None,
            leaks: false,
            accesses: Accesses::default(),
            patch: Vec::new(),
        }
    }
}

impl World {
    /// Whether something is to be done around each execution.
    pub fn has_hooks(&self) -> bool {
        self.before.is_some() || self.after.is_some() || self.dir.is_some()
    }
}
