//! A finished execution, as the search and the judge see it.

use crate::decision::Decision;
use crate::note::Note;
use crate::touch::Touch;

/// How an execution ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The process exited with this status.
    Exit(i32),
    /// A signal killed the process.
    Signal(i32),
    /// No thread could take a step.
    Deadlock,
    /// The step limit was reached under a fair schedule.
    StepLimit,
    /// A thread ran on without ever reaching a scheduling point and was stopped.
    Stuck,
}

/// Where an execution left the path its plan laid down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// The step of the override that could not be followed.
    pub step: u32,
    /// What was found there instead.
    pub found: String,
}

/// One finished execution.
#[derive(Clone, Debug)]
pub struct Execution {
    /// Scheduling points passed.
    pub steps: u32,
    /// Threads created, the main thread included.
    pub threads: u32,
    /// The decisions, where the plan had them recorded.
    pub decisions: Vec<Decision>,
    /// What its steps touched, in order, where the plan had that recorded.
    pub touches: Vec<Touch>,
    /// How it ended.
    pub end: End,
    /// What it did that is not controlled.
    pub notes: Vec<Note>,
    /// Set if it did not follow its plan.
    pub diverged: Option<Divergence>,
    /// What it did, up to the order of steps that do not depend on each other, as a hash; where the plan asked for it,
    /// or for states or touches.
    pub fingerprint: Option<u64>,
    /// The events of its threads, by their numbers, where the policy counts them.
    pub counted: Vec<Counted>,
}

/// How many events a thread had that count for the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The thread that created it; none for the main thread.
    pub parent: Option<u16>,
    /// Its number among the threads of that one, from 1.
    pub child: u16,
    /// How many.
    pub events: u32,
}
