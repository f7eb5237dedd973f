//! Lists what a check did not explore or control, as data. The command line's `render` turns it into
//! sentences.

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
    /// Nothing is instrumented, but these modules are patched.
    PatchedOnly(Vec<PatchedModule>),
    /// `--races=off`: plain accesses are not scheduling points.
    AtomicsOnly,
    /// The search stopped early, so an access may still become a scheduling point.
    StoppedEarly,
    /// Some code is instrumented, but this code is not.
    PartlyInstrumented(Vec<Uninstrumented>),
    /// Data races were asked for, but nothing is instrumented.
    NoRaces,
    /// There are more data races than are listed.
    MoreRaces {
        /// How many are listed.
        listed: usize,
        /// How many more there are.
        more: usize,
    },
    /// Threads were preempted only in some code (`--focus` and `--no-preempt`).
    OutOfScope(Patterns),
    /// Code before `heisen_ready` was not explored (`--at-ready`).
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
    /// The solver-driven search may have missed paths, for this reason.
    NotExact(String),
    /// The program asks for inputs, and the search does not choose them.
    InputsKept,
    /// Executions did not follow their plan.
    Diverged(Differs),
    /// Executions failed, but their replays did not.
    Unconfirmed(Differs),
    /// Executions reached the limit of `--steps`, and are not known to be livelocks.
    TooLong {
        /// How many executions.
        executions: u64,
        /// The step limit.
        steps: u32,
    },
    /// An execution computed for longer than `--hang` and went on.
    Computed {
        /// The value of `--hang`.
        hang: Duration,
        /// Where it computed.
        place: String,
    },
    /// Executions failed when no time was left to replay them.
    NoTimeToConfirm {
        /// How many executions.
        executions: u64,
        /// What the first of them appeared to be.
        seemed: String,
        /// Whether the user ended the check, rather than `--time`.
        interrupted: bool,
    },
    /// So many executions were still running when `--time` was over.
    Cut(u64),
    /// The program waits for input from outside.
    Awaited {
        /// What it waits for.
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

/// Executions that differ although they have the same schedule.
#[derive(Clone, Debug, PartialEq)]
pub struct Differs {
    /// How many executions.
    pub executions: u64,
    /// The first event that differs; empty if unknown.
    pub at: String,
    /// What the executions did; some of it may be the cause.
    pub notes: Vec<Note>,
}
