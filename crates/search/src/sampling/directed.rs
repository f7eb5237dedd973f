//! Directed testing: steers executions to failures that [`predict`] has found possible in
//! others.
//!
//! Some executions record all their touches, and `predict` finds targets in them. Each target is first tried
//! with the default policy wherever the target steers nothing. Later it is tried again, with random choices
//! there. In between, random executions are searched for targets that the first execution did not show.

use crate::predict;
use crate::sampling::common::{Sampler, Sampling};
use heisen_trace::{Execution, Policy, Predicted};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// How many targets are stored, to be tried again.
const CAPACITY: usize = 1 << 10;
/// After this many different targets no more are looked for.
const MOST_SEEN: usize = 1 << 14;
/// Executions with more steps than this are not analysed.
const TOO_LONG: u32 = 1 << 16;
/// Once there are targets, one in this many executions looks for others.
const LOOKS: u64 = 4;

/// Directed testing; see the head of this file.
pub type Directed = Sampling<Aims>;

/// Makes the plans of [`Directed`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Aims {
    /// Targets that were not tried yet.
    fresh: VecDeque<Arc<Predicted>>,
    tried: VecDeque<Arc<Predicted>>,
    /// Targets found since the last batch began.
    learnt: Vec<Arc<Predicted>>,
    /// The hashes of all targets found so far.
    seen: BTreeSet<u64>,
    /// How many executions have come back.
    executions: u64,
    /// The number of steps of the first execution.
    steps: Option<u32>,
}

impl Directed {
    /// The search of this seed.
    pub fn new(seed: u64) -> Directed {
        Sampling::of(seed, Aims::default())
    }
}

impl Aims {
    /// Whether executions are short enough to be analysed. This is known after the first.
    pub(crate) fn looks(&self) -> bool {
        self.seen.len() < MOST_SEEN && self.steps.is_some_and(|steps| steps <= TOO_LONG)
    }

    /// Whether there is a target that was not tried.
    pub(crate) fn has_untried(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// A policy that steers to a target, if there is one.
    pub(crate) fn aim(&mut self, seed: u64) -> Option<Policy> {
        if let Some(to) = self.fresh.pop_front() {
            if self.tried.len() == CAPACITY {
                self.tried.pop_front();
            }
            self.tried.push_back(to.clone());
            return Some(Policy::Directed { seed, length: 0, to });
        }
        let nth = (seed >> 8) % self.tried.len().max(1) as u64;
        let to = self.tried.get(nth as usize)?.clone();
        Some(Policy::Directed { seed, length: 1 << (seed % 6), to })
    }

    fn take(&mut self, policy: &Policy, execution: &Execution) {
        for target in predict::targets(execution) {
            let mut hasher = DefaultHasher::new();
            (target.family, &target.holds).hash(&mut hasher);
            if self.seen.len() < MOST_SEEN && self.seen.insert(hasher.finish()) {
                let predicted = Predicted { target, execution: self.executions, policy: policy.clone() };
                self.learnt.push(Arc::new(predicted));
            }
        }
    }
}

#[cfg(test)]
impl Aims {
    fn something(execution: u64) -> Arc<Predicted> {
        use heisen_trace::{Family, Target};
        let target = Target { family: Family::Order, holds: vec![], deeds: vec![], likely: false };
        Arc::new(Predicted { target, execution, policy: Policy::Default })
    }

    /// Holds one target that was tried.
    pub(crate) fn at_something() -> Aims {
        Aims { tried: [Aims::something(1)].into(), ..Aims::default() }
    }

    /// Holds this many targets that were not tried.
    pub(crate) fn untried(many: u64) -> Aims {
        Aims { fresh: (0..many).map(Aims::something).collect(), ..Aims::default() }
    }
}

impl Sampler for Aims {
    const LONGEST_BATCH: u64 = 256;

    fn policy(&mut self, number: u64, seed: u64) -> Policy {
        let aimed = !number.is_multiple_of(LOOKS) || !self.fresh.is_empty();
        let policy = if aimed { self.aim(seed) } else { None };
        match number {
            // The first shows how long executions are, the second records the touches of the same schedule.
            0 | 1 => Policy::Default,
            _ => policy.unwrap_or(match seed % 2 {
                0 => Policy::Random { seed },
                _ => Policy::Burst { seed, length: 1 << (seed / 2 % 8) },
            }),
        }
    }

    fn touches(&self, _number: u64, policy: &Policy) -> bool {
        self.looks() && !matches!(policy, Policy::Directed { .. })
    }

    fn learn(&mut self, policy: &Policy, execution: &Execution, usable: bool, _new: Option<bool>) {
        self.executions += 1;
        self.steps.get_or_insert(execution.steps);
        if usable && !execution.touches.is_empty() {
            self.take(policy, execution);
        }
    }

    fn settle(&mut self) {
        self.fresh.extend(self.learnt.drain(..));
    }
}
