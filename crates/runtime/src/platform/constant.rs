//! Words of the runtime whose value is expensive to compute and the same in all executions, such as addresses
//! of functions.
//!
//! A runner restores memory after each execution. The snapshot code plugs in here, and does not restore these
//! words.

use super::baton::Hook;

static KEEP: Hook<fn(at: usize, value: usize, code: usize)> = Hook::new(|_, _, _| ());

/// From now on, passes such words to `keep`: their address, their value, and the code on which the value
/// depends.
pub fn plug_in(keep: fn(at: usize, value: usize, code: usize)) {
    KEEP.set(keep);
}

/// A word has got such a value. It stays valid as long as the code at that address does.
pub fn keep<T>(word: &T, value: usize, code: usize) {
    assert!(size_of::<T>() == size_of::<usize>());
    KEEP.get()(core::ptr::from_ref(word) as usize, value, code);
}
