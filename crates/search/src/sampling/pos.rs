//! Partial order sampling: a random priority for each event, drawn again for those that lose a race.
//!
//! Yuan, Yang, Gu: Partial Order Aware Concurrency Sampling, CAV 2018. The scheduling is the runtime's, and nothing needs
//! to be known for it.
//!
//! Guarantees: nothing that could be told from what is measured. Executions that differ only in the order of independent
//! events are taken for one more often than by a random walk.

use crate::sampling::common::{Sampler, Sampling};
use heisen_trace::Policy;
use serde::{Deserialize, Serialize};

/// Partial order sampling.
pub type Pos = Sampling<Events>;

/// What makes its plans.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Events;

impl Pos {
    /// The search that this seed stands for.
    pub fn new(seed: u64) -> Pos {
        Sampling::of(seed, Events)
    }
}

impl Sampler for Events {
    const LONGEST_BATCH: u64 = 1;

    fn policy(&mut self, _number: u64, seed: u64) -> Policy {
        Policy::Pos { seed }
    }
}
