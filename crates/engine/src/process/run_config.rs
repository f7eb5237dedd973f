//! Holds the settings for all executions of a parked program: limits, environment, carrier and output.

use crate::error::Error;
use crate::patch::Patches;
use crate::platform::sys;
use crate::platform::sys::Mapping;
use crate::process::access_points::Points;
use crate::process::deadline::Deadline;
use crate::process::scope_ranges::Scope;
use crate::process::spin_watch::Loops;
use heisen_trace::schedule::InputLine;
use heisen_trace::{Faults, World};
use heisen_wire::flag;
use heisen_wire::system::System;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The carrier of a program's threads. Both carriers have the same scheduling points, so a schedule found
/// with one replays with the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Carrier {
    /// One kernel thread carries all threads: fast.
    #[default]
    Fibers,
    /// Each thread has a kernel thread; only one of them runs at a time.
    Kernel,
}

impl Carrier {
    /// The flags of a plan that select it.
    pub(super) fn flags(self) -> u32 {
        match self {
            Carrier::Fibers => 0,
            Carrier::Kernel => flag::KERNEL,
        }
    }
}

/// The variable by which a user asks for backtraces.
pub(super) const BACKTRACE: &str = "RUST_BACKTRACE";

/// How executions run. Only some of the fields are limits.
#[derive(Clone, Debug)]
pub struct RunConfig {
    /// What the threads run on.
    pub carrier: Carrier,
    /// Whether a runner runs many executions in one process and restores the snapshot after each, where that
    /// is possible.
    pub in_process: bool,
    /// The most steps of one execution.
    pub steps: u32,
    /// How much processor time a program may use without a scheduling point, and how long it may block.
    pub hang: Duration,
    /// Whether a program that uses more processor time goes on after a look at its threads. Something else
    /// must end it then.
    pub computes: bool,
    /// How many bytes of data a program may have.
    pub memory: u64,
    /// Whether symmetry reduction is on: of interchangeable threads, only the first may be scheduled.
    pub symmetry: bool,
    /// The most spurious wake-ups of one execution.
    pub spurious: u32,
    /// The most faults of one execution, and their kinds.
    pub faults: Faults,
    /// The environment of the executions.
    pub world: World,
    /// The worker's number, which separates executions that run at the same time.
    pub worker: usize,
    /// Set when the user wants to stop.
    pub stop: Arc<AtomicBool>,
    /// When the executions must end.
    pub deadline: Option<Deadline>,
    /// The patches of the program, as `world` asks for them. All holders of this value share them.
    pub patches: Arc<Patches>,
    /// Loops that were forced to yield because they ran for too long.
    pub loops: Arc<Loops>,
    /// Where threads may be preempted; `None` means anywhere.
    pub scope: Option<Arc<Scope>>,
    /// Accesses that are scheduling points, in addition to those that `world` names.
    pub points: Arc<Points>,
    /// Set if the program is part of a system in system mode: its threads run in parallel, and a script holds
    /// them only at the events it names.
    pub part: Option<Part>,
    /// Whether the program's threads run in parallel and scripts may attach to it while it runs.
    pub listens: bool,
    /// Set if executions may log symbolic traces, or if inputs are chosen. All accesses of memory by instrumented code are
    /// scheduling points then.
    pub symbolic: Option<Symbolic>,
    /// Recorded input, which the executions receive instead of input from outside.
    pub input: Option<Arc<[u8]>>,
    /// Whether a program in Rust prints the backtraces of its panics if `RUST_BACKTRACE` asks for them.
    pub backtraces: bool,
}

impl RunConfig {
    /// The same without backtraces, if the environment asks for them. A backtrace takes longer than most executions.
    pub fn without_backtraces(&self) -> Option<RunConfig> {
        let wanted = std::env::var_os(BACKTRACE).is_some_and(|value| value != "0");
        (self.backtraces && wanted).then(|| RunConfig { backtraces: false, ..self.clone() })
    }

    /// Why no execution may begin and running ones must end: the user wants to stop, or the time is over.
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
            symbolic: None,
            input: None,
            backtraces: true,
        }
    }
}

/// What symbolic executions need.
#[derive(Clone, Debug)]
pub struct Symbolic {
    /// The most bytes of a trace.
    pub memory: u64,
    /// The inputs of executions whose plan chooses none.
    pub inputs: Arc<[InputLine]>,
    /// The numbers of granules that were found to be shared. All holders of this value share them.
    pub shared: Arc<Mutex<BTreeSet<u64>>>,
}

impl Default for Symbolic {
    fn default() -> Symbolic {
        Symbolic { memory: 256 << 20, inputs: Arc::default(), shared: Arc::default() }
    }
}

/// A program as part of a system.
#[derive(Clone, Debug)]
pub struct Part {
    /// The memory shared by all processes of the system.
    pub(crate) shared: Arc<Mapping<System>>,
    /// The program's number in the system.
    pub(crate) program: u32,
    /// Whether memory accesses and calls are events.
    pub(crate) memory: bool,
}

/// Where a program's output goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// It is discarded.
    Dropped,
    /// It is captured, up to a limit.
    Captured,
    /// It goes to Heisen's own output.
    Shown,
}
