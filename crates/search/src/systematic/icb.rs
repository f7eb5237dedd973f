//! Iterative context bounding: every schedule, in order of preemptions.
//!
//! Musuvathi, Qadeer: Iterative Context Bounding for Systematic Testing of Multithreaded Programs, PLDI 2007,
//! section 3, Algorithm 1. The two queues are the paper's `workQueue` and `nextWorkQueue`; its procedure `Search`,
//! which recurses into whatever costs no preemption, is the stack. As there, what lies deepest in an execution is
//! deferred first.
//!
//! Guarantees: each schedule is explored exactly once, and all with c preemptions before any with c + 1. So once
//! bound c is explored every bug that is left takes at least c + 1 preemptions, and a bug that is found takes the
//! fewest it can. For a program of n threads of at most k steps, b of them potentially blocking, there are at most
//! C(nk, c) · (nb + c)! schedules with c preemptions (Theorem 1): polynomial in the steps. With a cache
//! ([`Icb::cached`]) not every schedule is explored, but every state that can be reached is, within each bound.

use crate::analysis::estimate::Explored;
use crate::store::hb_cache::Edges;
use crate::store::ledger::Ledger;
use crate::store::pool::{Pool, Waiting};
use crate::systematic::branch;
use crate::systematic::branch::Leaving;
use crate::{Room, Status, Strategy, Touches};
use heisen_trace::{Execution, Plan, Policy};
use serde::{Deserialize, Serialize};

/// Iterative context bounding.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Icb {
    bound: u32,
    max_bound: Option<u32>,
    /// Found within this bound: taken depth-first, before more of `work`, so that it stays small.
    stack: Pool,
    /// Left for this bound by the one before.
    work: Pool,
    /// Left by this bound for the next.
    next_work: Pool,
    /// Plans beyond the last bound. They are only counted: there would be more of them than of all others.
    beyond: u64,
    #[serde(default)]
    cache: Option<Edges>,
    #[serde(default)]
    dropped: u64,
    /// What was explored within this bound: the plans that the one before has left are the roots, what they and those that
    /// follow from them lead to without a further preemption is the tree.
    explored: Explored,
    ledger: Ledger,
}

impl Icb {
    /// A search that starts with the default schedule and ends with those of `max_bound` preemptions, or when there
    /// are no more.
    pub fn new(max_bound: Option<u32>) -> Icb {
        Icb {
            bound: 0,
            max_bound,
            stack: Pool::default(),
            work: Pool::default(),
            next_work: Pool::default(),
            beyond: 0,
            cache: None,
            dropped: 0,
            explored: Explored::nothing_of(1),
            ledger: Ledger::default(),
        }
    }

    /// The same, but for plans that lead to what equivalent ones lead to: see the `cache` of states.
    pub fn cached(self) -> Icb {
        Icb { cache: Some(Edges::default()), ..self }
    }

    /// Whether no plan is left within the bound.
    fn bound_is_explored(&self) -> bool {
        let started = self.ledger.handed() > 0;
        started && self.stack.is_empty() && self.work.is_empty() && self.ledger.is_settled()
    }
}

impl Default for Icb {
    fn default() -> Icb {
        Icb::new(None)
    }
}

impl Strategy for Icb {
    fn next(&mut self) -> Option<Plan> {
        if let Some(plan) = self.ledger.again() {
            return Some(plan);
        }
        if self.ledger.handed() == 0 {
            return Some(self.ledger.hand_out_of(Plan::new(Policy::Default), 1.0));
        }
        let waiting = loop {
            if self.bound_is_explored() && !self.next_work.is_empty() {
                std::mem::swap(&mut self.work, &mut self.next_work);
                self.bound += 1;
                self.explored = Explored::nothing_of(self.work.len());
            }
            let Icb { stack, work, cache, dropped, explored, .. } = self;
            let root = |waiting: Waiting| Waiting { weight: 1.0, ..waiting };
            let next = || stack.newest().or_else(|| work.oldest().map(root));
            let waiting = branch::untaken(next, cache.as_mut(), dropped, explored);
            // All that were left of the bound may have been dropped.
            if waiting.is_some() || !self.bound_is_explored() || self.next_work.is_empty() {
                break waiting?;
            }
        };
        Some(self.ledger.hand_out_of(waiting.plan, waiting.weight))
    }

    fn done(&mut self, plan: &Plan, execution: &Execution) {
        let weight = self.ledger.weight(plan);
        if !self.ledger.done(plan, execution) {
            self.explored.executed(weight);
            return;
        }
        let leaving = Leaving::new(plan, execution, self.cache.as_mut());
        self.explored.executed(leaving.left_of(weight, |point| !point.preemptive));
        if let Some(spread) = leaving.spread(plan, weight, |point| !point.preemptive) {
            self.stack.add(spread);
        }
        if let Some(spread) = leaving.spread(plan, 1.0, |point| point.preemptive) {
            if self.max_bound.is_some_and(|max| self.bound >= max) {
                self.beyond += spread.len() as u64;
            } else {
                self.next_work.add(spread);
            }
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
        for pool in [&mut self.stack, &mut self.work, &mut self.next_work] {
            pool.set_room(room.part(3 * parts));
        }
    }

    fn status(&self) -> Status {
        let mut status = self.ledger.status();
        status.dropped = self.dropped;
        status.unnoted = self.cache.as_ref().map_or(0, Edges::unnoted);
        status.remaining = self.explored.remaining();
        let pools = [&self.stack, &self.work, &self.next_work];
        status.trouble = pools.iter().find_map(|pool| pool.trouble()).map(str::to_owned);
        let started = self.ledger.handed() > 0;
        let explored = self.bound_is_explored();
        status.bound = Some(self.bound);
        status.explored_bound = if explored { Some(self.bound) } else { self.bound.checked_sub(1) };
        status.queued += self.stack.len() + self.work.len() + usize::from(!started);
        status.deferred = self.next_work.len();
        status.beyond = self.beyond;
        status.exhausted = explored && self.next_work.is_empty();
        status.whole = status.exhausted && self.beyond == 0 && !status.has_gaps();
        status
    }
}
