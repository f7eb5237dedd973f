//! Random walk: at each decision every choice has the same chance.
//!
//! The baseline `random` of the iterative context bounding paper (PLDI 2007, section 2.1).
//!
//! Guarantees nothing but that a base seed alone reproduces the whole search, however many executions run at a time,
//! and that no seed comes twice. Never ends.

use crate::ledger::Ledger;
use crate::{Status, Strategy, seeds};
use heisen_trace::{Execution, Plan, Policy};
use serde::{Deserialize, Serialize};

/// Random walk.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Random {
    seed: u64,
    ledger: Ledger,
}

impl Random {
    /// The search that this seed stands for.
    pub fn new(seed: u64) -> Random {
        Random { seed, ledger: Ledger::default() }
    }
}

impl Strategy for Random {
    fn next(&mut self) -> Option<Plan> {
        if let Some(plan) = self.ledger.again() {
            return Some(plan);
        }
        let seed = seeds::nth(self.seed, self.ledger.handed());
        Some(self.ledger.hand_out(Plan::new(Policy::Random { seed })))
    }

    fn done(&mut self, plan: &Plan, execution: &Execution) {
        self.ledger.done(plan, execution);
    }

    fn give_back_unrun(&mut self, plan: &Plan) {
        self.ledger.give_back(plan);
    }

    fn needs_decisions(&self) -> bool {
        false
    }

    fn status(&self) -> Status {
        self.ledger.status()
    }
}
