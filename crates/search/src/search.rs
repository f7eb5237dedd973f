//! What a search with any strategy does: it passes everything on to its strategy.

use crate::systematic::dpor::in_order::InTurn;
use crate::{Again, Halt, Room, Search, Status, Strategy, Touches};
use heisen_trace::{Execution, Plan};
use std::collections::BTreeSet;

impl Search {
    /// The name of its strategy in files.
    pub fn name(&self) -> &'static str {
        self.kind().entry().name
    }

    /// Whether it only ever samples, and so is never complete.
    pub fn samples(&self) -> bool {
        self.kind().samples()
    }

    /// Whether its plans follow from the steps of earlier executions, and so are of no use when steps are counted anew.
    pub fn counts_steps(&self) -> bool {
        self.kind().entry().counts_steps
    }

    /// Of a search that was just read back: what was done before it was saved, and will be done again.
    pub fn take_again(&mut self) -> Again {
        match self {
            Search::Dpor(dpor) => dpor.turns_mut().take_again(),
            Search::Bpor(bpor) => bpor.turns_mut().take_again(),
            _ => Again::default(),
        }
    }

    /// The places in the code of accesses whose order made a difference to it, if it looks at that; see [`Dpor::raced`].
    pub fn raced(&self) -> Option<&BTreeSet<u64>> {
        match self {
            Search::Dpor(dpor) => Some(dpor.raced()),
            _ => None,
        }
    }
}

impl Strategy for Search {
    fn next(&mut self) -> Option<Plan> {
        self.strategy_mut().next()
    }

    fn done(&mut self, plan: &Plan, execution: &Execution) {
        self.strategy_mut().done(plan, execution);
    }

    fn give_back_unrun(&mut self, plan: &Plan) {
        self.strategy_mut().give_back_unrun(plan);
    }

    fn needs_decisions(&self) -> bool {
        self.strategy().needs_decisions()
    }

    fn needs_touches(&self) -> Touches {
        self.strategy().needs_touches()
    }

    fn heed(&mut self, halt: Halt) {
        self.strategy_mut().heed(halt);
    }

    fn bound_memory(&mut self, room: Room) {
        self.strategy_mut().bound_memory(room);
    }

    fn status(&self) -> Status {
        self.strategy().status()
    }
}
