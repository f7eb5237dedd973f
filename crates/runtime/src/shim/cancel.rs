//! Cancellation. A request is a bit of the thread that it is for. The thread looks at the bit at each
//! intercepted cancellation point; a request enables a thread that waits at such a point. The cancelled thread
//! then ends by the real `pthread_exit`, which unwinds its stack. That runs clean-up handlers and destructors
//! of C++ objects, then those of thread-local variables and keys.
//!
//! glibc is also informed whether cancellation is enabled, so that a forked child sees the right state.
//! Asynchronous cancellation would have to strike between any two instructions; the shim refuses it.

use super::shims;
use crate::memory::race::order;
use crate::memory::symbolic;
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
/// Another thread asked it to end.
const PENDING: u8 = 2;
/// It is ending: further requests have no effect.
const EXITING: u8 = 4;
/// It is in a wait that a request ends.
const WAITING: u8 = 8;
/// A request ended its wait.
const WOKEN: u8 = 16;

/// PTHREAD_CANCELED.
const CANCELED: usize = usize::MAX;
const PTHREAD_CANCEL_DISABLE: c_int = 1;
const PTHREAD_CANCEL_ASYNCHRONOUS: c_int = 1;

/// Whether the running thread must end here.
#[inline]
pub fn due() -> bool {
    dependence::read(key(space::CANCEL, me()));
    thread(me()).cancel.get() & (DISABLED | PENDING | EXITING) == PENDING
}

/// A cancellation point of the running thread: does not return if the thread was cancelled. The caller must
/// have released everything that it took.
#[inline]
pub fn point() {
    if due() {
        act();
    }
}

/// Runs a wait of the scheduler that a request ends. Afterwards the caller must check whether cancellation is
/// [`due`].
#[inline]
pub fn wait<R>(wait: impl FnOnce() -> R) -> R {
    let flags = &thread(me()).cancel;
    flags.set(flags.get() & !WOKEN | WAITING);
    let result = wait();
    // The wait depends on requests: one that came earlier would have ended it.
    dependence::read(key(space::CANCEL, me()));
    flags.set(flags.get() & !WAITING);
    result
}

/// A cancellation point at which the thread waits, where the caller has nothing to release.
#[inline]
pub fn waiting_point<R>(inner: impl FnOnce() -> R) -> R {
    point();
    let result = wait(inner);
    point();
    result
}

/// Whether a request ended the last wait, instead of the awaited condition.
pub fn woken() -> bool {
    thread(me()).cancel.get() & WOKEN != 0
}

/// The running thread ends: requests have no effect from here on.
pub fn exiting() {
    let flags = &thread(me()).cancel;
    flags.set(flags.get() | EXITING);
}

/// Ends the running thread. The unwinder also passes the frames of the intercepted function: they have unwind
/// tables and nothing to clean up.
#[cold]
#[inline(never)]
pub fn act() -> ! {
    order::acquire(key(space::CANCEL, me()));
    exiting();
    thread(me()).result.set(CANCELED);
    symbolic::ends_with(CANCELED);
    real!(pthread_exit, fn(CANCELED => usize) -> ());
    unreachable!()
}

/// Enables a thread that waits at a cancellation point. If the awaited event has happened already, the thread
/// proceeds with that: a signal of a condition variable must not be lost.
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
    /// Asks a thread to end, and enables it if it waits at a cancellation point. A scheduling point.
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

    /// A cancellation point and a scheduling point.
    fn pthread_testcancel() -> () = pc {
        sched::point(Op::TestCancel, 0, pc);
        point();
    }

    /// Enables or disables cancellation. Requests that arrive while it is disabled stay pending. Not a
    /// scheduling point.
    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int = pc {
        let result = real!(pthread_setcancelstate, fn(state => c_int, old => *mut c_int) -> c_int);
        if result == 0 {
            let flags = &thread(me()).cancel;
            let disabled = if state == PTHREAD_CANCEL_DISABLE { DISABLED } else { 0 };
            flags.set(flags.get() & !DISABLED | disabled);
        }
        result
    }

    /// Refuses asynchronous cancellation with `ENOTSUP`, which is noted. Not a scheduling point.
    fn pthread_setcanceltype(kind: c_int, old: *mut c_int) -> c_int = pc {
        if kind == PTHREAD_CANCEL_ASYNCHRONOUS {
            wire_log::note(Note::AsyncCancel);
            return sys::EOPNOTSUPP;
        }
        real!(pthread_setcanceltype, fn(kind => c_int, old => *mut c_int) -> c_int)
    }
}
