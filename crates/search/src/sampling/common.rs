//! What all searches by chance have in common: plans by number, each with a seed of its own, and what was learnt of the
//! program between them. What sets one apart from the others is its [`Sampler`].
//!
//! A seed alone reproduces the search, however many executions run at a time: what a sampler has learnt only counts
//! between batches, when nothing is out. A batch that is nearly through keeps the others waiting, which is rare as
//! batches get longer. A sampler that learns nothing has no batches, but for the first execution. Never ends.

use crate::analysis::behaviours::Behaviours;
use crate::analysis::seeds;
use crate::store::ledger::Ledger;
use crate::{Guarantee, Status, Strategy};
use heisen_trace::{Execution, Plan, Policy};
use serde::{Deserialize, Serialize};

/// What makes the plans of a search by chance.
pub trait Sampler {
    /// Plans of the longest batch; 1 if it learns nothing.
    const LONGEST_BATCH: u64;
    /// Plans of the batch after the first, which has one. All others have twice as many as the one before.
    const SECOND_BATCH: u64 = 2;

    /// The policy of plan `number`, from 0, which has this seed.
    fn policy(&mut self, number: u64, seed: u64) -> Policy;

    /// The same as a plan, for samplers that fix decisions besides.
    fn plan(&mut self, number: u64, seed: u64) -> Plan {
        Plan::new(self.policy(number, seed))
    }

    /// Whether that plan, with this policy, shall tell all that its execution touches.
    fn touches(&self, _number: u64, _policy: &Policy) -> bool {
        false
    }

    /// Learns from a finished execution: whether it followed its plan to its end, and whether it did something that none
    /// did before, if that is known.
    fn learn(&mut self, _policy: &Policy, _execution: &Execution, _usable: bool, _new: Option<bool>) {}

    /// Nothing is out: what was learnt may count.
    fn settle(&mut self) {}

    /// What the executions so far guarantee.
    fn guarantee(&self) -> Option<Guarantee> {
        None
    }
}

/// A search by chance.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sampling<S> {
    seed: u64,
    pub(crate) sampler: S,
    /// Plans in this batch.
    batch: u64,
    /// The number of the first plan after this batch.
    batch_end: u64,
    behaviours: Behaviours,
    ledger: Ledger,
}

impl<S: Sampler> Sampling<S> {
    pub(crate) fn of(seed: u64, sampler: S) -> Sampling<S> {
        let (behaviours, ledger) = Default::default();
        Sampling { seed, sampler, batch: 1, batch_end: 1, behaviours, ledger }
    }
}

impl<S: Sampler> Strategy for Sampling<S> {
    fn next(&mut self) -> Option<Plan> {
        if let Some(plan) = self.ledger.again() {
            return Some(plan);
        }
        let number = self.ledger.handed();
        // The first is alone: it shows how long executions are.
        if number == 1 && !self.ledger.is_settled() {
            return None;
        }
        if S::LONGEST_BATCH > 1 && number == self.batch_end {
            if !self.ledger.is_settled() {
                return None;
            }
            self.sampler.settle();
            let longer = if number == 1 { S::SECOND_BATCH } else { 2 * self.batch };
            self.batch = longer.min(S::LONGEST_BATCH);
            self.batch_end += self.batch;
        }
        let mut plan = self.sampler.plan(number, seeds::nth(self.seed, number));
        plan.fingerprint = self.behaviours.asks(number);
        plan.touches = self.sampler.touches(number, &plan.policy);
        Some(self.ledger.hand_out(plan))
    }

    fn done(&mut self, plan: &Plan, execution: &Execution) {
        let usable = self.ledger.done(plan, execution);
        let new = self.behaviours.take(execution);
        self.sampler.learn(&plan.policy, execution, usable, new);
    }

    fn give_back_unrun(&mut self, plan: &Plan) {
        self.ledger.give_back(plan);
    }

    fn needs_decisions(&self) -> bool {
        false
    }

    fn status(&self) -> Status {
        let mut status = self.ledger.status();
        status.unseen = self.behaviours.unseen();
        status.guarantee = self.sampler.guarantee().filter(|_| status.executions > 0);
        status
    }
}
