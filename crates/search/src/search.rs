//! A search with any strategy: it passes every call on to its strategy.

use crate::systematic::dpor::reorder_buffer::OrderedSearch;
use crate::{Halt, Rerun, Room, Search, Status, Strategy, Touches};
use heisen_trace::{Execution, Plan};
use std::collections::BTreeSet;

impl Search {
    /// The name of its strategy in files.
    pub fn name(&self) -> &'static str {
        self.kind().entry().name
    }

    /// Whether it is a sampler, which never ends.
    pub fn samples(&self) -> bool {
        self.kind().samples()
    }

    /// Whether its plans refer to steps of earlier executions, and so become useless when steps are counted
    /// anew.
    pub fn counts_steps(&self) -> bool {
        self.kind().entry().counts_steps
    }

    /// In a search that was just read back: the executions that it has to run again. Can be taken once.
    pub fn take_rerun(&mut self) -> Rerun {
        match self {
            Search::Dpor(dpor) => dpor.buffer_mut().take_rerun(),
            Search::Bpor(bpor) => bpor.buffer_mut().take_rerun(),
            _ => Rerun::default(),
        }
    }

    /// The places of accesses whose order was or will be reversed, for strategies that reverse races; see
    /// [`Dpor::reversed_places`](crate::Dpor::reversed_places).
    pub fn reversed_places(&self) -> Option<&BTreeSet<u64>> {
        match self {
            Search::Dpor(dpor) => Some(dpor.reversed_places()),
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

    fn needs_symbolic(&self) -> bool {
        self.strategy().needs_symbolic()
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
