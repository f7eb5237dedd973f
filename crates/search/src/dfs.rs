//! Depth-first search: every schedule, the last decision varied first.
//!
//! The stateless search of VeriSoft (Godefroid, POPL 1997), the baseline `dfs` of the iterative context bounding paper
//! (PLDI 2007, section 2.1).
//!
//! Guarantees: of a program whose executions all end, every schedule is explored, each exactly once. Says nothing
//! before it is through, which takes a number of executions exponential in the steps.

use crate::ledger::Ledger;
use crate::pool::{Pool, Spread};
use crate::{Status, Strategy, branch};
use heisen_trace::{Execution, Plan, Policy};
use serde::{Deserialize, Serialize};

/// Depth-first search.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Dfs {
    stack: Pool,
    ledger: Ledger,
}

impl Dfs {
    /// A search that starts with the default schedule.
    pub fn new() -> Dfs {
        Dfs::default()
    }
}

impl Strategy for Dfs {
    fn next(&mut self) -> Option<Plan> {
        if let Some(plan) = self.ledger.again() {
            return Some(plan);
        }
        let first = self.ledger.handed() == 0;
        let plan = if first { Plan::new(Policy::Default) } else { self.stack.newest()? };
        Some(self.ledger.hand_out(plan))
    }

    fn done(&mut self, plan: &Plan, execution: &Execution) {
        if self.ledger.done(plan, execution)
            && let Some(spread) = Spread::new(plan, branch::points(plan, execution).collect())
        {
            self.stack.add(spread);
        }
    }

    fn give_back_unrun(&mut self, plan: &Plan) {
        self.ledger.give_back(plan);
    }

    fn needs_decisions(&self) -> bool {
        true
    }

    fn status(&self) -> Status {
        let mut status = self.ledger.status();
        let started = self.ledger.handed() > 0;
        status.queued += self.stack.len() + usize::from(!started);
        status.exhausted = status.queued == 0 && status.out == 0;
        status.whole = status.exhausted && !status.has_gaps();
        status
    }
}
