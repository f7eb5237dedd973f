//! Condition variables. The scheduler knows which threads wait; the object's own memory is not used. A wait is
//! two steps: release the mutex and enter the queue; once woken, take the mutex again when no thread holds it.
//! Which waiter a signal wakes is a decision, as POSIX leaves it open. With `--spurious`, it is also a decision
//! whether a wait ends without a signal.

use super::mutex::Mutex;
use super::{cancel, destroyed, shims};
use crate::platform::sys;
use crate::sched::clock;
use crate::sched::clock::Timespec;
use crate::sched::decision;
use crate::sched::dependence;
use crate::sched::events;
use crate::sched::pause;
use crate::sched::{self, Left};
use crate::wire_log;
use core::ffi::c_int;
use heisen_trace::{Note, Op};
use heisen_wire::misuse;

/// The offset of a condition variable's flags in glibc, and the flags for sharing between processes and for its
/// clock.
const FLAGS: usize = 36;
const SHARED: u32 = 1;
const MONOTONIC: u32 = 2;
const CLOCK_MONOTONIC: c_int = 1;
/// The offset of the mark of a destroyed condition variable: glibc's `__g_size`.
const MARK: usize = 24;

fn flags(cond: usize) -> u32 {
    // SAFETY: the program passes a condition variable.
    unsafe { *((cond + FLAGS) as *const u32) }
}

pub fn wait(cond: usize, mutex: usize, op: Op, pc: usize, deadline: u64) -> c_int {
    if flags(cond) & SHARED != 0 {
        wire_log::note(Note::ProcessShared);
    }
    let m = Mutex::at(mutex);
    sched::point(op, cond, pc);
    destroyed::check(cond, MARK, pc);
    cancel::point();
    let error = m.check_held(pc);
    if error != 0 {
        return error;
    }
    sched::thread(sched::me()).relock.set(mutex);
    m.unlock(pc);
    events::event(Op::Unlock, mutex, pc);
    let left = cancel::wait(|| sched::sleep_in_queue(op, cond, sched::ANY, pc, deadline));
    sched::thread(sched::me()).relock.set(0);
    match left {
        Left::TimedOut => events::timed_out(op, cond, pc),
        Left::Spuriously => events::event(Op::Spurious, cond, pc),
        _ => {}
    }
    let locked = m.relock(pc, left == Left::Woken);
    if left == Left::Woken {
        events::event(Op::Relock, mutex, pc);
    }
    if cancel::woken() {
        cancel::act();
    }
    if locked == 0 && left == Left::TimedOut { sys::ETIMEDOUT } else { locked }
}

pub fn timed_wait(cond: usize, mutex: usize, clock: c_int, until: *const Timespec, pc: usize) -> c_int {
    if !clock::can_wait(clock) {
        return sys::EINVAL;
    }
    // SAFETY: the program passes a time.
    let Some(nanos) = (unsafe { (*until).nanos() }) else { return sys::EINVAL };
    wait(cond, mutex, Op::CondTimedWait, pc, clock::deadline_at(clock, nanos))
}

/// Wakes a thread: it is enabled once no thread holds its mutex.
pub fn wake(number: usize) {
    let mutex = sched::thread(number).relock.get();
    sched::take_off(number, Op::Relock, mutex, Mutex::at(mutex).free_for(number));
}

/// Whether a thread that waits on a condition variable will take this mutex afterwards.
pub fn comes_back_to(mutex: usize) -> bool {
    sched::threads().any(|(_, t)| t.relock.get() == mutex)
}

pub fn signal(cond: usize, pc: usize) {
    sched::point(Op::CondSignal, cond, pc);
    destroyed::check(cond, MARK, pc);
    if sched::waiters(cond, sched::ANY) > 0 {
        wake(decision::choose_waiter(cond, sched::ANY));
    }
}

pub fn broadcast(cond: usize, pc: usize) {
    sched::point(Op::CondBroadcast, cond, pc);
    destroyed::check(cond, MARK, pc);
    for (number, t) in sched::threads() {
        if t.queue.get() == cond {
            wake(number);
        }
    }
}

pub fn destroy(cond: usize, pc: usize) {
    dependence::destroys(cond);
    if sched::awaited(cond) {
        pause::misused(misuse::DESTROY_WAITED, cond, pc);
        return;
    }
    destroyed::destroy(cond, MARK, pc);
}

shims! {
    /// Releases the mutex and waits to be woken, then waits until it can take the mutex again: two steps, and a
    /// cancellation point. Fails with `EPERM` if the mutex is recursive or error-checking and the thread does
    /// not hold it.
    fn pthread_cond_wait(cond: usize, mutex: usize) -> c_int = pc { wait(cond, mutex, Op::CondWait, pc, u64::MAX) }

    /// As `pthread_cond_wait`. Whether the time-out fires before a signal comes is a decision; it then returns
    /// `ETIMEDOUT`. An invalid time gives `EINVAL`.
    fn pthread_cond_timedwait(cond: usize, mutex: usize, until: *const Timespec) -> c_int = pc {
        let clock = if flags(cond) & MONOTONIC != 0 { CLOCK_MONOTONIC } else { 0 };
        timed_wait(cond, mutex, clock, until, pc)
    }

    /// As `pthread_cond_timedwait`, on the given clock. Only the real-time and the monotonic clock are valid;
    /// others give `EINVAL`.
    fn pthread_cond_clockwait(cond: usize, mutex: usize, clock: c_int, until: *const Timespec) -> c_int = pc {
        timed_wait(cond, mutex, clock, until, pc)
    }

    /// Wakes one waiter, which continues once it can take its mutex. Which of several waiters wakes is a
    /// decision.
    fn pthread_cond_signal(cond: usize) -> c_int = pc {
        signal(cond, pc);
        0
    }

    /// Wakes all waiters. Each continues once it can take its mutex.
    fn pthread_cond_broadcast(cond: usize) -> c_int = pc {
        broadcast(cond, pc);
        0
    }

    /// Destroying a condition variable on which a thread waits is a misuse, and so is any use of a destroyed
    /// one. Not a scheduling point.
    fn pthread_cond_destroy(cond: usize) -> c_int = pc {
        destroy(cond, pc);
        0
    }
}
