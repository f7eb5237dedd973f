//! Plans: what the engine asks of the next execution.

use crate::decision::DecisionKind;
use serde::{Deserialize, Serialize};

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
}

impl Override {
    /// An override that expects just what was seen before.
    pub fn new(step: u32, kind: DecisionKind, choice: u16, options: u16) -> Override {
        Override { step, choice, options, kind: kind as u8 }
    }
}

/// How decisions are made that no override fixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
}

impl Plan {
    /// The plan with nothing fixed.
    pub fn new(policy: Policy) -> Plan {
        Plan { overrides: Vec::new(), expect: 0, preemptions: 0, policy }
    }
}
