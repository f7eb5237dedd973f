//! Where a search stands, and what it has shown so far.

use crate::{Remaining, Unseen};
use serde::{Deserialize, Serialize};

/// Where a search stands.
///
/// "Every schedule" always speaks of what the executions reported as choices; what they did that is not controlled
/// is in their notes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The number of preemptions that is being explored; `None` for strategies that do not go by it.
    pub bound: Option<u32>,
    /// The largest number of preemptions up to which no plan is left; see [`has_gaps`](Status::has_gaps).
    pub explored_bound: Option<u32>,
    /// Nothing at all is left: no plan is waiting and none is out.
    pub exhausted: bool,
    /// Every schedule was explored: nothing is left, nothing lay beyond a bound and there are no gaps.
    pub whole: bool,
    /// Plans that wait and could be handed out under the current bound.
    pub queued: usize,
    /// Those of them that were out before, and were not run.
    pub returned: usize,
    /// Plans that wait for the next bound.
    pub deferred: usize,
    /// Plans that were dropped since they lay beyond the last bound.
    pub beyond: u64,
    /// Plans that were dropped since equivalent ones were taken.
    pub dropped: u64,
    /// States that were not noted, since there was no more room for them; what leads to them is explored more than once.
    pub unnoted: u64,
    /// About how many executions are left, of the current bound if there is one, for strategies that can tell.
    pub remaining: Option<Remaining>,
    /// Why plans that have no room in memory cannot be put elsewhere, or not be read from there. The search cannot go on.
    pub trouble: Option<String>,
    /// Plans that are out.
    pub out: usize,
    /// Executions that were given back.
    pub executions: u64,
    /// Those of them that did not follow their plan; nothing was branched from them.
    pub diverged: u64,
    /// Those of them that got stuck; nothing was branched from them.
    pub stuck: u64,
    /// Those of them that made choices that could not be branched from: in the fair tail of a long one, beyond what is recorded.
    pub clipped: u64,
    /// Those of the clipped ones that are too long to look at as a whole, for strategies that compare events with all before them.
    pub cut: u64,
    /// Classes of equivalent executions that were explored, for strategies that explore each only once; see
    /// [`relation`](crate::analysis::relation).
    pub classes: Option<u64>,
    /// Executions that turned out, on the way, to be of a class that was explored before.
    pub blocked: u64,
    /// What the executions so far guarantee, for strategies that work by chance and can tell.
    pub guarantee: Option<Guarantee>,
    /// How likely the next execution does something new, for strategies that work by chance.
    pub unseen: Option<Unseen>,
}

impl Status {
    /// Whether schedules within the bound may have been missed: some execution diverged, got stuck or was clipped.
    pub fn has_gaps(&self) -> bool {
        self.diverged + self.stuck + self.clipped > 0
    }
}

/// What probabilistic concurrency testing has earned: the chance with which a bug, if there is one that takes `depth`
/// ordering constraints, would have been found by now.
///
/// Burckhardt et al., ASPLOS 2010: in a program of at most `threads` threads and `steps` steps, one execution finds
/// a bug of depth d with a probability of at least 1 / (threads · steps^(d-1)).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Guarantee {
    /// The depth of the bugs.
    pub depth: u32,
    /// Threads of the program: the most that were seen.
    pub threads: u32,
    /// Steps of the program: the most that were seen.
    pub steps: u32,
    /// The least probability with which one execution finds such a bug.
    pub per_execution: f64,
    /// Executions that count.
    pub executions: u64,
    /// The least probability with which at least one of them finds such a bug.
    pub total: f64,
}

impl Guarantee {
    /// What `executions` executions guarantee. A depth, threads or steps of 0 is taken as 1.
    pub fn new(depth: u32, threads: u32, steps: u32, executions: u64) -> Guarantee {
        let (depth, threads, steps) = (depth.max(1), threads.max(1), steps.max(1));
        let power = f64::from(steps).powf(f64::from(depth - 1));
        let per_execution = (f64::from(threads) * power).recip();
        // 1 - (1 - p)^n by way of logarithms, as 1 - p would round to 1 for the p of long executions.
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
        // So small that 1 - p is 1 in floating point, and yet the sum is right.
        let p = Guarantee::new(4, 1, 1_000_000, 1).per_execution;
        close(p, 1e-18);
        close(Guarantee::new(4, 1, 1_000_000, 1_000).total, 1e-15);
        assert_eq!(Guarantee::new(u32::MAX, 2, 10, 5).total, 0.0);
    }
}
