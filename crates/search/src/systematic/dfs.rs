//! Depth-first search: explores every schedule, and varies the last decision first.
//!
//! This is the stateless search of VeriSoft (Godefroid, POPL 1997), the baseline `dfs` of the paper on
//! iterative context bounding (PLDI 2007, section 2.1).
//!
//! Guarantees: if all executions of a program end, every schedule is explored exactly once. With a
//! happens-before cache ([`Dfs::cached`]), every state is reached instead. The search makes no claim before
//! it has ended, and the number of executions is exponential in the number of steps.

use crate::store::pool::Pool;
use crate::systematic::frontier::Frontier;
use crate::{Room, Status, Strategy, Touches};
use heisen_trace::{Execution, Plan};
use serde::{Deserialize, Serialize};

/// Depth-first search; see the head of this file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Dfs {
    stack: Pool,
    #[serde(flatten)]
    frontier: Frontier,
}

impl Dfs {
    /// Starts with the default schedule.
    pub fn new() -> Dfs {
        Dfs { stack: Pool::default(), frontier: Frontier::new() }
    }

    /// Drops plans that lead to a state already explored, by the happens-before cache.
    pub fn cached(mut self) -> Dfs {
        self.frontier.use_cache();
        self
    }
}

impl Default for Dfs {
    fn default() -> Dfs {
        Dfs::new()
    }
}

impl Strategy for Dfs {
    fn next(&mut self) -> Option<Plan> {
        let Dfs { stack, frontier } = self;
        frontier.again_or_first().or_else(|| {
            let waiting = frontier.unexplored(|| stack.newest())?;
            Some(frontier.hand_out(waiting))
        })
    }

    fn done(&mut self, plan: &Plan, execution: &Execution) {
        let Some((leaving, weight)) = self.frontier.take_back(plan, execution) else { return };
        self.frontier.explored.executed(leaving.left_of(weight, |_| true));
        if let Some(spread) = leaving.spread(plan, weight, |_| true) {
            self.stack.add(spread);
        }
    }

    fn give_back_unrun(&mut self, plan: &Plan) {
        self.frontier.ledger.give_back(plan);
    }

    fn needs_decisions(&self) -> bool {
        true
    }

    fn needs_touches(&self) -> Touches {
        self.frontier.needs_touches()
    }

    fn bound_memory(&mut self, room: Room) {
        self.frontier.bound_memory(room, [&mut self.stack]);
    }

    fn status(&self) -> Status {
        let mut status = self.frontier.status([&self.stack]);
        status.queued += self.stack.len();
        status.exhausted = status.queued == 0 && status.out == 0;
        status.exhaustive = status.exhausted && !status.has_gaps();
        status
    }
}
