//! Solver-driven search: each execution takes a path that none before it took.
//!
//! The search itself is the crate `heisen-causal`, whose head has the papers and the proof. This module connects it with
//! executions: their symbolic traces go in, plans come out. An execution without a symbolic trace teaches nothing; the
//! search then ends, and [`Status::missing`] says why.
//!
//! Guarantees: once the search has ended and nothing is missing, every local outcome of every execution has been seen, and
//! every operation before which a thread may stand in a deadlock. At most one execution of each class runs.
//!
//! A saved search has the plans that it has run, and not their traces. Read back, it runs them again, because the same
//! executions give the same search.

use crate::store::ledger::Ledger;
use crate::{Halt, Room, Status, Strategy};
use heisen_causal::Options;
use heisen_trace::{Execution, Plan};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::Arc;

/// Solver-driven search; see the head of this file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(from = "Saved", into = "Saved")]
pub struct Causal {
    search: heisen_causal::Causal,
    options: Options,
    /// The plans that were run, in order.
    history: Vec<Plan>,
    /// The plans of the saved search that wait to run again, and those that do.
    rerun: VecDeque<Plan>,
    running_again: Vec<Plan>,
    ledger: Ledger,
}

/// The form in which a search is saved.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Saved {
    /// Whether the search chooses inputs.
    inputs: bool,
    /// How many pairs of conflicting accesses the search lets meet.
    meetings: u32,
    /// The most rounds of a waiting loop.
    rounds: u32,
    history: Vec<Plan>,
    ledger: Ledger,
}

impl From<Causal> for Saved {
    fn from(causal: Causal) -> Saved {
        Saved::of(&causal)
    }
}

impl From<Saved> for Causal {
    fn from(saved: Saved) -> Causal {
        let Saved { inputs, meetings, rounds, history, ledger } = saved;
        let options = Options { inputs, meetings, rounds, ..Options::default() };
        let search = heisen_causal::Causal::new(options);
        let (rerun, history, running_again) = (history.into(), Vec::new(), Vec::new());
        Causal { search, options, history, rerun, running_again, ledger }
    }
}

/// The copy of a search runs its plans again, as one that was saved and read back.
impl Clone for Causal {
    fn clone(&self) -> Causal {
        Saved::of(self).into()
    }
}

impl Saved {
    fn of(causal: &Causal) -> Saved {
        let Causal { history, rerun, running_again, ledger, .. } = causal;
        let Options { inputs, meetings, rounds, .. } = causal.options;
        let history = history.iter().chain(running_again).chain(rerun).cloned().collect();
        Saved { inputs, meetings, rounds, history, ledger: ledger.clone() }
    }
}

impl Causal {
    /// A new search.
    pub fn new(options: Options) -> Causal {
        let Options { inputs, meetings, rounds, .. } = options;
        Saved { inputs, meetings, rounds, history: Vec::new(), ledger: Ledger::default() }.into()
    }

    /// Whether this search was read back and has not run all executions again that it had before.
    pub fn runs_again(&self) -> bool {
        !self.rerun.is_empty() || !self.running_again.is_empty()
    }
}

impl Strategy for Causal {
    fn next(&mut self) -> Option<Plan> {
        if let Some(plan) = self.rerun.pop_front() {
            self.running_again.push(plan.clone());
            return Some(plan);
        }
        if let Some(plan) = self.ledger.again() {
            return Some(plan);
        }
        // A search that was read back knows nothing before those plans are done.
        if self.runs_again() {
            return None;
        }
        let plan = self.search.next_plan()?;
        Some(self.ledger.hand_out(plan))
    }

    fn done(&mut self, plan: &Plan, execution: &Execution) {
        match self.running_again.iter().position(|running| running == plan) {
            Some(at) => drop(self.running_again.remove(at)),
            // A trace is what the program did, whether or not it followed the plan.
            None => drop(self.ledger.done(plan, execution)),
        }
        self.history.push(plan.clone());
        match (&execution.symbolic, self.search.is_out(plan)) {
            (Some(trace), true) => self.search.done(plan, trace, &execution.end),
            (Some(trace), false) => self.search.absorb(trace, &execution.end),
            (None, true) => self.search.done_without_trace(plan),
            (None, false) => self.search.absorb_without_trace(),
        }
    }

    fn give_back_unrun(&mut self, plan: &Plan) {
        match self.running_again.iter().position(|running| running == plan) {
            Some(at) => self.rerun.push_front(self.running_again.remove(at)),
            None => self.ledger.give_back(plan),
        }
    }

    fn needs_decisions(&self) -> bool {
        false
    }

    fn needs_symbolic(&self) -> bool {
        true
    }

    fn heed(&mut self, halt: Halt) {
        self.search.heed(Arc::new(move || halt.is_asked()));
    }

    fn bound_memory(&mut self, room: Room) {
        self.search.bound_memory(room.bytes);
    }

    fn status(&self) -> Status {
        let mut status = self.ledger.status();
        let search = self.search.status();
        let first = usize::from(self.history.is_empty() && status.out == 0);
        status.queued += search.open + self.rerun.len() + first;
        status.out += self.running_again.len();
        status.exhausted = status.queued == 0 && status.out == 0;
        status.missing = search
            .exactness
            .reasons()
            .map(|(reason, counted)| format!("{reason} ({} times)", counted.times))
            .collect();
        status.rounds = search.bounded.then_some(self.options.rounds);
        status.rounds_completed = search.completed.filter(|_| !status.exhausted);
        let proven = status.exhausted && search.is_proof() && !status.has_gaps();
        status.exhaustive = proven && !search.bounded;
        status
    }
}
