//! Plans: what the engine asks of the next execution.

use crate::decision::DecisionKind;
use crate::target::Predicted;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One decision that a plan fixes to something other than the policy's own choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Override {
    /// The step of the decision.
    pub step: u32,
    /// The choice to take.
    pub choice: u16,
    /// How many choices there must be; 0 if that is not known.
    pub options: u16,
    /// What is being chosen, as [`DecisionKind`]'s number.
    pub kind: u8,
    /// Whether `choice` is the number of a thread and not an index. Such an override asks for what nobody has seen yet. It is
    /// for the first decision on threads at the step or after it, unless another override is for that one, too. It is no
    /// divergence if it cannot be followed: the thread is not a candidate, and then the default is taken, or there is no
    /// such decision.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub named: bool,
}

impl Override {
    /// An override that expects just what was seen before.
    pub fn new(step: u32, kind: DecisionKind, choice: u16, options: u16) -> Override {
        Override { step, choice, options, kind: kind as u8, named: false }
    }

    /// An override that lets this thread take the step, where it is not known who else could.
    pub fn thread(step: u32, thread: u16) -> Override {
        Override { step, choice: thread, options: 0, kind: DecisionKind::Thread as u8, named: true }
    }
}

/// How decisions are made that no override fixes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Policy {
    /// Choice 0 everywhere: no preemption, fair.
    Default,
    /// Each choice with the same chance.
    Random {
        /// Seed of the choices.
        seed: u64,
    },
    /// Probabilistic concurrency testing: random priorities, `depth - 1` points at which the running thread's drops.
    Pct {
        /// Seed of the priorities and the points.
        seed: u64,
        /// The depth of the bugs that are looked for, at least 1.
        depth: u32,
        /// How many steps an execution is expected to have.
        steps: u32,
    },
    /// As [`Policy::Random`], but the running thread goes on for a while before another is chosen.
    Burst {
        /// Seed of the choices.
        seed: u64,
        /// For how many decisions it goes on, on average; at least 1.
        length: u32,
    },
    /// As [`Policy::Pct`] for as many steps as are expected, then as [`Policy::Random`].
    FairPct {
        /// Seed of the priorities, the points and the choices.
        seed: u64,
        /// As for [`Policy::Pct`].
        depth: u32,
        /// As for [`Policy::Pct`].
        steps: u32,
    },
    /// Partial order sampling: a random priority for each event.
    Pos {
        /// Seed of the priorities.
        seed: u64,
    },
    /// Selectively uniform random walk: the thread of the next event that counts is chosen by how many each has left.
    Surw {
        /// Seed of the choices.
        seed: u64,
        /// Which part of the objects counts, from 1 to [`PARTS`](crate::hash::PARTS); 0 if everything does.
        part: u32,
        /// How many events that count a thread has in a row, on average; 1 if each is chosen anew.
        length: u32,
        /// Events that are expected of the threads; none if nothing is known.
        expected: Arc<[Expected]>,
    },
    /// The default, but for some random steps at which the thread is passed over whose turn it is.
    Delay {
        /// Seed of the steps.
        seed: u64,
        /// How many they are.
        delays: u32,
        /// How many steps an execution is expected to have.
        steps: u32,
    },
    /// Steered to something that an earlier execution has shown to be possible.
    Directed {
        /// Seed of what is not steered.
        seed: u64,
        /// For how many decisions a thread goes on that is not held, on average; 0 for as long as it can.
        length: u32,
        /// Where to.
        to: Arc<Predicted>,
    },
}

/// What is expected of the thread at a place in the tree of creation. The first of a list of them is the main thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expected {
    /// Events of it and of all threads that it creates, and they create, and so on.
    pub events: u64,
    /// Where in the list its children are, one after the other.
    pub first_child: u32,
    /// How many they are.
    pub children: u32,
}

/// Threads that are not to go on yet: whatever begins with their next step was explored before, unless something that step
/// depends on comes first (Godefroid's sleep sets).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sleep {
    /// They sleep from just before this step on, at or before the last override.
    pub from: u32,
    /// What their next steps touch; a thread comes as often as there are objects, and at least once.
    pub sleepers: Vec<Sleeper>,
}

/// A thread that sleeps, and one object that its next step touches. It wakes up for good when another thread touches
/// the object, at least one of the two writing it, or enables the sleeping thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sleeper {
    /// The thread.
    pub thread: u16,
    /// The object and whether it is written.
    pub touches: Touches,
}

/// What the next step of a sleeping thread touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Touches {
    /// Nothing.
    Nothing,
    /// It reads this object.
    Reads(u64),
    /// It writes this object.
    Writes(u64),
    /// All there is: any step of another thread wakes it.
    Everything,
}

/// What one execution is asked to do: overrides, then the policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Decisions that are fixed, in order of their steps. Up to the last of them everything else is choice 0.
    pub overrides: Vec<Override>,
    /// The running hash that must be reached just before the last override; 0 if it is not known.
    pub expect: u64,
    /// Preemptions among the overrides.
    pub preemptions: u32,
    /// What decides after the last override.
    pub policy: Policy,
    /// Threads that the default policy leaves aside after the last override: it takes the first choice, in order, whose
    /// thread does not sleep, and choice 0 if all do.
    #[serde(default, skip_serializing_if = "Sleep::is_empty")]
    pub sleep: Sleep,
    /// Whether [`Execution::fingerprint`](crate::Execution::fingerprint) is asked for.
    #[serde(default)]
    pub fingerprint: bool,
    /// Whether [`Execution::touches`](crate::Execution::touches) are asked for, whatever the strategy asks of all.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub touches: bool,
    /// Whether those tell where in the code they were made.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub places: bool,
}

impl Sleep {
    /// Whether nobody sleeps.
    pub fn is_empty(&self) -> bool {
        self.sleepers.is_empty()
    }
}

impl Plan {
    /// The plan with nothing fixed.
    pub fn new(policy: Policy) -> Plan {
        let (overrides, sleep) = Default::default();
        let (fingerprint, touches, places) = Default::default();
        Plan { overrides, expect: 0, preemptions: 0, policy, sleep, fingerprint, touches, places }
    }

    /// Whether the execution tells which class it is of: where that is asked for, and where it is steered, as that goes by what
    /// threads have touched.
    pub fn tells_class(&self) -> bool {
        self.fingerprint || self.touches || matches!(self.policy, Policy::Directed { .. })
    }
}
