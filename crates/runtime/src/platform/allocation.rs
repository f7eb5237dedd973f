//! The byte that says what an allocation of the program must do in addition: an ordinary allocation reads only
//! this.

use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// The bits [`MAY_FAIL`], [`HEAP`], [`FOLLOWED`].
pub static ALLOCATION: AtomicU8 = AtomicU8::new(0);
/// The allocation must ask `sched::faults` whether it fails.
pub const MAY_FAIL: u8 = 1;
/// The checked heap serves the allocation.
pub const HEAP: u8 = 2;
/// The race check must know that the memory is reused.
pub const FOLLOWED: u8 = 4;

/// Whether a bit is set.
#[inline]
pub fn has(bit: u8) -> bool {
    ALLOCATION.load(Relaxed) & bit != 0
}

/// From now on, the race check follows allocations.
pub fn follow() {
    ALLOCATION.store(ALLOCATION.load(Relaxed) | FOLLOWED, Relaxed);
}

/// From now on, memory comes from the checked heap.
pub fn serve_heap() {
    ALLOCATION.store(ALLOCATION.load(Relaxed) | HEAP, Relaxed);
}

/// Sets whether allocations may fail; returns the previous setting.
pub fn set_may_fail(may: bool) -> bool {
    let before = ALLOCATION.load(Relaxed);
    ALLOCATION.store(if may { before | MAY_FAIL } else { before & !MAY_FAIL }, Relaxed);
    before & MAY_FAIL != 0
}

/// Runs work of the runtime itself, whose allocations do not fail on purpose.
pub fn without_faults<T>(work: impl FnOnce() -> T) -> T {
    let may = set_may_fail(false);
    let done = work();
    set_may_fail(may);
    done
}
