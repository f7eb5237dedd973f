//! Random walk: at each decision every choice has the same chance.
//!
//! The baseline `random` of the iterative context bounding paper (PLDI 2007, section 2.1).
//!
//! Guarantees nothing but that a base seed alone reproduces the whole search, however many executions run at a time,
//! and that no seed comes twice.

use crate::sampling::common::{Sampler, Sampling};
use heisen_trace::Policy;
use serde::{Deserialize, Serialize};

/// Random walk.
pub type Random = Sampling<Walk>;

/// What makes its plans.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Walk;

impl Random {
    /// The search that this seed stands for.
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
