//! Finds where a finished execution can be left, and whether it followed its plan.
//!
//! A plan fixes its overrides, choice 0 at all other decisions up to the last override, and choice 0 from
//! there on. Every schedule is therefore exactly one plan: its last choice other than 0 is the last override,
//! and its parent is the plan without that override. It follows that branching only *after* a plan's last
//! override makes every schedule exactly once.

use heisen_trace::{Decision, Execution, Plan};
use serde::{Deserialize, Serialize};

/// A decision whose choices other than 0 are to be explored, in 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u32, u16, u8, bool, u64)", into = "(u32, u16, u8, bool, u64)")]
pub(crate) struct Point {
    pub step: u32,
    pub options: u16,
    pub kind: u8,
    pub preemptive: bool,
    pub hash: u64,
}

impl From<&Decision> for Point {
    fn from(d: &Decision) -> Point {
        // `Decision::cost` is the same for all choices except 0.
        let preemptive = d.cost(1) > 0;
        Point { step: d.step, options: d.options, kind: d.kind as u8, preemptive, hash: d.hash }
    }
}

impl From<(u32, u16, u8, bool, u64)> for Point {
    fn from((step, options, kind, preemptive, hash): (u32, u16, u8, bool, u64)) -> Point {
        Point { step, options, kind, preemptive, hash }
    }
}

impl From<Point> for (u32, u16, u8, bool, u64) {
    fn from(p: Point) -> Self {
        (p.step, p.options, p.kind, p.preemptive, p.hash)
    }
}

/// The points at which plans leave the execution of `plan`, in order of their steps.
pub(crate) fn points<'a>(plan: &Plan, execution: &'a Execution) -> impl Iterator<Item = Point> + use<'a> {
    let last = plan.overrides.last().map(|o| o.step);
    execution
        .decisions
        .iter()
        .skip_while(move |d| last.is_some_and(|last| d.step <= last))
        .filter(|d| d.options >= 2)
        .map(Point::from)
}

/// Whether the decisions of an execution are those that its plan, with the default policy, asks for.
/// Branching from an execution that diverged would make some schedules twice and miss others. Decisions do
/// not show which thread an override by name has scheduled, nor how sleeping threads influenced the schedule.
pub(crate) fn follows(plan: &Plan, execution: &Execution) -> bool {
    let named = plan.overrides.iter().find(|o| o.named).map(|o| o.step);
    let asleep = plan.overrides.last().filter(|_| !plan.sleep.is_empty()).map(|o| o.step + 1);
    let shown = named.or(asleep).unwrap_or(u32::MAX);
    let mut fixed = plan.overrides.iter().peekable();
    execution.decisions.iter().take_while(|d| d.step < shown).all(|d| {
        while fixed.next_if(|o| o.step < d.step).is_some() {}
        d.chosen == fixed.next_if(|o| o.step == d.step).map_or(0, |o| o.choice)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use heisen_trace::{DecisionKind, End, Override, Policy};

    fn decision(step: u32, options: u16, chosen: u16) -> Decision {
        let kind = DecisionKind::Thread;
        Decision {
            step,
            kind,
            options,
            chosen,
            preemptive: step.is_multiple_of(2),
            hash: 100 + u64::from(step),
        }
    }

    fn execution(decisions: Vec<Decision>) -> Execution {
        Execution {
            steps: 20,
            threads: 3,
            decisions,
            touches: vec![],
            end: End::Exit(0),
            notes: vec![],
            diverged: None,
            fingerprint: None,
            counted: vec![],
            symbolic: None,
        }
    }

    fn plan(fixed: &[(u32, u16)]) -> Plan {
        let overrides = fixed.iter().map(|&(s, c)| Override::new(s, DecisionKind::Thread, c, 3)).collect();
        Plan { overrides, ..Plan::new(Policy::Default) }
    }

    #[test]
    fn only_what_lies_after_the_last_override() {
        let e = execution(vec![decision(0, 2, 0), decision(2, 3, 1), decision(5, 4, 0), decision(6, 2, 0)]);
        let steps = |p: &Plan| points(p, &e).map(|p| p.step).collect::<Vec<_>>();
        assert_eq!(steps(&plan(&[])), [0, 2, 5, 6]);
        assert_eq!(steps(&plan(&[(2, 1)])), [5, 6]);
        assert!(steps(&plan(&[(2, 1), (6, 1)])).is_empty());
        let found: Vec<Point> = points(&plan(&[(2, 1)]), &e).collect();
        assert_eq!(found[0], Point { step: 5, options: 4, kind: 0, preemptive: false, hash: 105 });
        assert_eq!(found[1], Point { step: 6, options: 2, kind: 0, preemptive: true, hash: 106 });
    }

    #[test]
    fn decisions_that_contradict_the_plan() {
        let e = execution(vec![decision(0, 2, 0), decision(2, 3, 1), decision(5, 4, 0)]);
        assert!(follows(&plan(&[(2, 1)]), &e));
        assert!(!follows(&plan(&[]), &e));
        assert!(!follows(&plan(&[(2, 2)]), &e));
        assert!(!follows(&plan(&[(0, 1), (2, 1)]), &e));
        assert!(!follows(&plan(&[(2, 1), (5, 1)]), &e));
        // Decisions that were not recorded contradict nothing.
        assert!(follows(&plan(&[(1, 1), (2, 1), (9, 1)]), &e));
    }

    #[test]
    fn points_are_small() {
        assert_eq!(size_of::<Point>(), 16);
    }
}
