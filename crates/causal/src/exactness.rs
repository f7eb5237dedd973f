//! Why a search that has asked everything has still not proven anything.

use heisen_trace::Op;
use heisen_trace::symbolic::PinReason;
use std::collections::BTreeMap;
use std::fmt;

/// A reason why executions may exist that the search does not know of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// An expression was replaced by its value, and other values are not outcomes of their own.
    Pinned(PinReason),
    /// Code that is not instrumented has written memory.
    Overwritten,
    /// A trace outgrew its memory.
    TraceFull,
    /// Memory kept turning out to be shared.
    Incomplete,
    /// An execution reached the step limit.
    StepLimit,
    /// A thread ran on without reaching a scheduling point.
    Stuck,
    /// One path has led to different next events.
    Nondeterminism {
        /// The place of one of them.
        pc: u64,
    },
    /// A trace contradicts itself.
    Invalid,
    /// The constraints do not say all of what this operation does.
    Operation(Op),
    /// Executions disagreed about what memory holds at first, or how many tokens a semaphore has.
    InitialValues,
    /// A semaphore was initialised when threads may have used it already.
    Reinitialised,
    /// A thread waited for ever after this place, for something that the trace does not say.
    UnknownWait {
        /// The place.
        pc: u64,
    },
    /// An operation without a result, such as a shift by more than the width, did not end the process.
    Undefined {
        /// The place of what uses it.
        pc: u64,
    },
    /// An execution did not go where its plan should have led it.
    Diverged {
        /// The place that it should have reached.
        pc: u64,
    },
    /// The solver gave up.
    SolverLimit,
    /// The constraints of all paths outgrew their memory.
    Memory,
    /// The caller stopped the search while it took an execution.
    Stopped,
    /// An execution has no symbolic trace: the program is not built for it.
    NoTrace,
}

impl Reason {
    /// Reasons that differ only in places are counted together.
    fn sort(self) -> String {
        match self {
            Reason::Pinned(reason) => {
                let what = match reason {
                    PinReason::Address => "an address",
                    PinReason::Size => "the size of a block of memory",
                    PinReason::Float => "the operand of a floating-point operation",
                    PinReason::Vector => "the operand of a vector operation",
                    PinReason::Wide => "an integer of more than 64 bits",
                    PinReason::Foreign => "the argument of a function that is not instrumented",
                    PinReason::Assembly => "what inline assembly uses",
                    PinReason::Other => "the operand of another operation",
                    PinReason::Switch => "the operand of a switch",
                    PinReason::Allocation => "the address of a new block of memory",
                    PinReason::Descriptor => "what a descriptor gives that --input does not mark, or that several threads use,",
                };
                format!("other values of {what} were not explored")
            }
            Reason::Overwritten => "code that is not instrumented has written memory".into(),
            Reason::TraceFull => "a trace outgrew its memory".into(),
            Reason::Incomplete => "memory kept turning out to be shared".into(),
            Reason::StepLimit => "an execution reached the step limit".into(),
            Reason::Stuck => "a thread ran on without reaching a scheduling point".into(),
            Reason::Nondeterminism { .. } => "one path led to different operations".into(),
            Reason::Invalid => "a trace contradicts itself".into(),
            Reason::Operation(op) => format!("effects of {} on other threads were not explored", op.name()),
            Reason::InitialValues => "executions found different initial values in memory".into(),
            Reason::Reinitialised => "a semaphore was initialised that may have been in use".into(),
            Reason::UnknownWait { .. } => "a thread waited for something that the trace does not name".into(),
            Reason::Undefined { .. } => {
                "an operation without a defined result did not end the process".into()
            }
            Reason::Diverged { .. } => "an execution did not follow its plan".into(),
            Reason::Memory => "the paths of the threads outgrew the memory of the search".into(),
            Reason::Stopped => "the time was over before an execution was analysed".into(),
            Reason::SolverLimit => "the solver reached its limit".into(),
            Reason::NoTrace => "the program was not built symbolically, so nothing was explored beyond the executions that ran".into(),
        }
    }

    fn place(self) -> Option<u64> {
        match self {
            Reason::Nondeterminism { pc }
            | Reason::UnknownWait { pc }
            | Reason::Undefined { pc }
            | Reason::Diverged { pc } => Some(pc),
            _ => None,
        }
    }
}

/// What a reason has been counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// How often it occurred.
    pub times: u64,
    /// The place of its first occurrence, if it has one.
    pub first_place: Option<u64>,
}

/// Whether the search knows of all executions that may exist, and if not, why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exactness {
    reasons: BTreeMap<String, Counted>,
    /// Whether there are reasons other than that the search was stopped.
    is_doubtful: bool,
}

impl Exactness {
    /// Whether nothing is missing.
    pub fn is_exact(&self) -> bool {
        self.reasons.is_empty()
    }

    /// The reasons, in words, and how often each occurred.
    pub fn reasons(&self) -> impl Iterator<Item = (&str, Counted)> {
        self.reasons.iter().map(|(reason, counted)| (reason.as_str(), *counted))
    }

    /// Whether what was proven before the search was stopped may be wrong.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.is_doubtful
    }

    pub(crate) fn add(&mut self, reason: Reason) {
        self.is_doubtful |= reason != Reason::Stopped;
        self.count(reason.sort(), reason.place());
    }

    /// An argument of a function that is not instrumented was replaced by its value.
    pub(crate) fn add_argument_of(&mut self, function: &str) {
        self.is_doubtful = true;
        self.count(format!("other values of the argument of `{function}` were not explored"), None);
    }

    fn count(&mut self, reason: String, first_place: Option<u64>) {
        self.reasons.entry(reason).or_insert(Counted { times: 0, first_place }).times += 1;
    }
}

impl fmt::Display for Exactness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_exact() {
            return f.write_str("exact");
        }
        f.write_str("not exact:")?;
        for (number, (reason, counted)) in self.reasons().enumerate() {
            write!(f, "{} {reason} ({})", if number == 0 { "" } else { ";" }, counted.times)?;
        }
        Ok(())
    }
}
