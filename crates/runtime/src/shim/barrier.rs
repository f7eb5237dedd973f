//! Barriers. The scheduler knows which threads have arrived: they are in the barrier's queue. Of glibc's object
//! the shim reads only the number of threads.
//!
//! Arriving and leaving are two steps of every thread, also of the last one to arrive. Which thread arrives
//! last so changes nothing except the result. As in glibc, the last thread to arrive is the serial one; POSIX
//! leaves open which it is.

use super::{destroyed, ignored, shims};
use crate::memory::race::order;
use crate::memory::symbolic;
use crate::memory::tsan::code;
use crate::platform::glibc::real;
use crate::sched::dependence;
use crate::sched::dependence::arrivals;
use crate::sched::operation_log;
use crate::sched::pause;
use crate::sched::{self, Reason, me, thread};
use crate::wire_log;
use core::ffi::c_int;
use heisen_trace::{Note, Op};
use heisen_wire::misuse;

/// Words of `pthread_barrier_t`.
const COUNT: usize = 2;
const SHARED: usize = 3;
/// The offset of the mark of a destroyed barrier. For glibc this word is the number of threads that have
/// entered.
const MARK: usize = 0;
/// A word behind those that glibc uses. It is [`IN_USE`] from initialisation until the barrier is destroyed.
const STATE: usize = 6;
const IN_USE: u32 = 0x6261_7272;
/// PTHREAD_BARRIER_SERIAL_THREAD.
const SERIAL: c_int = -1;

fn read(barrier: usize, word: usize) -> u32 {
    // SAFETY: the program passes a barrier.
    unsafe { *(barrier as *const u32).add(word) }
}

fn set(barrier: usize, word: usize, value: u32) {
    // SAFETY: as above.
    unsafe { *(barrier as *mut u32).add(word) = value };
}

/// Whether the barrier is initialised already. This is only known for static variables of the program: other
/// memory may still hold a barrier that was not destroyed before the memory was released.
fn is_in_use(barrier: usize) -> bool {
    read(barrier, STATE) == IN_USE && code::is_variable(barrier)
}

/// The running thread goes on behind a barrier.
fn leaves(barrier: usize, last: bool, pc: usize) {
    if symbolic::is_on() {
        operation_log::leaves_barrier(barrier, last, !ignored::is_ignored(pc), pc);
    }
}

shims! {
    /// Initialising a barrier at which a thread waits is a misuse. So is initialising a static variable twice
    /// without `pthread_barrier_destroy` in between. Not a scheduling point.
    fn pthread_barrier_init(barrier: usize, attributes: usize, count: u32) -> c_int = pc {
        dependence::destroys(barrier);
        arrivals::forget(barrier);
        let twice = is_in_use(barrier);
        let result =
            real!(pthread_barrier_init, fn(barrier => usize, attributes => usize, count => u32) -> c_int);
        if result == 0 {
            if sched::awaited(barrier) {
                pause::misused(misuse::INIT_WAITED, barrier, pc);
            } else if twice {
                pause::misused(misuse::INIT_TWICE, barrier, pc);
            }
            set(barrier, STATE, IN_USE);
        }
        result
    }

    /// Waits until as many threads as the barrier was initialised for have arrived. The last thread to arrive
    /// enables the others and gets `PTHREAD_BARRIER_SERIAL_THREAD`. There is a scheduling point before the
    /// thread arrives, and one before it leaves. Using a barrier that is not initialised is a misuse.
    fn pthread_barrier_wait(barrier: usize) -> c_int = pc {
        if read(barrier, SHARED) != 0 {
            wire_log::note(Note::ProcessShared);
        }
        sched::point(Op::Barrier, barrier, pc);
        destroyed::check(barrier, MARK, pc);
        // No barrier is initialised for 0 threads.
        if read(barrier, COUNT) == 0 {
            pause::misused(misuse::NOT_INITIALISED, barrier, pc);
        }
        let round = arrivals::arrives(barrier, pc, || !ignored::is_ignored(pc));
        order::release(barrier);
        let arrived = sched::waiters(barrier, sched::ANY) + 1;
        if arrived < read(barrier, COUNT) as usize {
            sched::wait_in_queue(Op::Barrier, barrier, sched::ANY, pc, u64::MAX);
            arrivals::leaves(barrier, round);
            leaves(barrier, false, pc);
            return 0;
        }
        for (number, t) in sched::threads() {
            if t.queue.get() == barrier {
                order::acquire_for(number, barrier);
                sched::take_off_met(number, Op::Barrier);
            }
        }
        order::acquire(barrier);
        arrivals::met(barrier);
        thread(me()).about_to(Op::Barrier, barrier, pc);
        sched::reschedule(Reason::Preemptible);
        arrivals::leaves(barrier, round);
        leaves(barrier, true, pc);
        SERIAL
    }

    /// Destroying a barrier at which a thread waits is a misuse, and so is any use of a destroyed barrier. Not
    /// a scheduling point.
    fn pthread_barrier_destroy(barrier: usize) -> c_int = pc {
        dependence::destroys(barrier);
        arrivals::forget(barrier);
        if sched::awaited(barrier) {
            pause::misused(misuse::DESTROY_WAITED, barrier, pc);
        } else {
            destroyed::destroy(barrier, MARK, pc);
        }
        set(barrier, STATE, 0);
        0
    }
}
