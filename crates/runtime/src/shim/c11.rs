//! C11 threads, mutexes and condition variables. In glibc they are the POSIX objects, reached by internal
//! calls. The functions here call the code of the POSIX functions, and return its error numbers as C11 results.

use super::{cond, detours, mutex, pthread, shims, time};
use crate::memory::symbolic;
use crate::platform::glibc::Real;
use crate::platform::sys;
use crate::sched;
use crate::sched::clock::Timespec;
use core::ffi::c_int;
use heisen_trace::Op;

const SUCCESS: c_int = 0;
const BUSY: c_int = 1;
const ERROR: c_int = 2;
const NO_MEMORY: c_int = 3;
const TIMED_OUT: c_int = 4;
const ENOMEM: c_int = 12;
/// Results of `thrd_sleep`: a signal ended it, or the time is invalid.
const INTERRUPTED: c_int = -1;
const BAD_TIME: c_int = -2;

/// The C11 result for an error number, as glibc maps it.
fn code(error: c_int) -> c_int {
    match error {
        0 => SUCCESS,
        sys::EBUSY => BUSY,
        sys::ETIMEDOUT => TIMED_OUT,
        ENOMEM => NO_MEMORY,
        _ => ERROR,
    }
}

static REAL_EXIT: Real = Real::new(c"thrd_exit");

detours! {
    /// Ends the thread. The real function unwinds the stack, as `pthread_exit` does.
    fn thrd_exit = before_exit;
}

extern "C" fn before_exit(result: c_int) -> usize {
    pthread::keep_result(result as usize);
    REAL_EXIT.address()
}

shims! {
    /// As `pthread_create`.
    fn thrd_create(out: *mut usize, start: usize, arg: usize) -> c_int = pc {
        code(pthread::create(out, 0, start, arg, pc))
    }

    /// As `pthread_join`.
    fn thrd_join(handle: usize, result: *mut c_int) -> c_int = pc {
        let mut value = 0;
        let joined = pthread::join(handle, &raw mut value, u64::MAX, pc);
        if joined == 0 && !result.is_null() {
            // SAFETY: the program passes room for the result, or null.
            unsafe { *result = value as c_int };
            symbolic::moved(result as usize, &raw const value as usize, size_of::<c_int>(), pc);
        }
        code(joined)
    }

    /// As `pthread_detach`.
    fn thrd_detach(handle: usize) -> c_int = pc { code(pthread::detach(handle, pc)) }

    /// As `nanosleep`.
    fn thrd_sleep(time: *const Timespec, remaining: *mut Timespec) -> c_int = pc {
        match time::sleep_for(time, remaining, pc) {
            0 => SUCCESS,
            sys::EINTR => INTERRUPTED,
            _ => BAD_TIME,
        }
    }

    /// As `sched_yield`.
    fn thrd_yield() -> () = pc { sched::yield_point(Op::Yield, pc) }

    /// As `pthread_mutex_lock`.
    fn mtx_lock(mutex: usize) -> c_int = pc { code(mutex::lock(mutex, Op::Lock, pc, u64::MAX)) }

    /// As `pthread_mutex_trylock`.
    fn mtx_trylock(mutex: usize) -> c_int = pc { code(mutex::try_lock(mutex, pc)) }

    /// As `pthread_mutex_timedlock`.
    fn mtx_timedlock(mutex: usize, until: *const Timespec) -> c_int = pc {
        code(mutex::timed_lock(mutex, 0, until, pc))
    }

    /// As `pthread_mutex_unlock`.
    fn mtx_unlock(mutex: usize) -> c_int = pc { code(mutex::unlock(mutex, pc)) }

    /// As `pthread_mutex_destroy`.
    fn mtx_destroy(mutex: usize) -> () = pc {
        mutex::destroy(mutex, pc);
    }

    /// As `pthread_cond_wait`.
    fn cnd_wait(cond: usize, mutex: usize) -> c_int = pc { code(cond::wait(cond, mutex, Op::CondWait, pc, u64::MAX)) }

    /// As `pthread_cond_timedwait`.
    fn cnd_timedwait(cond: usize, mutex: usize, until: *const Timespec) -> c_int = pc {
        code(cond::timed_wait(cond, mutex, 0, until, pc))
    }

    /// As `pthread_cond_signal`.
    fn cnd_signal(cond: usize) -> c_int = pc {
        cond::signal(cond, pc);
        SUCCESS
    }

    /// As `pthread_cond_broadcast`.
    fn cnd_broadcast(cond: usize) -> c_int = pc {
        cond::broadcast(cond, pc);
        SUCCESS
    }

    /// As `pthread_cond_destroy`.
    fn cnd_destroy(cond: usize) -> () = pc { cond::destroy(cond, pc) }
}
