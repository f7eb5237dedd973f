//! The results of threads. A thread writes its result to an address of its own, and who joins it reads it there. So the
//! trace needs no other sort of event.

use super::inputs;
use super::traffic::{self, Access};
use crate::platform::program_memory;
use crate::sched::me;

/// No program has memory at addresses with this bit.
const RESULTS: u64 = 1 << 62;

/// Where the result of a thread lies in traces: it depends on the place of the thread in the tree of creation, and not on
/// its number, which the schedule decides.
fn of(thread: usize, pc: usize) -> Access {
    let address = RESULTS | inputs::key(thread) << 3 & (RESULTS - 1);
    Access { address: address as usize, size: 8, pc }
}

/// The running thread ends with this result.
pub fn leaves(id: u32, result: usize) {
    of(me(), 0).leaves(id, result as u64);
}

/// The running thread has taken the result of another one into this place.
pub fn takes(thread: usize, place: usize, pc: usize) {
    let result = program_memory::load(place, 8);
    let id = of(thread, pc).takes(result);
    traffic::wrote(Access { address: place, size: 8, pc }, id, result);
}
