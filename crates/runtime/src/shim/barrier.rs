//! Barriers. Who has arrived is the scheduler's knowledge: the threads in the barrier's queue. Of glibc's object only
//! the number of threads is read.

use super::shims;
use crate::race::order;
use crate::{report, sched, touch};
use core::ffi::c_int;
use heisen_trace::{Note, Op};
use heisen_wire::misuse;

/// Words of `pthread_barrier_t`.
const COUNT: usize = 2;
const SHARED: usize = 3;
/// PTHREAD_BARRIER_SERIAL_THREAD.
const SERIAL: c_int = -1;

fn read(barrier: usize, word: usize) -> u32 {
    // SAFETY: the program passes a barrier.
    unsafe { *(barrier as *const u32).add(word) }
}

shims! {
    /// Waits until as many threads as the barrier was made for have arrived; the last to arrive enables the others
    /// and is the serial one.
    fn pthread_barrier_wait(barrier: usize) -> c_int = pc {
        if read(barrier, SHARED) != 0 {
            report::note(Note::ProcessShared);
        }
        sched::point(Op::Barrier, barrier, pc);
        order::release(barrier);
        let arrived = sched::waiters(barrier, sched::ANY) + 1;
        if arrived < read(barrier, COUNT) as usize {
            sched::wait_in_queue(Op::Barrier, barrier, sched::ANY, pc, u64::MAX);
            return 0;
        }
        for (number, t) in sched::threads() {
            if t.queue.get() == barrier {
                order::acquire_for(number, barrier);
                sched::take_off(number, Op::Barrier, 0, true);
            }
        }
        order::acquire(barrier);
        SERIAL
    }

    /// No scheduling point. To destroy a barrier at which a thread waits is a misuse.
    fn pthread_barrier_destroy(barrier: usize) -> c_int = pc {
        touch::destroys(barrier);
        if sched::awaited(barrier) {
            report::misused(misuse::DESTROY_WAITED, barrier, pc);
        }
        0
    }
}
