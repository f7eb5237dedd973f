//! From a finished execution to the plans that leave it.

use crate::analysis::branch_points::{Point, points};
use crate::analysis::estimate::Explored;
use crate::store::hb_cache::{self, Edges};
use crate::store::pool::{Spread, Waiting};
use heisen_trace::{Execution, Plan};

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
