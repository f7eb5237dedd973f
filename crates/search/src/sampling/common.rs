//! The part that all samplers share: numbered plans with a seed each, and learning between batches.
//!
//! A strategy differs from the others by its [`Sampler`]. A seed alone reproduces the search, however many
//! executions run at a time: what a sampler has learnt takes effect only between batches, when no plan is
//! out. The next batch waits for the last executions of a batch, but batches get longer, so this is rare. A
//! sampler that learns nothing has no batches after the first execution. The search never ends.

use crate::analysis::behaviours::Behaviours;
use crate::analysis::seeds;
use crate::store::ledger::Ledger;
use crate::{Guarantee, Status, Strategy};
use heisen_trace::{Execution, Plan, Policy};
use serde::{Deserialize, Serialize};

/// Makes the plans of a sampling strategy.
pub trait Sampler {
    /// How many plans the longest batch has; 1 if the sampler learns nothing.
    const LONGEST_BATCH: u64;
    /// How many plans the second batch has. The first has one; each later one has twice as many as the one
    /// before.
    const SECOND_BATCH: u64 = 2;

    /// The policy of plan `number`, from 0, with this seed.
    fn policy(&mut self, number: u64, seed: u64) -> Policy;

    /// The same as a plan, for samplers that also fix decisions.
    fn plan(&mut self, number: u64, seed: u64) -> Plan {
        Plan::new(self.policy(number, seed))
    }

    /// Whether that plan, with this policy, shall record all touches of its execution.
    fn touches(&self, _number: u64, _policy: &Policy) -> bool {
        false
    }

    /// Learns from a finished execution. `usable`: it followed its plan to the end. `new`: its behaviour is
    /// new, if known.
    fn learn(&mut self, _policy: &Policy, _execution: &Execution, _usable: bool, _new: Option<bool>) {}

    /// Called when no plan is out: what was learnt may take effect.
    fn settle(&mut self) {}

    /// The guarantee that the executions so far give.
    fn guarantee(&self) -> Option<Guarantee> {
        None
    }
}

/// A sampling strategy.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sampling<S> {
    seed: u64,
    pub(crate) sampler: S,
    /// How many plans this batch has.
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

    /// How many plans are out or done.
    pub(crate) fn begun(&self) -> u64 {
        self.ledger.begun()
    }

    /// Whether a plan is out.
    pub(crate) fn is_running(&self) -> bool {
        self.ledger.is_running()
    }
}

impl<S: Sampler> Strategy for Sampling<S> {
    fn next(&mut self) -> Option<Plan> {
        if let Some(plan) = self.ledger.again() {
            return Some(plan);
        }
        let number = self.ledger.handed();
        // The first plan runs alone: it shows how long executions are.
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
