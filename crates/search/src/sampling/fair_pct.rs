//! Fair probabilistic concurrency testing: priorities for the expected length of an execution, then a random
//! walk.
//!
//! After Coyote (Deligiannis et al., TACAS 2023), where it is the fair form of PCT. A thread may wait for a
//! thread of lower priority without yielding; under the random walk that thread runs in the end. The first
//! execution, under the default policy, measures the expected length. Later executions do not correct it,
//! because such waits alone make them longer.
//!
//! Guarantees: those of PCT, but only for programs whose executions are never longer than the first.
//! Therefore no guarantee is reported.

use crate::sampling::common::{Sampler, Sampling};
use heisen_trace::{Execution, Policy};
use serde::{Deserialize, Serialize};

/// Fair probabilistic concurrency testing; see the head of this file.
pub type FairPct = Sampling<FairPriorities>;

/// Makes the plans of [`FairPct`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FairPriorities {
    pub(crate) depth: u32,
    steps: Option<u32>,
}

impl FairPriorities {
    pub(crate) fn new(depth: u32) -> FairPriorities {
        FairPriorities { depth: depth.max(1), steps: None }
    }
}

impl FairPct {
    /// The search of this seed for bugs of this depth (at least 1).
    pub fn new(seed: u64, depth: u32) -> FairPct {
        Sampling::of(seed, FairPriorities::new(depth))
    }
}

impl Sampler for FairPriorities {
    const LONGEST_BATCH: u64 = 1024;

    fn policy(&mut self, number: u64, seed: u64) -> Policy {
        match self.steps {
            Some(steps) if number > 0 => Policy::FairPct { seed, depth: self.depth, steps },
            _ => Policy::Default,
        }
    }

    fn learn(&mut self, _policy: &Policy, execution: &Execution, _usable: bool, _new: Option<bool>) {
        self.steps.get_or_insert(execution.steps);
    }
}
