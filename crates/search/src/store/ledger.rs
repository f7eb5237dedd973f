//! The plans that are out, and the counts of finished executions. Every strategy has a ledger.
//!
//! A plan leaves the ledger only when its execution is given back. A search that is saved while plans are out
//! therefore loses none: read back, it treats them as plans that were given back unrun.

use crate::analysis::branch_points;
use crate::status::Status;
use heisen_trace::{End, Execution, Note, Plan, Policy};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// A plan that was handed out.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Entry {
    /// The number of the plan, from 0, in the order in which plans were first handed out.
    number: u64,
    plan: Plan,
    /// The weight of the plan, for strategies that [`estimate`](crate::analysis::estimate) what is left.
    #[serde(default)]
    weight: f64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(from = "Saved", into = "Saved")]
pub(crate) struct Ledger {
    /// How many different plans were handed out.
    handed: u64,
    /// The plans that are out, in the order in which they were handed out.
    out: VecDeque<Entry>,
    /// The plans that were given back unrun, by number.
    back: VecDeque<Entry>,
    tally: Tally,
}

/// Counts of executions; the fields are those of [`Status`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Tally {
    executions: u64,
    diverged: u64,
    stuck: u64,
    clipped: u64,
    #[serde(default)]
    cut: u64,
}

/// The form in which a ledger is saved.
#[derive(Serialize, Deserialize)]
struct Saved {
    handed: u64,
    unfinished: Vec<Entry>,
    tally: Tally,
}

impl From<Ledger> for Saved {
    fn from(ledger: Ledger) -> Saved {
        let unfinished = ledger.out.into_iter().chain(ledger.back).collect();
        Saved { handed: ledger.handed, unfinished, tally: ledger.tally }
    }
}

impl From<Saved> for Ledger {
    fn from(saved: Saved) -> Ledger {
        let mut back = saved.unfinished;
        back.sort_by_key(|entry| entry.number);
        Ledger { handed: saved.handed, out: VecDeque::new(), back: back.into(), tally: saved.tally }
    }
}

impl Ledger {
    /// How many different plans were handed out, which is the number of the next one.
    pub fn handed(&self) -> u64 {
        self.handed
    }

    /// Whether every plan that was handed out is done.
    pub fn is_settled(&self) -> bool {
        self.out.is_empty() && self.back.is_empty()
    }

    /// How many plans are out or done.
    pub fn begun(&self) -> u64 {
        self.handed - self.back.len() as u64
    }

    /// Whether any plan is out.
    pub fn is_running(&self) -> bool {
        !self.out.is_empty()
    }

    /// Hands out again a plan that was given back unrun.
    pub fn again(&mut self) -> Option<Plan> {
        let entry = self.back.pop_front()?;
        let plan = entry.plan.clone();
        self.out.push_back(entry);
        Some(plan)
    }

    /// Makes a plan the first to be handed out again, if it was given back unrun.
    pub fn prefer(&mut self, plan: &Plan) {
        if let Some(at) = self.back.iter().position(|entry| entry.plan == *plan)
            && let Some(entry) = self.back.remove(at)
        {
            self.back.push_front(entry);
        }
    }

    /// Hands out a new plan.
    pub fn hand_out(&mut self, plan: Plan) -> Plan {
        self.hand_out_of(plan, 0.0)
    }

    /// Hands out a new plan of this weight.
    pub fn hand_out_of(&mut self, plan: Plan, weight: f64) -> Plan {
        self.out.push_back(Entry { number: self.handed, plan: plan.clone(), weight });
        self.handed += 1;
        plan
    }

    /// The weight of a plan that is out.
    pub fn weight(&self, plan: &Plan) -> f64 {
        self.out.iter().find(|entry| entry.plan == *plan).map_or(0.0, |entry| entry.weight)
    }

    /// Takes back a plan that was not run.
    pub fn give_back(&mut self, plan: &Plan) {
        let entry = self.remove(plan);
        let at = self.back.partition_point(|e| e.number < entry.number);
        self.back.insert(at, entry);
    }

    /// Takes back a finished execution. Returns whether the search can branch from it.
    pub fn done(&mut self, plan: &Plan, execution: &Execution) -> bool {
        self.remove(plan);
        self.tally.executions += 1;
        let predicted = plan.policy == Policy::Default;
        if execution.diverged.is_some() || predicted && !branch_points::follows(plan, execution) {
            self.tally.diverged += 1;
            return false;
        }
        if execution.end == End::Stuck {
            self.tally.stuck += 1;
            return false;
        }
        let clips = |n: &Note| {
            matches!(n, Note::FairTail | Note::TooManyChoices | Note::LogFull | Note::ThreadsDistinguished)
        };
        if execution.notes.iter().any(clips) {
            self.tally.clipped += 1;
        }
        true
    }

