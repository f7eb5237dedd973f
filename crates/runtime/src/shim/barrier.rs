//! Barriers. Who has arrived is the scheduler's knowledge: the threads in the barrier's queue. Of glibc's object only
//! the number of threads is read.
//!
//! To arrive and to go on are two steps of every thread, also of the last one, so that it makes no difference who that is but
//! for the result. As in glibc, the last to arrive is the serial one. POSIX leaves open which it is.

use super::{destroyed, ignored, shims};
use crate::memory::race::order;
use crate::memory::tsan::code;
use crate::platform::glibc::real;
use crate::sched::dependence;
use crate::sched::dependence::arrivals;
use crate::sched::pause;
use crate::sched::{self, Gives, me, thread};
use crate::wire_log;
use core::ffi::c_int;
use heisen_trace::{Note, Op};
use heisen_wire::misuse;

/// Words of `pthread_barrier_t`.
const COUNT: usize = 2;
const SHARED: usize = 3;
/// Where the mark of one that is destroyed is: the number of threads that have come in, for glibc.
const MARK: usize = 0;
/// A word behind those that glibc uses: [`IN_USE`] from the initialisation on, until the barrier is destroyed.
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

/// Whether it is initialised already. Only known of variables of the program: memory of other kinds may have been another
/// barrier's, which nobody destroyed before the memory was given back.
fn is_in_use(barrier: usize) -> bool {
    read(barrier, STATE) == IN_USE && code::is_variable(barrier)
}

shims! {
    /// No scheduling point. To initialise a barrier at which a thread waits is a misuse, and so is to initialise a variable
    /// twice without `pthread_barrier_destroy` in between.
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

    /// Waits until as many threads as the barrier was made for have arrived; the last to arrive enables the others
    /// and is the serial one. A scheduling point before it arrives, and one before it goes on. A barrier that is not initialised is
    /// a misuse.
    fn pthread_barrier_wait(barrier: usize) -> c_int = pc {
        if read(barrier, SHARED) != 0 {
            wire_log::note(Note::ProcessShared);
        }
        sched::point(Op::Barrier, barrier, pc);
        destroyed::check(barrier, MARK, pc);
        // None is made for no thread.
        if read(barrier, COUNT) == 0 {
            pause::misused(misuse::NOT_INITIALISED, barrier, pc);
        }
        let round = arrivals::arrives(barrier, pc, || !ignored::is_ignored(pc));
        order::release(barrier);
        let arrived = sched::waiters(barrier, sched::ANY) + 1;
        if arrived < read(barrier, COUNT) as usize {
            sched::wait_in_queue(Op::Barrier, barrier, sched::ANY, pc, u64::MAX);
            arrivals::leaves(barrier, round);
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
        sched::reschedule(Gives::Able);
        arrivals::leaves(barrier, round);
        SERIAL
    }

    /// No scheduling point. To destroy a barrier at which a thread waits is a misuse, and so is any use of one that was
    /// destroyed.
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
