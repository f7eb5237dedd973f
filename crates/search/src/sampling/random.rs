//! Random walk: at each decision every choice has the same chance.
//!
//! This is the baseline `random` of the paper on iterative context bounding (PLDI 2007, section 2.1).
//!
//! Guarantees only that a base seed alone reproduces the search, however many executions run at a time, and
//! that no seed comes twice.

use crate::sampling::common::{Sampler, Sampling};
use heisen_trace::Policy;
use serde::{Deserialize, Serialize};

/// Random walk; see the head of this file.
pub type Random = Sampling<Walk>;

/// Makes the plans of [`Random`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Walk;

impl Random {
    /// The search of this seed.
    pub fn new(seed: u64) -> Random {
        Sampling::of(seed, Walk)
    }
}

impl Sampler for Walk {
    const LONGEST_BATCH: u64 = 1;

    fn policy(&mut self, _number: u64, seed: u64) -> Policy {
        Policy::Random { seed }
    }
}
