//! Random numbers: splitmix64. The uniform random walk needs nothing but the next number.

use crate::platform::baton::Guarded;
use core::cell::Cell;
use heisen_trace::hash;

struct Generator {
    state: Cell<u64>,
    /// The next number, computed in advance, because the path of a scheduling point waits for it.
    ready: Cell<u64>,
}

static GENERATOR: Guarded<Generator> = Guarded::new(Generator { state: Cell::new(0), ready: Cell::new(0) });

/// Starts the sequence of this seed.
pub fn begin(seed: u64) {
    GENERATOR.state.set(seed);
    random();
}

/// The next number of splitmix64.
#[inline]
pub fn random() -> u64 {
    let ready = GENERATOR.ready.get();
    let state = GENERATOR.state.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
    GENERATOR.state.set(state);
    GENERATOR.ready.set(hash::scatter(state));
    ready
}

/// A random number below `bound`, which is less than 2^32, by multiplication; the bias is below 2^-32.
#[inline]
pub fn below(bound: u64) -> u64 {
    ((random() >> 32) * bound) >> 32
}

/// A random number below `bound`, however large.
pub fn below_any(bound: u64) -> u64 {
    ((u128::from(random()) * u128::from(bound)) >> 64) as u64
}
