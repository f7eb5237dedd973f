//! Delay bounding, sampled: the default schedule with a few random delays.
//!
//! Emmi, Qadeer, Rakamarić: Delay-Bounded Scheduling, POPL 2011. Most bugs need very few delays, and where they lie is
//! all that is left to chance. How many steps there are for them is measured by the first execution, without any, and
//! corrected by longer ones.

use crate::sampling::common::{Sampler, Sampling};
use heisen_trace::{Execution, Policy};
use serde::{Deserialize, Serialize};

/// Delay bounding.
pub type Delay = Sampling<Delays>;

/// What makes its plans.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Delays {
    pub(crate) delays: u32,
    /// The steps that plans of this batch expect.
    steps: u32,
    /// The most steps seen.
    seen: u32,
}

impl Delays {
    pub(crate) fn new(delays: u32) -> Delays {
        Delays { delays: delays.max(1), steps: 1, seen: 1 }
    }
}

impl Delay {
    /// The search with so many delays (at least 1) that this seed stands for.
    pub fn new(seed: u64, delays: u32) -> Delay {
        Sampling::of(seed, Delays::new(delays))
    }
}

impl Sampler for Delays {
    const LONGEST_BATCH: u64 = 1024;

    fn policy(&mut self, number: u64, seed: u64) -> Policy {
        match number {
            0 => Policy::Default,
            _ => Policy::Delay { seed, delays: self.delays, steps: self.steps },
        }
    }

    fn learn(&mut self, _policy: &Policy, execution: &Execution, _usable: bool, _new: Option<bool>) {
        self.seen = self.seen.max(execution.steps);
    }

    fn settle(&mut self) {
        self.steps = self.seen;
    }
}
