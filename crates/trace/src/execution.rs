//! A finished execution, as the search and the engine see it.

use crate::decision::Decision;
use crate::note::Note;
use crate::symbolic::SymbolicTrace;
use crate::touch::Touch;
use std::sync::Arc;

/// How an execution ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The process exited with this status.
    Exit(i32),
    /// A signal killed the process.
    Signal(i32),
    /// No thread was enabled.
    Deadlock,
    /// The step limit was reached under a fair schedule.
    StepLimit,
    /// A thread ran on without reaching a scheduling point, and was stopped.
    Stuck,
}

/// Where an execution left the prefix of its plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// The step of the override that could not be followed.
    pub step: u32,
    /// What the runtime found there instead.
    pub found: String,
}

/// One finished execution.
#[derive(Clone, Debug)]
pub struct Execution {
    /// The number of scheduling points passed.
    pub steps: u32,
    /// The number of threads created, the main thread included.
    pub threads: u32,
    /// The decisions, if the plan asked for them.
    pub decisions: Vec<Decision>,
    /// The touches of its steps, in order, if the plan asked for them.
    pub touches: Vec<Touch>,
    /// How it ended.
    pub end: End,
    /// What it did that Heisen does not control.
    pub notes: Vec<Note>,
    /// Set if it did not follow its plan.
    pub diverged: Option<Divergence>,
    /// A hash of its behaviour, up to the order of independent steps, if the plan asked for it, for states or
    /// for touches.
    pub fingerprint: Option<u64>,
    /// The event counts of its threads, by thread number, if the policy counts events.
    pub counted: Vec<Counted>,
    /// Its symbolic trace, if that was asked for.
    pub symbolic: Option<Arc<SymbolicTrace>>,
}

/// How many events of a thread the policy counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The thread that created it; `None` for the main thread.
    pub parent: Option<u16>,
    /// Its number among the threads of that thread, from 1.
    pub child: u16,
    /// The number of events.
    pub events: u32,
}
