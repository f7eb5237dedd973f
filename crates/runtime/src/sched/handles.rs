//! Handles: which thread has which `pthread_t`. A `pthread_t` is the address of the thread's control block.

use super::{symmetry, thread};
use crate::platform::baton::Guarded;
use core::cell::Cell;
use heisen_wire::MAX_THREADS;

/// Twice the largest number of threads.
const HANDLES: usize = 2 * MAX_THREADS;

/// A table of thread numbers plus 1, hashed by address, with linear probing.
// Page-aligned, as `sched::Sched`.
#[repr(C, align(4096))]
struct Handles([Cell<u16>; HANDLES]);

static NUMBERS: Guarded<Handles> = Guarded::new(Handles([const { Cell::new(0) }; HANDLES]));

/// The thread with this `pthread_t`, for a caller that refers to this particular thread.
pub fn thread_of_handle(handle: usize) -> Option<usize> {
    find(handle).inspect(|&number| symmetry::named(number))
}

/// The thread with this `pthread_t`.
pub fn find(handle: usize) -> Option<usize> {
    let found = place_of_handle(handle).get();
    (found != 0 && handle != 0).then(|| found as usize - 1)
}

/// The entry of a control block in the table, or the entry where it would be. There is always an empty entry,
/// because the table is larger than the number of threads.
fn place_of_handle(fs: usize) -> &'static Cell<u16> {
    // Control blocks of threads lie side by side, or at the ends of stacks of the same size. Either way their
    // entries are close together, so few pages are written.
    let mut at = (fs >> 6) ^ (fs >> 20);
    loop {
        let place = &NUMBERS.0[at % HANDLES];
        if place.get() == 0 || thread(place.get() as usize - 1).fs.get() == fs {
            return place;
        }
        at += 1;
    }
}

/// Enters a thread. Its control block is never freed, so entries remain valid.
pub fn remember_handle(fs: usize, number: usize) {
    place_of_handle(fs).set(number as u16 + 1);
}
