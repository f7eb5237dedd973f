//! The environment of a program: random numbers, processors, time, standard input, hooks, heap and access
//! points.
//!
//! One world belongs to a check. The schedule file stores it, so that a replay has the same.

use crate::access::Accesses;
use crate::decision::PATIENCE;
use crate::marked::Marked;
use crate::stdin::Stdin;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The environment of every execution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct World {
    /// Seed of the bytes that the program reads as random.
    pub seed: u64,
    /// How many processors the program sees; the real number if `None`.
    pub cpus: Option<u32>,
    /// Whether time is real rather than virtual.
    pub real_time: bool,
    /// The time-out horizon: how far ahead a deadline may lie and still fire while other threads are enabled.
    pub timeouts: Duration,
    /// A shell command that runs before each execution.
    pub before: Option<String>,
    /// A shell command that runs after each execution; if it fails, so did the execution.
    pub after: Option<String>,
    /// The directory in which each execution gets an empty directory of its own.
    pub dir: Option<Vec<u8>>,
    /// How often a thread may repeat itself in vain, or yield, before it has to give way to the others.
    pub patience: u32,
    /// The standard input; empty if `None`.
    pub stdin: Option<Stdin>,
    /// Bytes from outside that are inputs.
    pub marked: Vec<Marked>,
    /// Whether the program uses the checked heap. If `None`, it does when it is instrumented.
    pub heap: Option<bool>,
    /// Whether leaks are searched for at the end.
    pub leaks: bool,
    /// How memory accesses are treated, if the program is instrumented.
    pub accesses: Accesses,
    /// Patterns of the names of modules whose atomic instructions are scheduling points.
    pub patch: Vec<String>,
}

/// The default time-out horizon: longer delays of other threads are not plausible.
pub const TIMEOUTS: Duration = Duration::from_secs(1);

impl Default for World {
    fn default() -> World {
        World {
            seed: 0,
            cpus: None,
            real_time: false,
            timeouts: TIMEOUTS,
            patience: PATIENCE,
            before: None,
            after: None,
            dir: None,
            stdin: None,
            marked: Vec::new(),
            heap: None,
            leaks: false,
            accesses: Accesses::default(),
            patch: Vec::new(),
        }
    }
}

impl World {
    /// Whether something has to be done before or after each execution.
    pub fn has_hooks(&self) -> bool {
        self.before.is_some() || self.after.is_some() || self.dir.is_some()
    }
}
