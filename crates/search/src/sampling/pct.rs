//! Probabilistic concurrency testing: random priorities, and a few random points at which they change.
//!
//! Burckhardt, Kothari, Musuvathi, Nagarakatte: A Randomized Scheduler with Probabilistic Guarantees of
//! Finding Bugs, ASPLOS 2010. The runtime does the scheduling. This module gives it a seed, the depth, and
//! the number of steps over which the points are spread, and computes the guarantee.
//!
//! Guarantees: in a program of at most n threads and k steps, one execution finds a bug of depth d with a
//! probability of at least 1 / (n · k^(d-1)). Neither n nor k is known in advance: the first execution, under
//! the default policy, measures them, and later ones correct them. The guarantee therefore holds for programs
//! that never exceed the numbers seen. An execution that was planned with fewer steps than are known by now
//! does not count.

use crate::Guarantee;
use crate::sampling::common::{Sampler, Sampling};
use heisen_trace::{End, Execution, Policy};
use serde::{Deserialize, Serialize};

/// Probabilistic concurrency testing; see the head of this file.
pub type Pct = Sampling<Priorities>;

/// Makes the plans of [`Pct`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Priorities {
    pub(crate) depth: u32,
    /// The number of steps that plans of this batch expect.
    steps: u32,
    /// The largest number of steps seen.
    seen_steps: u32,
    /// The largest number of threads seen.
    seen_threads: u32,
    /// How many executions count for the guarantee.
    counted: u64,
}

impl Priorities {
    pub(crate) fn new(depth: u32) -> Priorities {
        Priorities { depth: depth.max(1), steps: 1, seen_steps: 1, seen_threads: 1, counted: 0 }
    }
}

impl Pct {
    /// The search of this seed for bugs of this depth (at least 1).
    pub fn new(seed: u64, depth: u32) -> Pct {
        Sampling::of(seed, Priorities::new(depth))
    }
}

impl Sampler for Priorities {
    /// A number of steps that is too low is corrected after at most this many executions.
    const LONGEST_BATCH: u64 = 1024;

    fn policy(&mut self, number: u64, seed: u64) -> Policy {
        match number {
            0 => Policy::Default,
            _ => Policy::Pct { seed, depth: self.depth, steps: self.steps },
        }
    }

    fn learn(&mut self, policy: &Policy, execution: &Execution, usable: bool, _new: Option<bool>) {
        self.seen_threads = self.seen_threads.max(execution.threads);
        if execution.steps > self.seen_steps {
            self.seen_steps = execution.steps;
            // The earlier executions spread their points over too few steps.
            self.counted = 0;
        }
        // Priorities did not schedule an execution to its end if the step limit ended it.
        let ended = usable && execution.end != End::StepLimit;
        if let Policy::Pct { steps, depth, .. } = *policy
            && ended
            && depth == self.depth
            && steps >= self.seen_steps
        {
            self.counted += 1;
        }
    }

    fn settle(&mut self) {
        self.steps = self.seen_steps;
    }

    fn guarantee(&self) -> Option<Guarantee> {
        Some(Guarantee::new(self.depth, self.seen_threads, self.seen_steps, self.counted))
    }
}
