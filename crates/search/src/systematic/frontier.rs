//! The part that [`icb`](super::icb) and [`dfs`](super::dfs) share: plans that are out, happens-before cache,
//! estimate.
//!
//! A strategy adds its pools, and the order in which it takes plans from them.

use crate::analysis::estimate::Explored;
use crate::store::hb_cache::Edges;
use crate::store::ledger::Ledger;
use crate::store::pool::{Pool, Waiting};
use crate::systematic::branch::{self, Leaving};
use crate::{Room, Status, Touches};
use heisen_trace::{Execution, Plan, Policy};
use serde::{Deserialize, Serialize};

/// The state of such a search, without its pools.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Frontier {
    #[serde(default)]
    cache: Option<Edges>,
    /// How many plans were dropped because they lead to a state already explored.
    #[serde(default)]
    dropped: u64,
    pub explored: Explored,
    pub ledger: Ledger,
}

impl Frontier {
    /// The state before the first plan.
    pub fn new() -> Frontier {
        let (cache, dropped, ledger) = Default::default();
        Frontier { cache, dropped, explored: Explored::nothing_of(1), ledger }
    }

    /// From now on, drops plans that lead to a state already explored.
    pub fn use_cache(&mut self) {
        self.cache = Some(Edges::default());
    }

    /// Whether the first plan was handed out.
    pub fn is_started(&self) -> bool {
        self.ledger.handed() > 0
    }

    /// A plan that was given back unrun, or the default schedule if no plan was handed out yet.
    pub fn again_or_first(&mut self) -> Option<Plan> {
        let again = self.ledger.again();
        again.or_else(|| {
            (!self.is_started()).then(|| self.ledger.hand_out_of(Plan::new(Policy::Default), 1.0))
        })
    }

    /// The first of the waiting plans that leads to a state not yet explored.
    pub fn unexplored(&mut self, next: impl FnMut() -> Option<Waiting>) -> Option<Waiting> {
        branch::untaken(next, self.cache.as_mut(), &mut self.dropped, &mut self.explored)
    }

    pub fn hand_out(&mut self, waiting: Waiting) -> Plan {
        self.ledger.hand_out_of(waiting.plan, waiting.weight)
    }

    /// Takes back an execution. Returns the plans that leave it and the weight of its plan, or `None` if the
    /// ledger rejects it: a divergence, for example.
    pub fn take_back(&mut self, plan: &Plan, execution: &Execution) -> Option<(Leaving, f64)> {
        let weight = self.ledger.weight(plan);
        if !self.ledger.done(plan, execution) {
            self.explored.executed(weight);
            return None;
        }
        Some((Leaving::new(plan, execution, self.cache.as_mut()), weight))
    }

    pub fn needs_touches(&self) -> Touches {
        if self.cache.is_some() { Touches::States } else { Touches::None }
    }

    /// Divides the memory: half for the cache, if there is one, and the rest for the pools in equal parts.
    pub fn bound_memory<const N: usize>(&mut self, room: Room, pools: [&mut Pool; N]) {
        let parts = if self.cache.is_some() { 2 } else { 1 };
        self.cache.iter_mut().for_each(|cache| cache.set_room(room.bytes / parts));
        for pool in pools {
            pool.set_room(room.part(N * parts));
        }
    }

    /// The status of the search, without the counts of plans in the pools.
    pub fn status<const N: usize>(&self, pools: [&Pool; N]) -> Status {
        let mut status = self.ledger.status();
        status.dropped = self.dropped;
        status.unnoted = self.cache.as_ref().map_or(0, Edges::unnoted);
        status.remaining = self.explored.remaining();
        status.trouble = pools.iter().find_map(|pool| pool.trouble()).map(str::to_owned);
        status.queued += usize::from(!self.is_started());
        status
    }
}
