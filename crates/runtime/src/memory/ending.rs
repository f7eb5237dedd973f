//! The end of memory: a block is freed, or pages are unmapped or protected.
//!
//! That conflicts with every earlier access to the memory: in another order the access would fail. Later accesses need no
//! comparison, since they do fail.

use crate::memory::race::{self, access, shadow};
use crate::memory::symbolic;
use crate::sched::{SCHED, dependence, me, pause};
use crate::wire_log;
use heisen_trace::Op;

/// Logs that the running thread ends this memory by this operation, in a close-up and in the symbolic trace.
#[inline]
pub fn log(op: Op, address: usize, size: usize, pc: usize) {
    if wire_log::logs_accesses() {
        wire_log::ended((SCHED.step.get(), me() as u16, op), (address, size), pc);
        pause::at_event(address);
    }
    symbolic::ends(op, address, size, pc);
}

/// The running thread ends this memory.
#[inline]
pub fn end(address: usize, size: usize, pc: usize) {
    conflict(address, size, true, pc);
    // The old shadow memory would hide this thread's own later accesses.
    shadow::renew(address, size);
}

/// The running thread makes a block smaller, or larger.
pub fn shrink(address: usize, (old, new): (usize, usize), pc: usize) {
    if new < old {
        log(Op::Free, address + new, old - new, pc);
        conflict(address + new, old - new, true, pc);
        // The block may grow again. Its last granule may still be in use.
        let end = (address + new).next_multiple_of(8);
        shadow::renew(end, (address + old).saturating_sub(end));
    }
}

/// For the race check, the end of memory is a write, so that an unordered access to it becomes a scheduling point. If only
/// later writes fail, it is a read.
#[inline]
pub fn conflict(address: usize, size: usize, write: bool, pc: usize) {
    if !race::is_on(race::mode::CHECK) {
        return;
    }
    // Earlier accesses of others must not count as independent of this. There is nothing to say about other memory: it may
    // be another thread's next block.
    let is_point = race::is_atomic_point(pc);
    shadow::each_accessed(address, size, |at, granule| {
        if is_point && granule.is_accessed_by_others(me()) {
            dependence::memory(at, 8, write);
        }
        access::end(granule, at, (address, size), write, pc);
    });
}
