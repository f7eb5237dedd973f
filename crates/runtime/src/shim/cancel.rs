//! Cancellation. A request is a bit of the thread that it is for. The thread looks at it at each cancellation point that
//! is intercepted; one that waits at such a point is enabled by the request. It then ends as by the real `pthread_exit`,
//! which unwinds its stack: clean-up handlers, destructors of C++ objects, then those of thread-local variables and keys.
//!
//! Whether cancellation is enabled is also told to glibc, so that a forked child finds it true. Asynchronous
//! cancellation would have to strike between any two instructions, and is refused.

use super::shims;
use crate::memory::race::order;
use crate::platform::glibc::real;
use crate::platform::sys;
use crate::sched::dependence;
use crate::sched::handles;
use crate::sched::object_key::key;
use crate::sched::object_key::space;
use crate::sched::{self, me, thread};
use crate::wire_log;
use core::ffi::c_int;
use heisen_trace::{Note, Op};

/// Bits of `Thread::cancel`.
const DISABLED: u8 = 1;
/// It was asked to end.
const PENDING: u8 = 2;
/// It ends already: no further request counts.
const EXITING: u8 = 4;
/// It is in a wait that a request ends.
const WAITING: u8 = 8;
/// A request has ended its wait.
const WOKEN: u8 = 16;

/// PTHREAD_CANCELED.
const CANCELED: usize = usize::MAX;
const PTHREAD_CANCEL_DISABLE: c_int = 1;
const PTHREAD_CANCEL_ASYNCHRONOUS: c_int = 1;

/// Whether the running thread is to end here.
#[inline]
pub fn due() -> bool {
    dependence::read(key(space::CANCEL, me()));
    thread(me()).cancel.get() & (DISABLED | PENDING | EXITING) == PENDING
}

/// A cancellation point of the running thread: does not return if it was cancelled. Whatever the caller has taken must
/// have been given back.
#[inline]
pub fn point() {
    if due() {
        act();
    }
}

/// Runs a wait of the scheduler's that a request ends. Afterwards the caller has to look whether it is [`due`].
#[inline]
pub fn wait<R>(wait: impl FnOnce() -> R) -> R {
    let flags = &thread(me()).cancel;
    flags.set(flags.get() & !WOKEN | WAITING);
    let result = wait();
    // A request would have ended the wait, if it had come before this.
    dependence::read(key(space::CANCEL, me()));
    flags.set(flags.get() & !WAITING);
    result
}

/// A cancellation point at which the thread waits, with nothing to give back.
#[inline]
pub fn waiting_point<R>(inner: impl FnOnce() -> R) -> R {
    point();
    let result = wait(inner);
    point();
    result
}

/// Whether the last wait was ended by a request, and not by what was waited for.
pub fn woken() -> bool {
    thread(me()).cancel.get() & WOKEN != 0
}

/// The running thread ends: requests are of no effect from here on.
pub fn exiting() {
    let flags = &thread(me()).cancel;
    flags.set(flags.get() | EXITING);
}

/// Ends the running thread. The stack is unwound through the frames of the intercepted function, too: they have
/// unwind tables and nothing to clean up.
#[cold]
#[inline(never)]
pub fn act() -> ! {
    order::acquire(key(space::CANCEL, me()));
    exiting();
    thread(me()).result.set(CANCELED);
    real!(pthread_exit, fn(CANCELED => usize) -> ());
    unreachable!()
}

/// Lets a thread go on that waits at a cancellation point. If what it waits for has come already, it stays with that: a
/// signal of a condition variable must not be lost.
fn wake(number: usize) {
    let t = thread(number);
    if t.relock.get() == 0 {
        sched::release(number);
    } else if t.queue.get() != 0 {
        super::cond::wake(number);
    } else {
        return;
    }
    t.cancel.set(t.cancel.get() | WOKEN);
}

shims! {
    /// Asks a thread to end; enables it if it waits at a cancellation point. A scheduling point.
    fn pthread_cancel(handle: usize) -> c_int = pc {
        let Some(number) = handles::thread_of_handle(handle) else { return sys::ESRCH };
        sched::point(Op::Cancel, handle, pc);
        let t = thread(number);
        let flags = t.cancel.get();
        if t.ended.get() || flags & (PENDING | EXITING) != 0 {
            return 0;
        }
        t.cancel.set(flags | PENDING);
        dependence::write(key(space::CANCEL, number));
        order::release(key(space::CANCEL, number));
        if flags & (DISABLED | WAITING) == WAITING {
            wake(number);
        }
        0
    }

    /// A cancellation point and nothing else; a scheduling point.
    fn pthread_testcancel() -> () = pc {
        sched::point(Op::TestCancel, 0, pc);
        point();
    }

    /// Whether requests count or wait; no scheduling point.
    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int = pc {
        let result = real!(pthread_setcancelstate, fn(state => c_int, old => *mut c_int) -> c_int);
        if result == 0 {
            let flags = &thread(me()).cancel;
            let disabled = if state == PTHREAD_CANCEL_DISABLE { DISABLED } else { 0 };
            flags.set(flags.get() & !DISABLED | disabled);
        }
        result
    }

    /// Refuses asynchronous cancellation with `ENOTSUP`; no scheduling point.
    fn pthread_setcanceltype(kind: c_int, old: *mut c_int) -> c_int = pc {
        if kind == PTHREAD_CANCEL_ASYNCHRONOUS {
            wire_log::note(Note::AsyncCancel);
            return sys::EOPNOTSUPP;
        }
        real!(pthread_setcanceltype, fn(kind => c_int, old => *mut c_int) -> c_int)
    }
}
