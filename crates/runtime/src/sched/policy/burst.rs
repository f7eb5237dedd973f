//! Sticky random walk: the running thread goes on for a random number of decisions, then any candidate does.
//!
//! The uniform walk switches at every other decision of two threads, so that a queue never grows and a thread never
//! gets far ahead of the others. How long a thread goes on is distributed geometrically.

use super::random::below;
use crate::sched::decision::Choices;

/// Choice 0, the running thread, goes on; once in `length` times everyone has the same chance.
pub fn choose(choices: Choices, able: bool, length: u32) -> usize {
    if able && below(u64::from(length.max(1))) != 0 {
        return 0;
    }
    below(choices.options as u64) as usize
}
