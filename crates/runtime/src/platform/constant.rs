//! Words of the runtime whose value is expensive to compute and the same in all executions, such as addresses
//! of functions.
//!
//! A runner restores memory after each execution. The snapshot code plugs in here, and does not restore these
//! words.

use core::cell::Cell;

struct Hook(Cell<fn(at: usize, value: usize, code: usize)>);

// SAFETY: written once, before there is a second thread; only read from then on.
unsafe impl Sync for Hook {}

static KEEP: Hook = Hook(Cell::new(|_, _, _| ()));

/// From now on, passes such words to `keep`: their address, their value, and the code on which the value
/// depends.
pub fn plug_in(keep: fn(at: usize, value: usize, code: usize)) {
    KEEP.0.set(keep);
}

/// A word has got such a value. It stays valid as long as the code at that address does.
pub fn keep<T>(word: &T, value: usize, code: usize) {
    assert!(size_of::<T>() == size_of::<usize>());
    KEEP.0.get()(core::ptr::from_ref(word) as usize, value, code);
}
