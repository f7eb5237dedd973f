//! Iterative context bounding: explores every schedule, in order of preemptions.
//!
//! Musuvathi, Qadeer: Iterative Context Bounding for Systematic Testing of Multithreaded Programs, PLDI 2007,
//! section 3, Algorithm 1. The pools `work` and `next_work` are the paper's `workQueue` and `nextWorkQueue`.
//! The paper's procedure `Search`, which recurses into every choice that costs no preemption, is the stack.
//! As in the paper, the deepest preemptions of an execution are deferred first.
//!
//! Guarantees: each schedule is explored exactly once, and all schedules with c preemptions before any with
//! c + 1. Once bound c is explored, every remaining bug therefore needs at least c + 1 preemptions. A bug that
//! is found needs as few preemptions as possible.
//!
//! For a program of n threads of at most k steps, b of them potentially blocking, there are at most C(nk, c)
//! · (nb + c)! schedules with c preemptions (Theorem 1): polynomial in the steps. With a happens-before cache
//! ([`Icb::cached`]) not every schedule is explored, but every reachable state is, within each bound.

use crate::analysis::estimate::Explored;
use crate::store::pool::{Pool, Waiting};
use crate::systematic::frontier::Frontier;
use crate::{Room, Status, Strategy, Touches};
use heisen_trace::{Execution, Plan};
use serde::{Deserialize, Serialize};

/// Iterative context bounding; see the head of this file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Icb {
    bound: u32,
    max_bound: Option<u32>,
    /// Plans found within this bound. They are taken depth first, before more of `work`, so that the stack
    /// stays small.
    stack: Pool,
    /// Plans that the previous bound has deferred to this one.
    work: Pool,
    /// Plans that this bound defers to the next.
    next_work: Pool,
    /// How many plans lie beyond the last bound. They are not stored: they would outnumber all others.
    beyond: u64,
    /// Its estimate is about the current bound: the roots are the plans deferred by the previous bound, and
    /// the tree is what follows from them without another preemption.
    #[serde(flatten)]
    frontier: Frontier,
}

impl Icb {
    /// Starts with the default schedule. Ends after the schedules of `max_bound` preemptions, or when there
    /// are no more.
    pub fn new(max_bound: Option<u32>) -> Icb {
        let (stack, work, next_work) = Default::default();
        Icb { bound: 0, max_bound, stack, work, next_work, beyond: 0, frontier: Frontier::new() }
    }

    /// Drops plans that lead to a state already explored, by the happens-before cache.
    pub fn cached(mut self) -> Icb {
        self.frontier.use_cache();
        self
    }

    /// Whether no plan is left within the current bound.
    fn bound_is_explored(&self) -> bool {
        let nothing_waits = self.stack.is_empty() && self.work.is_empty();
        self.frontier.is_started() && nothing_waits && self.frontier.ledger.is_settled()
    }
}

impl Default for Icb {
    fn default() -> Icb {
        Icb::new(None)
    }
}

impl Strategy for Icb {
    fn next(&mut self) -> Option<Plan> {
        if let Some(plan) = self.frontier.again_or_first() {
            return Some(plan);
        }
        let waiting = loop {
            if self.bound_is_explored() && !self.next_work.is_empty() {
                std::mem::swap(&mut self.work, &mut self.next_work);
                self.bound += 1;
                self.frontier.explored = Explored::nothing_of(self.work.len());
            }
            let Icb { stack, work, frontier, .. } = self;
            let root = |waiting: Waiting| Waiting { weight: 1.0, ..waiting };
            let waiting = frontier.unexplored(|| stack.newest().or_else(|| work.oldest().map(root)));
            // The cache may have dropped every plan that was left within the bound.
            if waiting.is_some() || !self.bound_is_explored() || self.next_work.is_empty() {
                break waiting?;
            }
        };
        Some(self.frontier.hand_out(waiting))
    }

    fn done(&mut self, plan: &Plan, execution: &Execution) {
        let Some((leaving, weight)) = self.frontier.take_back(plan, execution) else { return };
        self.frontier.explored.executed(leaving.left_of(weight, |point| !point.preemptive));
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
        self.frontier.ledger.give_back(plan);
    }

    fn needs_decisions(&self) -> bool {
        true
    }

    fn needs_touches(&self) -> Touches {
        self.frontier.needs_touches()
    }

    fn bound_memory(&mut self, room: Room) {
        self.frontier.bound_memory(room, [&mut self.stack, &mut self.work, &mut self.next_work]);
    }

    fn status(&self) -> Status {
        let mut status = self.frontier.status([&self.stack, &self.work, &self.next_work]);
        let explored = self.bound_is_explored();
        status.bound = Some(self.bound);
        status.explored_bound = if explored { Some(self.bound) } else { self.bound.checked_sub(1) };
        status.queued += self.stack.len() + self.work.len();
        status.deferred = self.next_work.len();
        status.beyond = self.beyond;
        status.exhausted = explored && self.next_work.is_empty();
        status.exhaustive = status.exhausted && self.beyond == 0 && !status.has_gaps();
        status
    }
}
