//! Handles: which thread has which `pthread_t`, the address of its control block.

use super::{symmetry, thread};
use crate::platform::baton::Guarded;
use core::cell::Cell;
use heisen_wire::MAX_THREADS;

/// Twice as many places as there can be threads.
const HANDLES: usize = 2 * MAX_THREADS;

/// A table of thread numbers plus 1, hashed by address, with linear probing.
// As for `sched::Sched`.
#[repr(C, align(4096))]
struct Handles([Cell<u16>; HANDLES]);

static H: Guarded<Handles> = Guarded::new(Handles([const { Cell::new(0) }; HANDLES]));

/// The thread whose `pthread_t` this is, for somebody who means this one and no other.
pub fn thread_of_handle(handle: usize) -> Option<usize> {
    find(handle).inspect(|&number| symmetry::named(number))
}

/// The thread whose `pthread_t` this is.
pub fn find(handle: usize) -> Option<usize> {
    let found = place_of_handle(handle).get();
    (found != 0 && handle != 0).then(|| found as usize - 1)
}

/// Where in the table a control block is, or would be. There is always a free place, as threads are fewer.
fn place_of_handle(fs: usize) -> &'static Cell<u16> {
    // Blocks of threads lie side by side, or at the ends of stacks of the same size: either way they are near each other here,
    // and few pages are written.
    let mut at = (fs >> 6) ^ (fs >> 20);
    loop {
        let place = &H.0[at % HANDLES];
        if place.get() == 0 || thread(place.get() as usize - 1).fs.get() == fs {
            return place;
        }
        at += 1;
    }
}

/// A thread's control block is never freed, so what is in the table stays right.
pub fn remember_handle(fs: usize, number: usize) {
    place_of_handle(fs).set(number as u16 + 1);
}
