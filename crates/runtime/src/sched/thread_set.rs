//! Sets of threads, as bits.

use core::cell::Cell;
use heisen_wire::MAX_THREADS;

/// The number of words in a set.
pub const WORDS: usize = MAX_THREADS / 64;

/// A set of threads.
#[derive(Debug)]
pub struct Bits([Cell<u64>; WORDS]);

impl Bits {
    /// The empty set.
    pub const fn new() -> Bits {
        Bits([const { Cell::new(0) }; WORDS])
    }

    #[inline]
    pub fn has(&self, thread: usize) -> bool {
        self.0[thread / 64].get() >> (thread % 64) & 1 != 0
    }

    #[inline]
    pub fn add(&self, thread: usize) {
        let word = &self.0[thread / 64];
        word.set(word.get() | 1 << (thread % 64));
    }

    #[inline]
    pub fn remove(&self, thread: usize) {
        let word = &self.0[thread / 64];
        word.set(word.get() & !(1 << (thread % 64)));
    }

    pub fn set_word(&self, index: usize, bits: u64) {
        self.0[index].set(bits);
    }

    #[inline]
    pub fn word(&self, index: usize) -> u64 {
        self.0[index].get()
    }
}
