//! Probabilistic concurrency testing: random priorities, and a few random points at which they change.
//!
//! Burckhardt, Kothari, Musuvathi, Nagarakatte: A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs,
//! ASPLOS 2010. The scheduling itself is the runtime's; here lies what it needs to know (a seed, the depth, how many
//! steps to spread the points over) and what it earns.
//!
//! Guarantees: one execution finds a bug of depth d with a probability of at least 1 / (n · k^(d-1)) in a program of
//! at most n threads and k steps. Neither is known beforehand: the first execution, under the default policy,
//! measures them, and later ones correct them. So the guarantee holds for programs that never do more than was seen,
//! and an execution that was planned with fewer steps than are known by now does not count.

use crate::Guarantee;
use crate::sampling::common::{Sampler, Sampling};
use heisen_trace::{End, Execution, Policy};
use serde::{Deserialize, Serialize};

/// Probabilistic concurrency testing.
pub type Pct = Sampling<Priorities>;

/// What makes its plans.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Priorities {
    pub(crate) depth: u32,
    /// The steps that plans of this batch expect.
    steps: u32,
    /// The most steps seen.
    seen_steps: u32,
    /// The most threads seen.
    seen_threads: u32,
    /// Executions that count for the guarantee.
    counted: u64,
}

impl Priorities {
    pub(crate) fn new(depth: u32) -> Priorities {
        Priorities { depth: depth.max(1), steps: 1, seen_steps: 1, seen_threads: 1, counted: 0 }
    }
}

impl Pct {
    /// The search for bugs of this depth (at least 1) that this seed stands for.
    pub fn new(seed: u64, depth: u32) -> Pct {
        Sampling::of(seed, Priorities::new(depth))
    }
}

impl Sampler for Priorities {
    /// Steps that were found too low are corrected after so many executions at the latest.
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
            // All of them had their points spread over too few steps.
            self.counted = 0;
        }
        // An execution that the step limit ended was not scheduled by priority to its end.
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
