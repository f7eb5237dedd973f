//! Delay bounding, sampled: the default schedule with a few delays at random steps.
//!
//! Emmi, Qadeer, Rakamarić: Delay-Bounded Scheduling, POPL 2011. Most bugs need very few delays; only their
//! positions are random. The first execution, without delays, measures over how many steps they are spread.
//! Longer executions correct this number.

use crate::sampling::common::{Sampler, Sampling};
use heisen_trace::{Execution, Policy};
use serde::{Deserialize, Serialize};

/// Delay bounding; see the head of this file.
pub type Delay = Sampling<Delays>;

/// Makes the plans of [`Delay`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Delays {
    pub(crate) delays: u32,
    /// The number of steps that plans of this batch expect.
    steps: u32,
    /// The largest number of steps seen.
    seen: u32,
}

impl Delays {
    pub(crate) fn new(delays: u32) -> Delays {
        Delays { delays: delays.max(1), steps: 1, seen: 1 }
    }
}

impl Delay {
    /// The search of this seed, with this many delays (at least 1).
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
