//! The mark of a synchronisation object that was destroyed: in a word of it that is 0 while it is in use, as every
//! initialisation sets it and nothing of the runtime does. Mutexes need none: glibc marks them itself.

use crate::sched::pause;
use core::cell::Cell;
use heisen_wire::misuse;

const MARK: u32 = 0x6465_7374;

/// The word of an object that holds the mark.
fn word(object: usize, place: usize) -> &'static Cell<u32> {
    // SAFETY: the program passes an object, and the caller a place inside of it.
    unsafe { &*((object + place) as *const Cell<u32>) }
}

/// The object is destroyed. A second time is a use of it.
pub fn destroy(object: usize, place: usize, pc: usize) {
    check(object, place, pc);
    word(object, place).set(MARK);
}

/// The object is used: if it was destroyed, that is a misuse. It is told once, and the object is as before.
#[inline(always)]
pub fn check(object: usize, place: usize, pc: usize) {
    if word(object, place).get() == MARK {
        word(object, place).set(0);
        pause::misused(misuse::USE_DESTROYED, object, pc);
    }
}
