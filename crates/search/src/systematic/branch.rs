//! Turns a finished execution into the plans that leave it.

use crate::analysis::branch_points::{Point, points};
use crate::analysis::estimate::Explored;
use crate::store::hb_cache::{self, Edges};
use crate::store::pool::{Spread, Waiting};
use heisen_trace::{Execution, Plan};

/// The points at which plans leave an execution, each with the hashes of the states that the other choices
/// lead to. With a happens-before cache, the points end where the execution itself reaches a state already
/// explored.
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
            // A point is always explored if it is not a choice of threads, or if its states were not
            // recorded.
            there.resize(usize::from(point.options), 0);
            let taken = there.remove(0);
            leaving.push((point, there));
            if taken != 0 && !cache.insert(taken) {
                break;
            }
        }
        Leaving { points: leaving }
    }

    /// The plans that leave at the picked points. `weight` is the weight of the plan if these are all of its
    /// points.
    pub fn spread(&self, plan: &Plan, weight: f64, pick: impl Fn(&Point) -> bool) -> Option<Spread> {
        let picked = || self.points.iter().filter(|(point, _)| pick(point));
        let edges = picked().flat_map(|(_, edges)| edges).copied().collect();
        Spread::new(plan, weight, picked().map(|(point, _)| *point).collect(), edges)
    }

    /// The share of a plan's weight that its own execution takes, if the picked points are all at which it is
    /// left.
    pub fn left_of(&self, weight: f64, pick: impl Fn(&Point) -> bool) -> f64 {
        let picked = self.points.iter().filter(|(point, _)| pick(point));
        picked.fold(weight, |weight, (point, _)| weight / f64::from(point.options))
    }
}

/// Takes waiting plans until one leads to a state that is not in the cache, and adds that state. Counts the
/// dropped plans.
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
