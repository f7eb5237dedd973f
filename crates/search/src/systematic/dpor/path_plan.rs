//! Builds plans that follow the events of an execution and then leave it.

use crate::analysis::relation::{Event, Outcome};
use heisen_trace::{DecisionKind, Override, Plan, Policy};
use serde::{Deserialize, Serialize};

/// The first outcomes of an event, of which the last is still to be explored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Todo {
    pub outcomes: Vec<Outcome>,
    /// Whether its plan was handed out.
    pub out: bool,
}

/// The other outcomes of an event, from its outcome number `from` on.
pub(crate) fn other_outcomes(event: &Event, from: usize) -> Vec<Todo> {
    let mut todo = Vec::new();
    for (at, o) in event.outcomes.iter().enumerate().skip(from) {
        for chosen in (0..o.options).filter(|&c| c != o.chosen) {
            let mut outcomes = event.outcomes[..at].to_vec();
            outcomes.push(Outcome { chosen, ..*o });
            todo.push(Todo { outcomes, out: false });
        }
    }
    todo
}

/// The plan that follows these events.
pub(crate) fn plan_of<'a>(events: impl Iterator<Item = &'a Event>) -> Plan {
    let mut plan = Plan::new(Policy::Default);
    for event in events {
        add_same_thread(&mut plan, event);
        add_outcomes(&mut plan, event.step, &event.outcomes, false);
    }
    plan
}

/// Adds the event with these outcomes, of which the last differs from that of the event.
pub(crate) fn add_other_outcomes(plan: &mut Plan, event: &Event, outcomes: &[Outcome]) {
    add_same_thread(plan, event);
    add_outcomes(plan, event.step, outcomes, true);
    plan.expect = outcomes.last().map_or(0, |o| o.hash);
}

/// Lets another thread take the step of an event.
pub(crate) fn add_other_thread(plan: &mut Plan, event: &Event, thread: u16) {
    let choice = event.candidates.iter().position(|&t| t == thread).unwrap_or(0);
    add_choice(plan, event, choice as u16);
}

fn add_same_thread(plan: &mut Plan, event: &Event) {
    if let Some((choice @ 1.., ..)) = event.chosen {
        add_choice(plan, event, choice);
    }
}

fn add_choice(plan: &mut Plan, event: &Event, choice: u16) {
    let options = event.candidates.len() as u16;
    plan.overrides.push(Override::new(event.step, DecisionKind::Thread, choice, options));
    let (_, hash, preemptive) = event.chosen.unwrap_or_default();
    plan.expect = hash;
    plan.preemptions += u32::from(preemptive && choice > 0);
}

/// Adds the outcomes of an event. Choice 0 is left out, except for the last outcome if `must` is set.
fn add_outcomes(plan: &mut Plan, step: u32, outcomes: &[Outcome], must: bool) {
    for (at, o) in outcomes.iter().enumerate() {
        if o.chosen > 0 || must && at + 1 == outcomes.len() {
            let step = step + 1 + at as u32;
            let (choice, options, kind) = (o.chosen, o.options, o.kind);
            plan.overrides.push(Override { step, choice, options, kind, named: false });
            plan.expect = o.hash;
        }
    }
}
