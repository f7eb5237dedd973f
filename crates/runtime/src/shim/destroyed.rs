//! The mark of a destroyed synchronisation object, by which later uses are found. It stands in a word of the
//! object that every initialisation sets to 0 and that nothing else in the runtime writes. Mutexes do not need
//! it: glibc marks them itself.

use crate::sched::pause;
use core::cell::Cell;
use heisen_wire::misuse;

const MARK: u32 = 0x6465_7374;

/// The word of an object that holds the mark.
fn word(object: usize, place: usize) -> &'static Cell<u32> {
    // SAFETY: the program passes an object, and the caller a place inside of it.
    unsafe { &*((object + place) as *const Cell<u32>) }
}

/// Marks the object as destroyed. Destroying it twice is a misuse.
pub fn destroy(object: usize, place: usize, pc: usize) {
    check(object, place, pc);
    word(object, place).set(MARK);
}

/// Checks a use of the object: if it was destroyed, reports a misuse. This removes the mark, so each
/// destruction is reported once.
#[inline(always)]
pub fn check(object: usize, place: usize, pc: usize) {
    if word(object, place).get() == MARK {
        word(object, place).set(0);
        pause::misused(misuse::USE_DESTROYED, object, pc);
    }
}
