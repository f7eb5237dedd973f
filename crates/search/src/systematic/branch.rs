//! Where a finished execution can be left: the one place that turns an execution into the plans that follow from it.
//!
//! A plan fixes decisions up to its last override, all others up to there being choice 0, and takes choice 0 from
//! there on. So every schedule is one plan, with its last choice other than 0 as the last override, and its parent is
//! that plan without this override. Branching only *after* a plan's last override therefore makes every schedule
//! exactly once.

use crate::analysis::estimate::Explored;
use crate::store::hb_cache;
use crate::store::hb_cache::Edges;
use crate::store::pool::{Spread, Waiting};
use heisen_trace::{Decision, Execution, Plan};
use serde::{Deserialize, Serialize};

/// A decision at which choices other than 0 are to be explored, in 16 bytes.
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
        // `Decision::cost` is the same for all choices but 0.
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

/// The points at which the execution of a plan is to be left, in order of their steps.
pub(crate) fn points<'a>(plan: &Plan, execution: &'a Execution) -> impl Iterator<Item = Point> + use<'a> {
    let last = plan.overrides.last().map(|o| o.step);
    execution
        .decisions
        .iter()
        .skip_while(move |d| last.is_some_and(|last| d.step <= last))
        .filter(|d| d.options >= 2)
        .map(Point::from)
}

/// The plans that leave the execution of a plan, those at points that `pick` picks; with a cache of states, only up to
/// where the execution comes to an edge that was taken.
pub(crate) struct Leaving {
    points: Vec<(Point, Vec<u64>)>,
}

impl Leaving {
    pub fn new(plan: &Plan, execution: &Execution, cache: Option<&mut Edges>) -> Leaving {
        let found = points(plan, execution);
        let Some(cache) = cache else {
            return Leaving { points: found.map(|point| (point, vec![])).collect() };
        };
        let mut edges = hb_cache::edges(execution);
        let mut leaving = Vec::new();
        for point in found {
            let mut there = edges.remove(&point.step).unwrap_or_default();
            // What is not a choice of threads, or whose state was not recorded, is always explored.
            there.resize(usize::from(point.options), 0);
            let taken = there.remove(0);
            leaving.push((point, there));
            if taken != 0 && !cache.insert(taken) {
                break;
            }
        }
        Leaving { points: leaving }
    }

    /// The plans that leave at points of which that is true. `weight` is what the plan weighs if these are all.
    pub fn spread(&self, plan: &Plan, weight: f64, pick: impl Fn(&Point) -> bool) -> Option<Spread> {
        let picked = || self.points.iter().filter(|(point, _)| pick(point));
        let edges = picked().flat_map(|(_, edges)| edges).copied().collect();
        Spread::new(plan, weight, picked().map(|(point, _)| *point).collect(), edges)
    }

    /// What is left of a plan's weight for its execution, if these points are all at which it is left.
    pub fn left_of(&self, weight: f64, pick: impl Fn(&Point) -> bool) -> f64 {
        let picked = self.points.iter().filter(|(point, _)| pick(point));
        picked.fold(weight, |weight, (point, _)| weight / f64::from(point.options))
    }
}

/// Takes plans until one leads over an edge that was not taken, which it is from now on. Counts those that are dropped.
pub(crate) fn untaken(
    mut next: impl FnMut() -> Option<Waiting>,
    cache: Option<&mut Edges>,
    dropped: &mut u64,
    explored: &mut Explored,
) -> Option<Waiting> {
    let Some(cache) = cache else { return next() };
    loop {
        let waiting = next()?;
        if waiting.edge == 0 || cache.insert(waiting.edge) {
            return Some(waiting);
        }
        *dropped += 1;
        explored.dropped(waiting.weight);
    }
}

/// Whether the decisions of an execution are those its plan, one with the default policy, asks for. Branching from
/// one that is not would make schedules twice and miss others. Whom an override by name has let go on, and what threads
/// that sleep have to do with it, decisions do not show.
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
