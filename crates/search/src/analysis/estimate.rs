//! Estimates how many executions are left, from those so far.
//!
//! Kilby, Slaney, Thiébaux, Walsh: Estimating Search Tree Size, AAAI 2006, the *weighted backtrack
//! estimator*, after Knuth (Mathematics of Computation, 1975). Each root of the tree weighs 1. At a decision,
//! the weight is divided evenly among the choices. If n executions of total weight w are done, a tree with r
//! roots has about n · r / w executions. A branch that is cut off keeps its weight and takes no execution.
//!
//! At the end w equals r, so the estimate is exact. Before, it is as good as the explored part resembles the
//! rest, which is unknown in depth-first order. The estimate is therefore reported with the factor by which
//! it changed while the number of executions doubled twice.

use serde::{Deserialize, Serialize};

/// How many earlier estimates are stored, one each time the executions have doubled.
const EARLIER: usize = 2;
/// An estimate that changed by more than this factor is not reported.
const WORTHLESS: f64 = 10.0;

/// An estimate of the rest of a search, or of its current bound.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Remaining {
    /// How many executions are left, about.
    pub executions: u64,
    /// The factor by which the estimate of the total changed at most while the executions doubled twice.
    pub factor: f64,
}

/// The explored part of a tree.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Explored {
    roots: f64,
    weight: f64,
    executions: u64,
    /// Earlier estimates of the total, the latest last.
    earlier: Vec<f64>,
}

impl Explored {
    /// A tree with this many roots, of which nothing is explored.
    pub fn nothing_of(roots: usize) -> Explored {
        Explored { roots: roots as f64, ..Explored::default() }
    }

    /// A plan was executed; `weight` is what is left of its weight after its branches.
    pub fn executed(&mut self, weight: f64) {
        self.weight += weight;
        self.executions += 1;
        if self.executions.is_power_of_two() {
            if self.earlier.len() == EARLIER {
                self.earlier.remove(0);
            }
            self.earlier.extend(self.total());
        }
    }

    /// A plan was dropped: it need not be executed.
    pub fn dropped(&mut self, weight: f64) {
        self.weight += weight;
    }

    /// An estimate of the number of all executions.
    pub fn total(&self) -> Option<f64> {
        let total = self.executions as f64 * self.roots / self.weight;
        // Weights are sums of fractions, so their last digits are inexact.
        total.is_finite().then(|| total.max(self.executions as f64))
    }

    /// An estimate of how many executions are left, or `None` if there is no good one.
    pub fn remaining(&self) -> Option<Remaining> {
        let total = self.total()?;
        if self.earlier.len() < EARLIER {
            return None;
        }
        let apart = |earlier: &f64| (total / earlier).max(earlier / total);
        let factor = self.earlier.iter().map(apart).fold(1.0, f64::max);
        let executions = (total - self.executions as f64).round() as u64;
        (factor <= WORTHLESS).then_some(Remaining { executions, factor })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_computed_by_hand() {
        // A root with two choices; below the first, two choices again; below the second, four.
        let mut explored = Explored::nothing_of(1);
        assert_eq!(explored.total(), None);
        explored.executed(0.25);
        assert_eq!(explored.total(), Some(4.0));
        explored.executed(0.25);
        assert_eq!(explored.total(), Some(4.0));
        explored.executed(0.125);
        assert_eq!(explored.total(), Some(4.8));
        (0..3).for_each(|_| explored.executed(0.125));
        assert_eq!(explored.total(), Some(6.0));
        let remaining = explored.remaining().unwrap();
        assert_eq!((remaining.executions, remaining.factor), (0, 1.5));
    }

    #[test]
    fn what_is_dropped_is_explored_and_takes_no_execution() {
        let mut explored = Explored::nothing_of(2);
        explored.executed(1.0);
        assert_eq!(explored.total(), Some(2.0));
        explored.dropped(0.5);
        assert!(explored.total().unwrap() < 1.4);
        explored.executed(0.5);
        assert_eq!(explored.total(), Some(2.0));
    }

    #[test]
    fn only_known_facts_are_reported() {
        let mut explored = Explored::nothing_of(1);
        assert_eq!(explored.remaining(), None);
        explored.executed(1e-9);
        assert_eq!(explored.remaining(), None, "one execution shows nothing");
        explored.executed(1e-9);
        assert_eq!(explored.remaining().map(|r| r.factor), Some(1.0));
        explored.executed(0.5);
        assert_eq!(explored.remaining(), None, "the estimate fell by far more than a factor of 10");
    }
}
