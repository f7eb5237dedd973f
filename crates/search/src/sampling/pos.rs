//! Partial-order sampling: a random priority for each event, drawn again for events that lose a race.
//!
//! Yuan, Yang, Gu: Partial Order Aware Concurrency Sampling, CAV 2018. The runtime does the scheduling and
//! needs no measurements.
//!
//! Guarantees: none that measurements could state. Compared with a random walk, the samples are spread more
//! evenly over happens-before classes.

use crate::sampling::common::{Sampler, Sampling};
use heisen_trace::Policy;
use serde::{Deserialize, Serialize};

/// Partial-order sampling; see the head of this file.
pub type Pos = Sampling<Events>;

/// Makes the plans of [`Pos`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Events;

impl Pos {
    /// The search of this seed.
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
