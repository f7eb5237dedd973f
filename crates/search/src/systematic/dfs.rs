//! Depth-first search: every schedule, the last decision varied first.
//!
//! The stateless search of VeriSoft (Godefroid, POPL 1997), the baseline `dfs` of the iterative context bounding paper
//! (PLDI 2007, section 2.1).
//!
//! Guarantees: of a program whose executions all end, every schedule is explored, each exactly once; with a cache
//! ([`Dfs::cached`]), every state is reached. Says nothing before it is through, which takes a number of executions
//! exponential in the steps.

use crate::analysis::estimate::Explored;
use crate::store::hb_cache::Edges;
use crate::store::ledger::Ledger;
use crate::store::pool::Pool;
use crate::systematic::branch;
use crate::systematic::branch::Leaving;
use crate::{Room, Status, Strategy, Touches};
use heisen_trace::{Execution, Plan, Policy};
use serde::{Deserialize, Serialize};

/// Depth-first search.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Dfs {
    stack: Pool,
    #[serde(default)]
    cache: Option<Edges>,
    #[serde(default)]
    dropped: u64,
    explored: Explored,
    ledger: Ledger,
}

impl Dfs {
    /// A search that starts with the default schedule.
    pub fn new() -> Dfs {
        Dfs {
            stack: Pool::default(),
            cache: None,
            dropped: 0,
            explored: Explored::nothing_of(1),
            ledger: Ledger::default(),
        }
    }

    /// The same, but for plans that lead to what equivalent ones lead to: see the `cache` of states.
    pub fn cached(self) -> Dfs {
        Dfs { cache: Some(Edges::default()), ..self }
    }
}

impl Default for Dfs {
    fn default() -> Dfs {
        Dfs::new()
    }
}

impl Strategy for Dfs {
    fn next(&mut self) -> Option<Plan> {
        if let Some(plan) = self.ledger.again() {
            return Some(plan);
        }
        if self.ledger.handed() == 0 {
            return Some(self.ledger.hand_out_of(Plan::new(Policy::Default), 1.0));
        }
        let Dfs { stack, cache, dropped, explored, .. } = self;
        let waiting = branch::untaken(|| stack.newest(), cache.as_mut(), dropped, explored)?;
        Some(self.ledger.hand_out_of(waiting.plan, waiting.weight))
    }

    fn done(&mut self, plan: &Plan, execution: &Execution) {
        let weight = self.ledger.weight(plan);
        if !self.ledger.done(plan, execution) {
            self.explored.executed(weight);
            return;
        }
        let leaving = Leaving::new(plan, execution, self.cache.as_mut());
        self.explored.executed(leaving.left_of(weight, |_| true));
        if let Some(spread) = leaving.spread(plan, weight, |_| true) {
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

    fn bound_memory(&mut self, room: Room) {
        let parts = if self.cache.is_some() { 2 } else { 1 };
        self.cache.iter_mut().for_each(|cache| cache.set_room(room.bytes / parts));
        self.stack.set_room(room.part(parts));
    }

    fn status(&self) -> Status {
        let mut status = self.ledger.status();
        status.dropped = self.dropped;
        status.unnoted = self.cache.as_ref().map_or(0, Edges::unnoted);
        status.trouble = self.stack.trouble().map(str::to_owned);
        status.remaining = self.explored.remaining();
        let started = self.ledger.handed() > 0;
        status.queued += self.stack.len() + usize::from(!started);
        status.exhausted = status.queued == 0 && status.out == 0;
        status.whole = status.exhausted && !status.has_gaps();
        status
    }
}
