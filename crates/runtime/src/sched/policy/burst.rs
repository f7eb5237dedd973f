//! Sticky random walk: the running thread continues for a random number of decisions, then a random candidate
//! runs.
//!
//! With two threads, the uniform walk switches at every other decision. So a queue never grows, and no thread
//! gets far beyond the others. Here the length of a burst is distributed geometrically.

use super::random::below;
use crate::sched::decision::Choices;

/// Choice 0, the running thread, continues; once in `length` times every choice has the same chance.
pub fn choose(choices: Choices, able: bool, length: u32) -> usize {
    if able && below(u64::from(length.max(1))) != 0 {
        return 0;
    }
    below(choices.options as u64) as usize
}
