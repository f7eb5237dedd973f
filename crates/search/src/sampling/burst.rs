//! Sticky random walk: the running thread continues for a while before all choices have the same chance.
//!
//! Which burst length finds a bug depends on how far one thread must run before the others. Without a given
//! length, the lengths 1, 2, 4 to 256 decisions take turns.

use crate::sampling::common::{Sampler, Sampling};
use heisen_trace::Policy;
use serde::{Deserialize, Serialize};

/// The longest burst length, as a power of two.
const LONGEST: u64 = 8;

/// Sticky random walk; see the head of this file.
pub type Burst = Sampling<Bursts>;

/// Makes the plans of [`Burst`].
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
    /// The search of this seed, with bursts of this mean length (at least 1), or of all lengths in turn.
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
