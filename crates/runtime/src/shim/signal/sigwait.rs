//! Waiting for signals.

use super::deliver::deliver_but;
use super::pending;
use super::{Delivered, bit, deliver, is_valid, mask, outside};
use crate::platform::glibc;
use crate::platform::sys;
use crate::platform::sys::Info;
use crate::sched::clock;
use crate::sched::clock::Timespec;
use crate::sched::events;
use crate::sched::{self, Woken, me, thread};
use crate::shim::{cancel, shims};
use core::ffi::c_int;
use heisen_trace::Op;

/// The signals of the set that the running thread could take at once, as `sigwait` would. For other ways to
/// wait for them, such as a descriptor.
pub fn takable(set: u64) -> u64 {
    (pending::set_of(me()) | sys::signals_pending()) & set
}

/// Takes a pending signal of the set for the running thread.
pub fn take(set: u64) -> Option<Info> {
    outside::take_from_kernel(set);
    pending::take(me(), set)
}

/// Waits for a signal of the set. Returns an error number if the time-out fires or a handler of another signal
/// has run.
fn wait_for(set: u64, deadline: u64, pc: usize) -> Result<Info, c_int> {
    let t = thread(me());
    sched::point(Op::SigWait, 0, pc);
    cancel::point();
    loop {
        if let Some(info) = take(set) {
            return Ok(info);
        }
        if clock::until(deadline) == 0 {
            events::failed();
            return Err(sys::EAGAIN);
        }
        t.awaits.set(set);
        let woken = cancel::wait(|| sched::wait_for_signal(Op::SigWait, pc, deadline));
        t.awaits.set(0);
        cancel::point();
        if woken == Woken::TimedOut {
            events::timed_out(Op::SigWait, 0, pc);
            return Err(sys::EAGAIN);
        }
        // A signal that the thread waits for is not handled.
        if deliver_but(set) != Delivered::Nothing {
            return take(set).ok_or(sys::EINTR);
        }
    }
}

/// Waits until a handler has run or the thread is cancelled; the caller must check for cancellation.
fn suspend(pc: usize) {
    while !cancel::due() && deliver() == Delivered::Nothing {
        cancel::wait(|| sched::wait_for_signal(Op::SigWait, pc, u64::MAX));
    }
}

/// Ends a wait after a handler has run or the thread was cancelled.
fn suspended() -> c_int {
    cancel::point();
    glibc::result(sys::EINTR)
}

/// Waits with another mask.
fn suspend_with(set: u64, pc: usize) -> c_int {
    sched::point(Op::SigWait, 0, pc);
    mask::with(set, || suspend(pc));
    suspended()
}

fn read(set: *const u64) -> u64 {
    // SAFETY: the program passes a set.
    mask::blockable(unsafe { *set })
}

fn timed_wait(set: *const u64, out: *mut Info, deadline: u64, pc: usize) -> c_int {
    match wait_for(read(set), deadline, pc) {
        Ok(info) => {
            if !out.is_null() {
                // SAFETY: the program passes room for one, or null.
                unsafe { *out = info };
            }
            info.signal
        }
        Err(error) => glibc::result(error),
    }
}

shims! {
    /// Waits until a signal of the set is pending, and takes it.
    fn sigwait(set: *const u64, out: *mut c_int) -> c_int = pc {
        let info = loop {
            match wait_for(read(set), u64::MAX, pc) {
                Ok(info) => break info,
                Err(_interrupted) => {}
            }
        };
        // SAFETY: the program passes room for the number.
        unsafe { *out = info.signal };
        0
    }

    /// As `sigwait`; a handler of another signal interrupts it.
    fn sigwaitinfo(set: *const u64, out: *mut Info) -> c_int = pc { timed_wait(set, out, u64::MAX, pc) }

    /// As `sigwaitinfo`; whether the time-out fires first is a decision.
    fn sigtimedwait(set: *const u64, out: *mut Info, timeout: *const Timespec) -> c_int = pc {
        // SAFETY: the program passes a time, or null.
        let deadline = match unsafe { timeout.as_ref() } {
            None => u64::MAX,
            Some(time) => match time.nanos_not_negative() {
                Some(nanos) => clock::deadline_in(nanos),
                None => return glibc::result(sys::EINVAL),
            },
        };
        timed_wait(set, out, deadline, pc)
    }

    /// Sets another mask and waits until a handler has run.
    fn sigsuspend(set: *const u64) -> c_int = pc { suspend_with(read(set), pc) }

    /// Waits until a handler has run.
    fn pause() -> c_int = pc {
        sched::point(Op::SigWait, 0, pc);
        suspend(pc);
        suspended()
    }

    /// As `sigsuspend`, with a set of 32 signals.
    fn sigpause(set: c_int) -> c_int = pc { suspend_with(set as u32 as u64, pc) }

    /// As `sigsuspend`, with one signal unblocked.
    fn __xpg_sigpause(signal: c_int) -> c_int = pc {
        if !is_valid(signal) {
            return glibc::result(sys::EINVAL);
        }
        suspend_with(mask::of_running() & !bit(signal), pc)
    }

    /// Returns the signals that are pending for the thread or the process and that the thread blocks. Not a
    /// scheduling point.
    fn sigpending(out: *mut u64) -> c_int = pc {
        let set = takable(mask::of_running());
        // SAFETY: the program passes room for a set.
        unsafe { *out = set };
        0
    }
}
