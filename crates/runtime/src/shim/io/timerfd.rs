//! `timerfd_create` and related functions: timers on virtual time that are read from a descriptor.

use super::open_close::made;
use crate::blocking::descriptors::{self, Class};
use crate::blocking::interval_timer::{Setting, deadline_of};
use crate::blocking::timer_descriptors::{find, unused};
use crate::platform::glibc;
use crate::platform::glibc::real;
use crate::platform::sys;
use crate::sched;
use crate::sched::clock;
use crate::shim::shims;
use crate::wire_log;
use core::ffi::c_int;
use heisen_trace::{Note, Op};

const TFD_TIMER_ABSTIME: c_int = 1;
/// The error if there are too many timers.
const EMFILE: i32 = 24;

shims! {
    /// Creates a timer on virtual time. It fires once virtual time reaches its deadline: by passing it, or by a
    /// jump when no thread can run. Not a scheduling point.
    fn timerfd_create(clock: c_int, flags: c_int) -> c_int = pc {
        let Some(timer) = unused() else { return glibc::result(EMFILE) };
        // The real function checks the arguments.
        let fd = real!(timerfd_create, fn(clock => c_int, flags => c_int) -> c_int);
        if fd < 0 {
            return fd;
        }
        sys::close(fd);
        let fd = real!(eventfd, fn(0 => u32, flags => c_int) -> c_int);
        if fd >= 0 {
            timer.open(fd, clock);
        }
        made(fd, Class::Inside)
    }

    /// Arms or disarms the timer. A scheduling point.
    fn timerfd_settime(fd: c_int, flags: c_int, new: *const Setting, old: *mut Setting) -> c_int = pc {
        let Some(timer) = find(fd) else {
            return real!(timerfd_settime, fn(
                fd => c_int, flags => c_int, new => *const Setting, old => *mut Setting
            ) -> c_int);
        };
        // SAFETY: the program passes a setting.
        let Some((value, interval)) = unsafe { *new }.nanos() else { return glibc::result(sys::EINVAL) };
        sched::point(Op::TimerFd, fd as usize, pc);
        if !old.is_null() {
            // SAFETY: the program passes room for a setting, or null.
            unsafe { *old = Setting::of(timer.time().left()) };
        }
        timer.take_count();
        if value != 0 && !clock::is_real() {
            wire_log::note(Note::TimerFd);
        }
        timer.arm(deadline_of(timer.clock(), value, flags & TFD_TIMER_ABSTIME != 0), interval);
        descriptors::touched();
        0
    }

    /// Returns the remaining virtual time of the timer. Not a scheduling point.
    fn timerfd_gettime(fd: c_int, out: *mut Setting) -> c_int = pc {
        match find(fd) {
            // SAFETY: the program passes room for a setting.
            Some(timer) => unsafe { *out = Setting::of(timer.time().left()) },
            None => return real!(timerfd_gettime, fn(fd => c_int, out => *mut Setting) -> c_int),
        }
        0
    }
}
