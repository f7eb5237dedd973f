//! Depth-first search: every schedule, the last decision varied first.
//!
//! The stateless search of VeriSoft (Godefroid, POPL 1997), the baseline `dfs` of the iterative context bounding paper
//! (PLDI 2007, section 2.1).
//!
//! Guarantees: of a program whose executions all end, every schedule is explored, each exactly once; with a cache
//! ([`Dfs::cached`]), every state is reached. Says nothing before it is through, which takes a number of executions
//! exponential in the steps.

use crate::branch::{self, Leaving};
use crate::cache::Edges;
use crate::ledger::Ledger;
use crate::pool::Pool;
use crate::{Status, Strategy, Touches};
use heisen_trace::{Execution, Plan, Policy};
use serde::{Deserialize, Serialize};

/// Depth-first search.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Dfs {
    stack: Pool,
    #[serde(default)]
    cache: Option<Edges>,
    #[serde(default)]
    dropped: u64,
    ledger: Ledger,
}

impl Dfs {
    /// A search that starts with the default schedule.
    pub fn new() -> Dfs {
        Dfs::default()
    }

    /// The same, but for plans that lead to what equivalent ones lead to: see the `cache` of states.
    pub fn cached(self) -> Dfs {
        Dfs { cache: Some(Edges::default()), ..self }
    }
}

impl Strategy for Dfs {
    fn next(&mut self) -> Option<Plan> {
        if let Some(plan) = self.ledger.again() {
            return Some(plan);
        }
        let first = self.ledger.handed() == 0;
        let plan = if first {
            Plan::new(Policy::Default)
        } else {
            branch::untaken(|| self.stack.newest(), self.cache.as_mut(), &mut self.dropped)?
        };
        Some(self.ledger.hand_out(plan))
    }

    fn done(&mut self, plan: &Plan, execution: &Execution) {
        if !self.ledger.done(plan, execution) {
            return;
        }
        let leaving = Leaving::new(plan, execution, self.cache.as_mut());
        if let Some(spread) = leaving.spread(plan, |_| true) {
            self.stack.add(spread);
        }
    }

    fn give_back_unrun(&mut self, plan: &Plan) {
        self.ledger.give_back(plan);
    }

    fn needs_decisions(&self) -> bool {
        true
    }

    fn needs_touches(&self) -> Touches {
        if self.cache.is_some() { Touches::States } else { Touches::None }
    }

    fn status(&self) -> Status {
        let mut status = self.ledger.status();
        status.dropped = self.dropped;
        let started = self.ledger.handed() > 0;
        status.queued += self.stack.len() + usize::from(!started);
        status.exhausted = status.queued == 0 && status.out == 0;
        status.whole = status.exhausted && !status.has_gaps();
        status
    }
}
