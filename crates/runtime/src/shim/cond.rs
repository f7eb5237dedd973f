//! Condition variables. The object's own memory is not used: who waits is the scheduler's knowledge. To wait is two
//! steps: give up the mutex and queue up; once woken, take the mutex again when it is free. Which waiter a signal wakes
//! is a decision, as POSIX leaves it open; so is, where the user asks for it, whether a wait may end without one.

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

/// Where glibc keeps the flags of a condition variable, and the bits that name its clock and sharing.
const FLAGS: usize = 36;
const SHARED: u32 = 1;
const MONOTONIC: u32 = 2;
const CLOCK_MONOTONIC: c_int = 1;
/// Where the mark of one that is destroyed is: `__g_size`.
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

/// The woken thread goes on as soon as its mutex is free.
pub fn wake(number: usize) {
    let mutex = sched::thread(number).relock.get();
    sched::take_off(number, Op::Relock, mutex, Mutex::at(mutex).free_for(number));
}

/// Whether a thread waits on a condition variable and will want this mutex afterwards.
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
    /// Gives the mutex up and waits to be woken, then until the mutex is free again: two steps, and a cancellation
    /// point. Refused with `EPERM` if a recursive or error-checking mutex is not held.
    fn pthread_cond_wait(cond: usize, mutex: usize) -> c_int = pc { wait(cond, mutex, Op::CondWait, pc, u64::MAX) }

    /// As `pthread_cond_wait`; that the time runs out before a signal comes is a decision, and gives `ETIMEDOUT`. A
    /// time that is none gives `EINVAL`.
    fn pthread_cond_timedwait(cond: usize, mutex: usize, until: *const Timespec) -> c_int = pc {
        let clock = if flags(cond) & MONOTONIC != 0 { CLOCK_MONOTONIC } else { 0 };
        timed_wait(cond, mutex, clock, until, pc)
    }

    /// As `pthread_cond_timedwait`, on the clock given; other clocks than the real-time and the monotonic one give
    /// `EINVAL`.
    fn pthread_cond_clockwait(cond: usize, mutex: usize, clock: c_int, until: *const Timespec) -> c_int = pc {
        timed_wait(cond, mutex, clock, until, pc)
    }

    /// Wakes one waiter, which goes on as soon as its mutex is free; which of several is a decision.
    fn pthread_cond_signal(cond: usize) -> c_int = pc {
        signal(cond, pc);
        0
    }

    /// Wakes all waiters; each goes on as soon as its mutex is free.
    fn pthread_cond_broadcast(cond: usize) -> c_int = pc {
        broadcast(cond, pc);
        0
    }

    /// No scheduling point. To destroy a condition variable on which a thread waits is a misuse, and so is any use of one
    /// that was destroyed.
    fn pthread_cond_destroy(cond: usize) -> c_int = pc {
        destroy(cond, pc);
        0
    }
}
