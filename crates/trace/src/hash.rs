//! The running hash of an execution.
//!
//! The runtime folds every step into one number. Two executions with the same number have, very probably,
//! taken the same steps. A plan carries the hash that its prefix must reach, so Heisen notices a divergence
//! without storing traces.

/// The hash of an execution that has taken no step.
pub const EMPTY: u64 = 0x9e37_79b9_7f4a_7c15;

/// Folds one step into the hash.
#[inline]
pub const fn fold(hash: u64, thread: u16, op: u8, options: u16) -> u64 {
    mix(hash, (thread as u64) | ((op as u64) << 16) | ((options as u64) << 24))
}

/// Folds a word into the hash.
#[inline]
pub const fn mix(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(23) ^ word).wrapping_mul(0x2545_f491_4f6c_dd1d)
}

/// The output function of splitmix64: every bit of the result depends on every bit of the state.
#[inline]
pub const fn scatter(state: u64) -> u64 {
    let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The number of parts into which objects are divided, for samplers that select some of them.
pub const PARTS: u32 = 8;

/// The part that an object belongs to, from 1 to [`PARTS`].
#[inline]
pub const fn part(object: u64) -> u32 {
    1 + (object.wrapping_mul(EMPTY) >> 32) as u32 % PARTS
}

/// The key of a thread that does not depend on the order in which threads are created: made from the key of the thread
/// that created it, and its number among the threads of that thread, from 1. The main thread has the key [`EMPTY`].
#[inline]
pub const fn thread_key(parent: u64, child: u16) -> u64 {
    mix(parent, child as u64)
}
