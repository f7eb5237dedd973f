//! Words of the runtime whose value is expensive to find and the same in all executions, such as addresses of functions.
//!
//! A runner restores memory after each execution. Whoever takes snapshots plugs in here, and leaves these words as they are.

use super::baton::Hook;

static KEEP: Hook<fn(at: usize, value: usize, code: usize)> = Hook::new(|_, _, _| ());

/// From now on, `keep` gets to know of such words: their address, their value, and the code that the value depends on.
pub fn plug_in(keep: fn(at: usize, value: usize, code: usize)) {
    KEEP.set(keep);
}

/// A word has got such a value. It stays right as long as the code at that address does.
pub fn keep<T>(word: &T, value: usize, code: usize) {
    assert!(size_of::<T>() == size_of::<usize>());
    KEEP.get()(core::ptr::from_ref(word) as usize, value, code);
}
