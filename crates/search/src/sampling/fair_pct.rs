//! Fair probabilistic concurrency testing: by priority for as long as an execution is expected to be, then a random walk.
//!
//! After Coyote (Deligiannis et al., TACAS 2023), where it is the fair form of PCT: a thread that waits for one of low
//! priority, and does not tell by yielding, gets what it waits for. How long an execution is expected to be is measured
//! by the first, under the default policy, and not corrected: later ones are longer just because of such waits.
//!
//! Guarantees: as PCT, for programs of which no execution is longer than the first; that is why none is stated.

use crate::sampling::common::{Sampler, Sampling};
use heisen_trace::{Execution, Policy};
use serde::{Deserialize, Serialize};

/// Fair probabilistic concurrency testing.
pub type FairPct = Sampling<FairPriorities>;

/// What makes its plans.
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
    /// The search for bugs of this depth (at least 1) that this seed stands for.
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
