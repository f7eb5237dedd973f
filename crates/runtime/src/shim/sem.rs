//! POSIX semaphores. The value stands where glibc stores it, in the low half of the first word.

use super::{cancel, destroyed, shims};
use crate::memory::race::order;
use crate::platform::glibc::real;
use crate::platform::{glibc, sys};
use crate::sched::clock;
use crate::sched::clock::Timespec;
use crate::sched::pause;
use crate::sched::{self, Signals, Woken};
use crate::sched::{decision, dependence, operation_log, spin};
use crate::wire_log;
use core::cell::Cell;
use core::ffi::c_int;
use heisen_trace::{Fault, Note, Op};
use heisen_wire::misuse;

const MAX: u32 = i32::MAX as u32;
/// The offset of the mark of a destroyed semaphore: the number of waiters, which only glibc uses.
const MARK: usize = 4;

#[repr(C)]
struct Semaphore {
    value: Cell<u32>,
    waiters: Cell<u32>,
    private: Cell<i32>,
}

fn at(address: usize) -> &'static Semaphore {
    // SAFETY: the program passes a semaphore.
    let semaphore: &Semaphore = unsafe { &*(address as *const Semaphore) };
    if semaphore.private.get() != 0 {
        wire_log::note(Note::ProcessShared);
    }
    semaphore
}

fn take(semaphore: usize) {
    order::acquire(semaphore);
    let value = &at(semaphore).value;
    value.set(value.get() - 1);
    if value.get() == 0 {
        sched::taken(semaphore);
    }
}

fn wait(semaphore: usize, op: Op, pc: usize, deadline: u64) -> c_int {
    // A signal always interrupts a wait with a time-out, even if its handler asks for a restart.
    destroyed::check(semaphore, MARK, pc);
    let signals = if deadline == u64::MAX { Signals::Restart } else { Signals::Interrupt };
    let free = || at(semaphore).value.get() > 0;
    let wait = || sched::wait_for_interruptibly(op, semaphore, pc, free, deadline, signals);
    match cancel::waiting_point(wait) {
        Woken::TimedOut => glibc::result(sys::ETIMEDOUT),
        Woken::Interrupted => glibc::result(sys::EINTR),
        Woken::Ready => {
            take(semaphore);
            0
        }
    }
}

fn timed_wait(semaphore: usize, clock: c_int, until: *const Timespec, pc: usize) -> c_int {
    if !clock::can_wait(clock) {
        return glibc::result(sys::EINVAL);
    }
    // SAFETY: the program passes a time.
    let Some(nanos) = (unsafe { (*until).nanos() }) else { return glibc::result(sys::EINVAL) };
    wait(semaphore, Op::SemTimedWait, pc, clock::deadline_at(clock, nanos))
}

shims! {
    /// Sets the value. Not a scheduling point.
    fn sem_init(semaphore: usize, shared: c_int, value: u32) -> c_int = pc {
        let result = real!(sem_init, fn(semaphore => usize, shared => c_int, value => u32) -> c_int);
        if result == 0 {
            operation_log::initialises(semaphore, pc);
        }
        result
    }

    /// Waits until the value is above 0, then subtracts 1.
    fn sem_wait(semaphore: usize) -> c_int = pc { wait(semaphore, Op::SemWait, pc, u64::MAX) }

    /// A scheduling point; never waits. Fails with `EAGAIN` if the value is 0.
    fn sem_trywait(semaphore: usize) -> c_int = pc {
        spin::attempt(Op::SemTryWait, semaphore, pc);
        destroyed::check(semaphore, MARK, pc);
        let free = at(semaphore).value.get() > 0;
        dependence::tried(Op::SemTryWait, semaphore, pc, free);
        if !free || decision::fault(Fault::TryLock) {
            spin::failed();
            return glibc::result(sys::EAGAIN);
        }
        take(semaphore);
        0
    }

    /// As `sem_wait`. Whether the time-out fires first is a decision; it then fails with `ETIMEDOUT`. An
    /// invalid time fails with `EINVAL`.
    fn sem_timedwait(semaphore: usize, until: *const Timespec) -> c_int = pc { timed_wait(semaphore, 0, until, pc) }

    /// As `sem_timedwait`, on the given clock. Only the real-time and the monotonic clock are valid; others
    /// fail with `EINVAL`.
    fn sem_clockwait(semaphore: usize, clock: c_int, until: *const Timespec) -> c_int = pc {
        timed_wait(semaphore, clock, until, pc)
    }

    /// Adds 1 and enables the waiting threads; the one that runs first takes it. Beyond the greatest value it
    /// fails with `EOVERFLOW`.
    fn sem_post(semaphore: usize) -> c_int = pc {
        sched::point(Op::SemPost, semaphore, pc);
        destroyed::check(semaphore, MARK, pc);
        let value = &at(semaphore).value;
        if value.get() == MAX {
            return glibc::result(sys::EOVERFLOW);
        }
        value.set(value.get() + 1);
        order::release(semaphore);
        sched::freed(semaphore);
        0
    }

    /// Reads the value. A scheduling point.
    fn sem_getvalue(semaphore: usize, out: *mut c_int) -> c_int = pc {
        sched::point(Op::SemGetValue, semaphore, pc);
        destroyed::check(semaphore, MARK, pc);
        // SAFETY: the program passes room for the value.
        unsafe { *out = at(semaphore).value.get() as c_int };
        0
    }

    /// Destroying a semaphore on which a thread waits is a misuse, and so is any use of a destroyed one. Not a
    /// scheduling point.
    fn sem_destroy(semaphore: usize) -> c_int = pc {
        dependence::destroys(semaphore);
        if sched::awaited(semaphore) {
            pause::misused(misuse::DESTROY_WAITED, semaphore, pc);
        } else {
            destroyed::destroy(semaphore, MARK, pc);
        }
        0
    }
}
