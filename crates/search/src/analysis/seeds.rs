//! Derives many seeds from one.
//!
//! SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014), read at any
//! index: a base seed and a number reproduce one execution without those before it.

/// The odd constant by which the state advances: 2^64 divided by the golden ratio.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// Seed number `index` of the sequence that `base` starts. Different indexes give different seeds: the state
/// takes each value once, and the mixing is a bijection.
pub(crate) const fn nth(base: u64, index: u64) -> u64 {
    let mut z = base.wrapping_add(GAMMA.wrapping_mul(index.wrapping_add(1)));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_sequence_of_seed_0() {
        assert_eq!(nth(0, 0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(nth(0, 1), 0x6e78_9e6a_a1b9_65f4);
        assert_eq!(nth(0, 2), 0x06c4_5d18_8009_454f);
    }
}
