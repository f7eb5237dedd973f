//! The state of a search: counts, bounds and guarantees so far.

use crate::{Remaining, Unseen};
use serde::{Deserialize, Serialize};

/// The state of a search.
///
/// "Every schedule" refers to the decisions that executions report. The notes of an execution say what Heisen
/// did not control.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The number of preemptions that is being explored; `None` for strategies without bounds.
    pub bound: Option<u32>,
    /// The largest number of preemptions up to which no plan is left; see [`has_gaps`](Status::has_gaps).
    pub explored_bound: Option<u32>,
    /// No plan is waiting and none is out.
    pub exhausted: bool,
    /// Every schedule was explored: no plan is left, none lay beyond a bound, and there are no gaps.
    #[serde(rename = "whole")]
    pub exhaustive: bool,
    /// How many plans wait that could be handed out under the current bound.
    pub queued: usize,
    /// How many of those were handed out before and were not run.
    pub returned: usize,
    /// How many plans wait for the next bound.
    pub deferred: usize,
    /// How many plans were dropped because they lay beyond the last bound.
    pub beyond: u64,
    /// How many plans were dropped because an equivalent plan was taken.
    pub dropped: u64,
    /// How many times a state did not fit into the happens-before cache. Such states may be explored more
    /// than once.
    pub unnoted: u64,
    /// An estimate of the executions left, within the current bound if there is one, for strategies that have
    /// one.
    pub remaining: Option<Remaining>,
    /// Why plans that do not fit into memory cannot be written to the spill file, or not be read back. The
    /// search cannot continue.
    pub trouble: Option<String>,
    /// How many plans are out.
    pub out: usize,
    /// How many executions were given back.
    pub executions: u64,
    /// How many of them did not follow their plan. The search did not branch from them.
    pub diverged: u64,
    /// How many of them got stuck. The search did not branch from them.
    pub stuck: u64,
    /// How many of them had decisions that the search cannot branch from: in the fair tail of a long
    /// execution, or beyond the record.
    pub clipped: u64,
    /// How many of those were too long to analyse completely, for strategies that compare each event with all
    /// before it.
    pub cut: u64,
    /// How many classes were explored, for strategies that explore each only once; see
    /// [`relation`](crate::analysis::relation).
    pub classes: Option<u64>,
    /// How many executions turned out to belong to a class that was explored before.
    pub blocked: u64,
    /// The number of rounds of a waiting loop beyond which executions were left out; `None` if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds: Option<u32>,
    /// The number of rounds of a waiting loop within which everything was explored; `None` if there is none, or if the
    /// search has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds_completed: Option<u32>,
    /// Why executions may exist that the search does not know of, although it has ended: for strategies that know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// The guarantee of the executions so far, for samplers that have one.
    pub guarantee: Option<Guarantee>,
    /// How likely the next execution shows new behaviour, for samplers.
    pub unseen: Option<Unseen>,
}

impl Status {
    /// Whether schedules within the bound may have been missed: some execution diverged, got stuck or was
    /// clipped, or the search knows of another reason.
    pub fn has_gaps(&self) -> bool {
        self.diverged + self.stuck + self.clipped > 0 || !self.missing.is_empty()
    }
}

/// The guarantee of probabilistic concurrency testing: the probability with which a bug of depth `depth`, if
/// there is one, would have been found by now.
///
/// The depth is the number of ordering constraints that the bug needs. Burckhardt et al., ASPLOS 2010: in a
/// program of at most `threads` threads and `steps` steps, one execution finds a bug of depth d with a
/// probability of at least 1 / (threads · steps^(d-1)).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Guarantee {
    /// The depth of the bugs.
    pub depth: u32,
    /// The number of threads of the program: the largest number seen.
    pub threads: u32,
    /// The number of steps of the program: the largest number seen.
    pub steps: u32,
    /// The probability, at least, with which one execution finds such a bug.
    pub per_execution: f64,
    /// How many executions count.
    pub executions: u64,
    /// The probability, at least, with which one of them finds such a bug.
    pub total: f64,
}

impl Guarantee {
    /// The guarantee of this many executions. A depth, threads or steps of 0 counts as 1.
    pub fn new(depth: u32, threads: u32, steps: u32, executions: u64) -> Guarantee {
        let (depth, threads, steps) = (depth.max(1), threads.max(1), steps.max(1));
        let power = f64::from(steps).powf(f64::from(depth - 1));
        let per_execution = (f64::from(threads) * power).recip();
        // 1 - (1 - p)^n by logarithms, because 1 - p would round to 1 for the small p of long executions.
        let total =
            if executions == 0 { 0.0 } else { -((executions as f64) * (-per_execution).ln_1p()).exp_m1() };
        Guarantee { depth, threads, steps, per_execution, executions, total }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn close(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-12 * b.abs(), "{a} is not {b}");
    }

    #[test]
    fn numbers_computed_by_hand() {
        // 1 / (2 · 10) = 0.05; 1 - 0.95^2 = 0.0975.
        let g = Guarantee::new(2, 2, 10, 2);
        close(g.per_execution, 0.05);
        close(g.total, 0.0975);
        // Depth 1 does not depend on the steps: 1/4; 1 - (3/4)^3 = 37/64.
        let g = Guarantee::new(1, 4, 1000, 3);
        close(g.per_execution, 0.25);
        close(g.total, 37.0 / 64.0);
        // 1 / (3 · 100^2).
        close(Guarantee::new(3, 3, 100, 1).per_execution, 1.0 / 30_000.0);
        close(Guarantee::new(3, 3, 100, 1).total, 1.0 / 30_000.0);
    }

    #[test]
    fn the_ends_of_the_scale() {
        assert_eq!(Guarantee::new(1, 1, 1, 0).total, 0.0);
        assert_eq!(Guarantee::new(1, 1, 1, 1).total, 1.0);
        assert_eq!(Guarantee::new(0, 0, 0, 1).per_execution, 1.0);
        // p is so small that 1 - p is 1 in floating point; the sum is still correct.
        let p = Guarantee::new(4, 1, 1_000_000, 1).per_execution;
        close(p, 1e-18);
        close(Guarantee::new(4, 1, 1_000_000, 1_000).total, 1e-15);
        assert_eq!(Guarantee::new(u32::MAX, 2, 10, 5).total, 0.0);
    }
}
