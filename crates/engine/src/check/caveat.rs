//! What a check did not explore or control, as data. The sentences are the reporter's.

use crate::check::scope::Patterns;
use crate::patch::PatchedModule;
use crate::program::uninstrumented::Uninstrumented;
use heisen_trace::Note;
use std::time::Duration;

/// One thing that a check did not explore or control.
#[derive(Clone, Debug, PartialEq)]
pub enum Caveat {
    /// An execution did something that limits what the check has shown.
    Note(Note),
    /// Nothing is instrumented and nothing patched: only calls are scheduling points.
    CallsOnly,
    /// Nothing is instrumented; these modules are patched.
    PatchedOnly(Vec<PatchedModule>),
    /// `--races=off`: plain accesses are not scheduling points.
    AtomicsOnly,
    /// The search stopped early, so an access may still become a scheduling point.
    StoppedEarly,
    /// Some code is instrumented, and this is not.
    PartlyInstrumented(Vec<Uninstrumented>),
    /// Data races were asked for, and nothing is instrumented.
    NoRaces,
    /// More data races than are listed.
    MoreRaces {
        /// How many are listed.
        listed: usize,
        /// How many more there are.
        more: usize,
    },
    /// `--focus` and `--no-preempt`.
    OutOfScope(Patterns),
    /// `--at-ready`.
    BeforeReady,
    /// `dpor` met executions that do different things in the same steps.
    DporUnfit,
    /// `dpor` met executions with more events than it compares.
    DporCut {
        /// The most events that it compares.
        events: usize,
        /// How many executions had more.
        executions: u64,
    },
    /// Executions did not follow their plan.
    Diverged(Differs),
    /// Executions failed, and their replays did not.
    Unconfirmed(Differs),
    /// Executions ran beyond `--steps`, and are not known to be livelocks.
    TooLong {
        /// How many.
        executions: u64,
        /// The limit of steps.
        steps: u32,
    },
    /// An execution computed for longer than `--hang`, and went on.
    Computed {
        /// `--hang`.
        hang: Duration,
        /// Where it computed.
        place: String,
    },
    /// Executions failed when no time was left to replay them.
    NoTimeToConfirm {
        /// How many.
        executions: u64,
        /// What the first of them seemed to be.
        seemed: String,
        /// Whether the user ended the check, rather than `--time`.
        interrupted: bool,
    },
    /// Executions still ran when `--time` was over.
    Cut(u64),
    /// The program waits for input from outside.
    Awaited {
        /// For what.
        awaited: String,
        /// How long Heisen waited, if it gave up.
        silence: Option<Duration>,
    },
    /// `--time` was over before the first execution.
    NoTime,
    /// The zygote was killed so many times.
    Lost(u64),
    /// `--time` ended a sampler after so many executions.
    OutOfTime(u64),
}

/// Executions that differ although their schedule is the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Differs {
    /// How many.
    pub executions: u64,
    /// The first event that differs; empty if unknown.
    pub at: String,
    /// What the executions did; some of it may be the cause.
    pub notes: Vec<Note>,
}
