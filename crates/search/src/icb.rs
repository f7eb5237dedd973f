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
//! C(nk, c) · (nb + c)! schedules with c preemptions (Theorem 1): polynomial in the steps.

use crate::branch::Point;
use crate::ledger::Ledger;
use crate::pool::{Pool, Spread};
use crate::{Status, Strategy, branch};
use heisen_trace::{Execution, Plan, Policy};
use serde::{Deserialize, Serialize};

/// Iterative context bounding.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
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
    ledger: Ledger,
}

impl Icb {
    /// A search that starts with the default schedule and ends with those of `max_bound` preemptions, or when there
    /// are no more.
    pub fn new(max_bound: Option<u32>) -> Icb {
        Icb { max_bound, ..Icb::default() }
    }

    /// Whether no plan is left within the bound.
    fn bound_is_explored(&self) -> bool {
        let started = self.ledger.handed() > 0;
        started && self.stack.is_empty() && self.work.is_empty() && self.ledger.is_settled()
    }
}

impl Strategy for Icb {
    fn next(&mut self) -> Option<Plan> {
        if let Some(plan) = self.ledger.again() {
            return Some(plan);
        }
        if self.bound_is_explored() && !self.next_work.is_empty() {
            self.work = std::mem::take(&mut self.next_work);
            self.bound += 1;
        }
        let first = self.ledger.handed() == 0;
        let plan = if first {
            Plan::new(Policy::Default)
        } else {
            self.stack.newest().or_else(|| self.work.oldest())?
        };
        Some(self.ledger.hand_out(plan))
    }

    fn done(&mut self, plan: &Plan, execution: &Execution) {
        if !self.ledger.done(plan, execution) {
            return;
        }
        let (costly, free): (Vec<Point>, Vec<Point>) =
            branch::points(plan, execution).partition(|point| point.preemptive);
        if let Some(spread) = Spread::new(plan, free) {
            self.stack.add(spread);
        }
        if let Some(spread) = Spread::new(plan, costly) {
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

    fn status(&self) -> Status {
        let mut status = self.ledger.status();
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
