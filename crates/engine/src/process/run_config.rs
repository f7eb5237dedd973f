//! What holds for all executions of a parked program: limits, the world around the program, what carries the threads, where output goes.

use crate::error::Error;
use crate::patch::Patches;
use crate::platform::sys;
use crate::platform::sys::Mapping;
use crate::process::access_points::Points;
use crate::process::deadline::Deadline;
use crate::process::scope_ranges::Scope;
use crate::process::spin_watch::Loops;
use heisen_trace::{Faults, World};
use heisen_wire::flag;
use heisen_wire::system::System;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// What carries the threads of a program. Both pass the same scheduling points, so a schedule found with one replays
/// with the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Carrier {
    /// One kernel thread for all: fast.
    #[default]
    Fibers,
    /// A kernel thread for each, of which one runs at a time.
    Kernel,
}

impl Carrier {
    /// Its flags of a plan.
    pub(super) fn flags(self) -> u32 {
        match self {
            Carrier::Fibers => 0,
            Carrier::Kernel => flag::KERNEL,
        }
    }
}

/// How executions run. Limits are a small part of it.
#[derive(Clone, Debug)]
pub struct RunConfig {
    /// What carries the threads.
    pub carrier: Carrier,
    /// Whether executions run in one process, where that is possible, and what each has changed is put back.
    pub in_process: bool,
    /// Steps of one execution.
    pub steps: u32,
    /// How much processor time a program may take without a scheduling point, and how long it may block.
    pub hang: Duration,
    /// Whether one that takes more processor time goes on nevertheless, after a look at where it is: something else ends it.
    pub computes: bool,
    /// Bytes of data a program may have.
    pub memory: u64,
    /// Whether of threads that are alike only the first may go on.
    pub symmetry: bool,
    /// Spurious wake-ups of one execution.
    pub spurious: u32,
    /// Faults of one execution.
    pub faults: Faults,
    /// What surrounds the executions.
    pub world: World,
    /// The number of the worker, by which those that run at the same time are kept apart.
    pub worker: usize,
    /// Set when the user wants to stop.
    pub stop: Arc<AtomicBool>,
    /// When the executions must end.
    pub deadline: Option<Deadline>,
    /// What was patched in the program, as `world` asks for; worked out once for all that share it.
    pub patches: Arc<Patches>,
    /// Loops that were made to yield, as they ran for too long.
    pub loops: Arc<Loops>,
    /// Where threads may be preempted; anywhere if none.
    pub scope: Option<Arc<Scope>>,
    /// Accesses of memory that are scheduling points, besides those that the world names.
    pub points: Arc<Points>,
    /// The program is one of a system: its threads run free, but for what a script holds.
    pub part: Option<Part>,
    /// Its threads run free, and scripts may attach to it while it runs.
    pub listens: bool,
    /// Recorded input, which the executions get instead of what comes from outside.
    pub input: Option<Arc<[u8]>>,
}

impl RunConfig {
    /// Why nothing more may be begun, and what runs must end: the user wants to stop, or time is over.
    pub fn over(&self) -> Option<Error> {
        if self.stop.load(Relaxed) {
            Some(Error::Interrupted)
        } else if self.deadline.is_some_and(Deadline::has_passed) {
            Some(Error::TimeOver)
        } else {
            None
        }
    }
}

impl Default for RunConfig {
    fn default() -> RunConfig {
        RunConfig {
            carrier: Carrier::default(),
            in_process: true,
            steps: 1_000_000,
            hang: Duration::from_secs(10),
            computes: false,
            memory: sys::total_memory() / 5 * 4,
            symmetry: false,
            spurious: 0,
            faults: Faults::default(),
            world: World::default(),
            worker: 0,
            stop: Arc::default(),
            deadline: None,
            patches: Arc::default(),
            loops: Arc::default(),
            scope: None,
            points: Arc::default(),
            part: None,
            listens: false,
            input: None,
        }
    }
}

/// A program as a part of a system.
#[derive(Clone, Debug)]
pub struct Part {
    /// What all of its processes share.
    pub(crate) shared: Arc<Mapping<System>>,
    /// The number of the program.
    pub(crate) program: u32,
    /// Whether accesses of memory, and calls, are events.
    pub(crate) memory: bool,
}

/// Where a program's output goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Nowhere.
    Dropped,
    /// Kept, up to a limit.
    Kept,
    /// To our own.
    Shown,
}