    /// Counts the last execution as a divergence, which its touches have shown.
    pub fn diverged(&mut self) {
        self.tally.diverged += 1;
    }

    /// Counts the last execution as one with decisions that the search cannot branch from.
    pub fn clipped(&mut self) {
        self.tally.clipped += 1;
    }

    /// Counts the last execution as one of which only the first events were analysed.
    pub fn cut(&mut self) {
        self.tally.cut += 1;
        self.clipped();
    }

    /// The plans that were handed out and are not done.
    pub fn unfinished(&self) -> Vec<Plan> {
        self.out.iter().chain(&self.back).map(|entry| entry.plan.clone()).collect()
    }

    /// Whether a plan is out.
    pub fn is_out(&self, plan: &Plan) -> bool {
        self.out.iter().any(|entry| entry.plan == *plan)
    }

    /// A status with the counts of the ledger filled in.
    pub fn status(&self) -> Status {
        let Tally { executions, diverged, stuck, clipped, cut } = self.tally;
        let (queued, out) = (self.back.len(), self.out.len());
        let returned = queued;
        Status { queued, returned, out, executions, diverged, stuck, clipped, cut, ..Status::default() }
    }

    fn remove(&mut self, plan: &Plan) -> Entry {
        let at = self.out.iter().position(|entry| entry.plan == *plan);
        at.and_then(|at| self.out.remove(at)).expect("a plan was given back that is not out")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(seed: u64) -> Plan {
        Plan::new(Policy::Random { seed })
    }

    fn finished(end: End) -> Execution {
        Execution {
            steps: 1,
            threads: 1,
            decisions: vec![],
            touches: vec![],
            end,
            notes: vec![],
            diverged: None,
            fingerprint: None,
            counted: vec![],
            symbolic: None,
        }
    }

    #[test]
    fn plans_given_back_unrun_come_out_in_their_first_order() {
        let mut ledger = Ledger::default();
        for seed in 0..5 {
            ledger.hand_out(plan(seed));
        }
        for seed in [3, 1, 4] {
            ledger.give_back(&plan(seed));
        }
        assert_eq!((ledger.status().out, ledger.status().queued), (2, 3));
        let again: Vec<Plan> = std::iter::from_fn(|| ledger.again()).collect();
        assert_eq!(again, [plan(1), plan(3), plan(4)]);
        assert_eq!(ledger.handed(), 5);
    }

    #[test]
    fn saving_gives_back_what_is_out() {
        let mut ledger = Ledger::default();
        for seed in 0..4 {
            ledger.hand_out(plan(seed));
        }
        ledger.done(&plan(0), &finished(End::Exit(0)));
        ledger.give_back(&plan(2));
        let mut read: Ledger = serde_json::from_str(&serde_json::to_string(&ledger).unwrap()).unwrap();
        let again: Vec<Plan> = std::iter::from_fn(|| read.again()).collect();
        assert_eq!(again, [plan(1), plan(2), plan(3)]);
        assert_eq!((read.handed(), read.status().executions), (4, 1));
    }

    #[test]
    fn gaps_are_counted() {
        let mut ledger = Ledger::default();
        let mut done = |execution: Execution| {
            ledger.hand_out(plan(1));
            let usable = ledger.done(&plan(1), &execution);
            let s = ledger.status();
            (usable, s.diverged, s.stuck, s.clipped)
        };
        assert_eq!(done(finished(End::Deadlock)), (true, 0, 0, 0));
        assert_eq!(done(finished(End::Stuck)), (false, 0, 1, 0));
        let clipped = Execution { notes: vec![Note::Fork, Note::LogFull], ..finished(End::Exit(1)) };
        assert_eq!(done(clipped), (true, 0, 1, 1));
        let diverged = heisen_trace::Divergence { step: 3, found: "lock".into() };
        assert_eq!(done(Execution { diverged: Some(diverged), ..finished(End::Exit(0)) }), (false, 1, 1, 1));
    }

    #[test]
    #[should_panic = "not out"]
    fn a_plan_that_is_not_out_is_a_mistake() {
        let mut ledger = Ledger::default();
        ledger.hand_out(plan(1));
        ledger.done(&plan(2), &finished(End::Exit(0)));
    }
}
