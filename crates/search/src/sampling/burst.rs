//! Sticky random walk: the running thread goes on for a while before all choices have the same chance.
//!
//! Which length finds a bug depends on how far one thread must get ahead of the others. Unless told, lengths of 1, 2, 4
//! to 256 decisions take turns.

use crate::sampling::common::{Sampler, Sampling};
use heisen_trace::Policy;
use serde::{Deserialize, Serialize};

/// The longest of the bursts that take turns, as a power of two.
const LONGEST: u64 = 8;

/// Sticky random walk.
pub type Burst = Sampling<Bursts>;

/// What makes its plans.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Bursts {
    pub(crate) length: Option<u32>,
}

impl Bursts {
    pub(crate) fn new(length: Option<u32>) -> Bursts {
        Bursts { length: length.map(|length| length.max(1)) }
    }
}

impl Burst {
    /// The search that this seed stands for, with bursts of this mean length (at least 1), or of all lengths.
    pub fn new(seed: u64, length: Option<u32>) -> Burst {
        Sampling::of(seed, Bursts::new(length))
    }
}

impl Sampler for Bursts {
    const LONGEST_BATCH: u64 = 1;

    fn policy(&mut self, number: u64, seed: u64) -> Policy {
        Policy::Burst { seed, length: self.length.unwrap_or(1 << (number % (LONGEST + 1))) }
    }
}
