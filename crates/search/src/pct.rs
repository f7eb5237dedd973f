//! Probabilistic concurrency testing: random priorities, and a few random points at which they change.
//!
//! Burckhardt, Kothari, Musuvathi, Nagarakatte: A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs,
//! ASPLOS 2010. The scheduling itself is the runtime's; here lies what it needs to know (a seed, the depth, how many
//! steps to spread the points over) and what it earns.
//!
//! Guarantees: one execution finds a bug of depth d with a probability of at least 1 / (n · k^(d-1)) in a program of
//! at most n threads and k steps. Neither is known beforehand: the first execution, under the default policy,
//! measures them, and later ones correct them. So the guarantee holds for programs that never do more than was seen,
//! and an execution that was planned with fewer steps than are known by now does not count. Never ends.
//!
//! A seed alone reproduces the search: the steps in use only change between batches, when nothing is out, so they do
//! not depend on how many executions run at a time. A batch that is nearly through keeps the others waiting, which is
//! rare as batches get longer.

use crate::ledger::Ledger;
use crate::{Guarantee, Status, Strategy, seeds};
use heisen_trace::{End, Execution, Plan, Policy};
use serde::{Deserialize, Serialize};

/// The longest batch. Steps that were found too low are corrected after so many executions at the latest.
const LONGEST_BATCH: u64 = 1024;

/// Probabilistic concurrency testing.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pct {
    seed: u64,
    depth: u32,
    /// Plans in this batch: 1, 2, 4 and so on.
    batch: u64,
    /// The number of the first plan after this batch.
    batch_end: u64,
    /// The steps that plans of this batch expect.
    steps: u32,
    /// The most steps seen.
    seen_steps: u32,
    /// The most threads seen.
    seen_threads: u32,
    /// Executions that count for the guarantee.
    counted: u64,
    ledger: Ledger,
}

impl Pct {
    /// The search for bugs of this depth (at least 1) that this seed stands for.
    pub fn new(seed: u64, depth: u32) -> Pct {
        Pct {
            seed,
            depth: depth.max(1),
            batch: 1,
            batch_end: 1,
            steps: 1,
            seen_steps: 1,
            seen_threads: 1,
            counted: 0,
            ledger: Ledger::default(),
        }
    }

    fn policy(&self) -> Policy {
        match self.ledger.handed() {
            0 => Policy::Default,
            n => Policy::Pct { seed: seeds::nth(self.seed, n), depth: self.depth, steps: self.steps },
        }
    }
}

impl Strategy for Pct {
    fn next(&mut self) -> Option<Plan> {
        if let Some(plan) = self.ledger.again() {
            return Some(plan);
        }
        if self.ledger.handed() == self.batch_end {
            if !self.ledger.is_settled() {
                return None;
            }
            self.steps = self.seen_steps;
            self.batch = (self.batch * 2).min(LONGEST_BATCH);
            self.batch_end += self.batch;
        }
        let plan = Plan::new(self.policy());
        Some(self.ledger.hand_out(plan))
    }

    fn done(&mut self, plan: &Plan, execution: &Execution) {
        let usable = self.ledger.done(plan, execution);
        self.seen_threads = self.seen_threads.max(execution.threads);
        if execution.steps > self.seen_steps {
            self.seen_steps = execution.steps;
            // All of them had their points spread over too few steps.
            self.counted = 0;
        }
        // An execution that the step limit ended was not scheduled by priority to its end.
        let ended = usable && execution.end != End::StepLimit;
        if let Policy::Pct { steps, .. } = plan.policy
            && ended
            && steps >= self.seen_steps
        {
            self.counted += 1;
        }
    }

    fn give_back_unrun(&mut self, plan: &Plan) {
        self.ledger.give_back(plan);
    }

    fn needs_decisions(&self) -> bool {
        false
    }

    fn status(&self) -> Status {
        let mut status = self.ledger.status();
        if status.executions > 0 {
            let (threads, steps) = (self.seen_threads, self.seen_steps);
            status.guarantee = Some(Guarantee::new(self.depth, threads, steps, self.counted));
        }
        status
    }
}
