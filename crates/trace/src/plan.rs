//! Plans: what the engine asks of the next execution.

use crate::decision::DecisionKind;
use crate::symbolic::ChosenInput;
use crate::target::Predicted;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One decision that a plan fixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Override {
    /// The step of the decision.
    pub step: u32,
    /// The choice to take.
    pub choice: u16,
    /// The number of choices that there must be; 0 if unknown.
    pub options: u16,
    /// The number of the [`DecisionKind`].
    pub kind: u8,
    /// Whether `choice` is the number of a thread and not an index. Past the explored prefix a plan names
    /// preferred threads. Such an override applies to the first thread decision at the step or after it,
    /// unless another override applies to that decision, too. If the thread is not a candidate, the default
    /// is taken. Neither that nor a missing decision is a divergence.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub named: bool,
}

impl Override {
    /// An override for a decision that an earlier execution has shown.
    pub fn new(step: u32, kind: DecisionKind, choice: u16, options: u16) -> Override {
        Override { step, choice, options, kind: kind as u8, named: false }
    }

    /// An override that prefers this thread at a step that no execution has shown.
    pub fn thread(step: u32, thread: u16) -> Override {
        Override { step, choice: thread, options: 0, kind: DecisionKind::Thread as u8, named: true }
    }
}

/// The rule for decisions that no override fixes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Policy {
    /// Choice 0 everywhere: no preemption, fair.
    Default,
    /// Each choice with the same chance.
    Random {
        /// Seed of the choices.
        seed: u64,
    },
    /// Probabilistic concurrency testing: random priorities, and `depth - 1` points at which that of the
    /// running thread drops.
    Pct {
        /// Seed of the priorities and the points.
        seed: u64,
        /// The depth of the bugs that are searched for, at least 1.
        depth: u32,
        /// How many steps an execution is expected to have.
        steps: u32,
    },
    /// As [`Policy::Random`], but the running thread continues for a while before another is chosen.
    Burst {
        /// Seed of the choices.
        seed: u64,
        /// For how many decisions it continues, on average; at least 1.
        length: u32,
    },
    /// As [`Policy::Pct`] for the expected number of steps, then as [`Policy::Random`].
    FairPct {
        /// Seed of the priorities, the points and the choices.
        seed: u64,
        /// As for [`Policy::Pct`].
        depth: u32,
        /// As for [`Policy::Pct`].
        steps: u32,
    },
    /// Partial-order sampling: a random priority for each event.
    Pos {
        /// Seed of the priorities.
        seed: u64,
    },
    /// Selectively uniform random walk: the thread of the next selected event is drawn by the number of
    /// events each has left.
    Surw {
        /// Seed of the choices.
        seed: u64,
        /// The selected part of the objects, from 1 to [`PARTS`](crate::hash::PARTS); 0 if all events are
        /// selected.
        part: u32,
        /// How many selected events a thread takes in a row, on average; 1 if each is drawn anew.
        length: u32,
        /// The expected events of the threads; empty if nothing is known.
        expected: Arc<[Expected]>,
    },
    /// The default policy, with a delay of the scheduled thread at some random steps.
    Delay {
        /// Seed of the steps.
        seed: u64,
        /// The number of delays.
        delays: u32,
        /// How many steps an execution is expected to have.
        steps: u32,
    },
    /// Steered to a target that an earlier execution has shown to be possible.
    Directed {
        /// Seed of the choices that are not steered.
        seed: u64,
        /// For how many decisions a thread that is not held continues, on average; 0 for as long as it is
        /// enabled.
        length: u32,
        /// The target.
        to: Arc<Predicted>,
    },
}

/// The expected events of a thread, by its position in the tree of creation. The first of a list is the main
/// thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expected {
    /// The events of the thread and of all its descendants.
    pub events: u64,
    /// The index of its first child in the list. The children are adjacent.
    pub first_child: u32,
    /// The number of children.
    pub children: u32,
}

/// The sleep set of a plan (Godefroid): threads whose next step was explored from this state already. A
/// thread wakes when an event happens that its next step depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sleep {
    /// They sleep from just before this step, which is at or before the last override.
    pub from: u32,
    /// The touches of their next steps. A thread has an entry for each object, and at least one.
    pub sleepers: Vec<Sleeper>,
}

/// A sleeping thread, and one object that its next step touches. It wakes for good when another thread
/// touches the object, if one of the two writes it, or enables the sleeping thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sleeper {
    /// The thread.
    pub thread: u16,
    /// The object, and whether it is written.
    pub touches: Touches,
}

/// What the next step of a sleeping thread touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Touches {
    /// No object.
    Nothing,
    /// It reads this object.
    Reads(u64),
    /// It writes this object.
    Writes(u64),
    /// Any step of another thread wakes it.
    Everything,
}

/// A plan: overrides, then a policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The fixed decisions, in order of their steps. All other decisions up to the last of them take choice
    /// 0.
    pub overrides: Vec<Override>,
    /// The running hash that must be reached just before the last override; 0 if unknown.
    pub expect: u64,
    /// The number of preemptions among the overrides.
    pub preemptions: u32,
    /// The policy after the last override.
    pub policy: Policy,
    /// The threads that sleep. After the last override the default policy takes the first choice, in order,
    /// whose thread does not sleep, and choice 0 if all sleep.
    #[serde(default, skip_serializing_if = "Sleep::is_empty")]
    pub sleep: Sleep,
    /// Whether the execution shall report its [`Execution::fingerprint`](crate::Execution::fingerprint).
    #[serde(default)]
    pub fingerprint: bool,
    /// Whether the execution shall report its [`Execution::touches`](crate::Execution::touches), whatever the
    /// strategy asks of all executions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub touches: bool,
    /// Whether the touches include places.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub places: bool,
    /// The values of inputs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<ChosenInput>,
}

impl Sleep {
    /// Whether no thread sleeps.
    pub fn is_empty(&self) -> bool {
        self.sleepers.is_empty()
    }
}

impl Plan {
    /// The plan without overrides.
    pub fn new(policy: Policy) -> Plan {
        let (overrides, sleep) = Default::default();
        let (fingerprint, touches, places) = Default::default();
        let inputs = Vec::new();
        Plan { overrides, expect: 0, preemptions: 0, policy, sleep, fingerprint, touches, places, inputs }
    }

    /// Whether the execution reports its class: if the plan asks for it, and if it is steered, because
    /// steering needs the touches of threads.
    pub fn tells_class(&self) -> bool {
        self.fingerprint || self.touches || matches!(self.policy, Policy::Directed { .. })
    }
}
