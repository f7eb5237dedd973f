//! Opening and closing descriptors: records what kind each descriptor is before it is used.

use crate::blocking::descriptors;
use crate::blocking::descriptors::Class;
use crate::blocking::timer_descriptors;
use crate::memory::symbolic::marked;
use crate::platform::glibc;
use crate::platform::glibc::real;
use crate::platform::sys;
use crate::sched;
use crate::shim::shims;
use crate::wire_log;
use core::ffi::c_int;
use heisen_trace::{Note, Op};

/// Records the class of a new descriptor; passes an error on.
pub fn made(fd: c_int, class: Class) -> c_int {
    descriptors::set_class(fd, class);
    descriptors::set_socket(fd, false);
    fd
}

/// Records a pair of descriptors, if creating them succeeded.
fn made_pair(pair: *const [c_int; 2], result: c_int) -> c_int {
    if result == 0 {
        // SAFETY: the real function has just filled it.
        for fd in unsafe { *pair } {
            made(fd, Class::Inside);
        }
    }
    result
}

/// `new` is a copy of `old`, or an error.
fn copied(old: c_int, new: c_int) -> c_int {
    if new >= 0 && new != old {
        descriptors::copy_class(old, new);
        descriptors::set_socket(new, descriptors::is_socket(old));
        descriptors::touched();
    }
    new
}

/// A channel is about to be closed; threads at its other end will see that.
fn closes(fd: c_int, pc: usize) {
    sched::point(Op::Close, fd as usize, pc);
    timer_descriptors::closed(fd, fd);
    descriptors::touched();
}

/// As [`closes`], for the descriptor `new` before it becomes a copy of `old`.
fn replaces(old: c_int, new: c_int, pc: usize) {
    if new >= 0 && new != old && descriptors::class(new).talks() {
        closes(new, pc);
    }
}

/// As [`closes`], for a range of descriptors of any class.
fn closes_range(first: u32, last: u32, pc: usize) {
    sched::point(Op::Close, first as usize, pc);
    let number = |fd| c_int::try_from(fd).unwrap_or(c_int::MAX);
    timer_descriptors::closed(number(first), number(last));
    descriptors::forget(first, last);
    descriptors::touched();
}

const F_DUPFD: c_int = 0;
const F_DUPFD_CLOEXEC: c_int = 1030;

fn control(fd: c_int, command: c_int, argument: usize, pc: usize, real: impl Fn() -> c_int) -> c_int {
    match command {
        F_DUPFD | F_DUPFD_CLOEXEC => copied(fd, real()),
        _ if super::file_lock::waits(command) => super::file_lock::lock_range(fd, command, argument, pc),
        _ => real(),
    }
}

shims! {
    /// A scheduling point if the descriptor is a pipe, a socket or similar: threads that wait at its other end
    /// see that it was closed.
    fn close(fd: c_int) -> c_int = pc {
        if fd >= 0 && descriptors::class(fd).talks() {
            closes(fd, pc);
        }
        descriptors::set_class(fd, Class::Unknown);
        marked::uses();
        real!(close, fn(fd => c_int) -> c_int)
    }

    /// Closes a range of descriptors. A scheduling point.
    fn close_range(first: u32, last: u32, flags: c_int) -> c_int = pc {
        const CLOSE_RANGE_CLOEXEC: c_int = 4;
        if flags & CLOSE_RANGE_CLOEXEC == 0 {
            closes_range(first, last, pc);
        }
        real!(close_range, fn(first => u32, last => u32, flags => c_int) -> c_int)
    }

    /// Closes all descriptors from `first` on. A scheduling point.
    fn closefrom(first: c_int) -> () = pc {
        closes_range(first.max(0) as u32, u32::MAX, pc);
        real!(closefrom, fn(first => c_int) -> ())
    }

    /// Copies a descriptor; threads wait on the copy as on the original. Not a scheduling point.
    fn dup(old: c_int) -> c_int = pc { copied(old, real!(dup, fn(old => c_int) -> c_int)) }

    /// As `dup`. The descriptor that it replaces is closed as by `close`.
    fn dup2(old: c_int, new: c_int) -> c_int = pc {
        replaces(old, new, pc);
        copied(old, real!(dup2, fn(old => c_int, new => c_int) -> c_int))
    }

    /// As `dup2`.
    fn dup3(old: c_int, new: c_int, flags: c_int) -> c_int = pc {
        replaces(old, new, pc);
        copied(old, real!(dup3, fn(old => c_int, new => c_int, flags => c_int) -> c_int))
    }

    /// Copies a descriptor, as `dup`. Waits for a file lock, as `lockf`. Other commands go to the kernel
    /// unchanged.
    fn fcntl(fd: c_int, command: c_int, argument: usize) -> c_int = pc {
        control(fd, command, argument, pc, || {
            real!(fcntl, fn(fd => c_int, command => c_int, argument => usize) -> c_int)
        })
    }

    /// As `fcntl`.
    fn fcntl64(fd: c_int, command: c_int, argument: usize) -> c_int = pc {
        control(fd, command, argument, pc, || {
            real!(fcntl64, fn(fd => c_int, command => c_int, argument => usize) -> c_int)
        })
    }

    /// Creates a pipe. Both ends are known to be in the program, so a wait that no thread can end is a
    /// deadlock. Not a scheduling point.
    fn pipe(pair: *mut [c_int; 2]) -> c_int = pc {
        made_pair(pair, real!(pipe, fn(pair => *mut [c_int; 2]) -> c_int))
    }

    /// As `pipe`.
    fn pipe2(pair: *mut [c_int; 2], flags: c_int) -> c_int = pc {
        made_pair(pair, real!(pipe2, fn(pair => *mut [c_int; 2], flags => c_int) -> c_int))
    }

    /// As `pipe`.
    fn socketpair(domain: c_int, kind: c_int, protocol: c_int, pair: *mut [c_int; 2]) -> c_int = pc {
        made_pair(pair, real!(socketpair, fn(
            domain => c_int, kind => c_int, protocol => c_int, pair => *mut [c_int; 2]
        ) -> c_int))
    }

    /// Returns signals from other processes that all threads block. Signals that the program sends to itself do
    /// not arrive there, which is noted.
    fn signalfd(fd: c_int, set: usize, flags: c_int) -> c_int = pc {
        wire_log::note(Note::SignalFd);
        made(real!(signalfd, fn(fd => c_int, set => usize, flags => c_int) -> c_int), Class::Outside)
    }

    /// Creates a counter, for which threads wait with `read`, `poll` and `epoll`. Not a scheduling point.
    fn eventfd(value: u32, flags: c_int) -> c_int = pc {
        made(real!(eventfd, fn(value => u32, flags => c_int) -> c_int), Class::Inside)
    }

    /// As `read` of the counter.
    fn eventfd_read(fd: c_int, value: *mut u64) -> c_int = pc { whole(super::stream::read_at(fd, value as usize, 8, pc)) }

    /// As `write` of the counter.
    fn eventfd_write(fd: c_int, value: u64) -> c_int = pc {
        whole(super::stream::write_at(fd, &raw const value as usize, 8, pc))
    }

    /// Creates an epoll set, on which threads wait with `epoll_wait`. Not a scheduling point.
    fn epoll_create(size: c_int) -> c_int = pc {
        made(real!(epoll_create, fn(size => c_int) -> c_int), Class::Epoll)
    }

    /// As `epoll_create`.
    fn epoll_create1(flags: c_int) -> c_int = pc {
        made(real!(epoll_create1, fn(flags => c_int) -> c_int), Class::Epoll)
    }
}

/// 0 if all eight bytes of a counter were transferred; otherwise -1, with `errno` set.
fn whole(moved: isize) -> c_int {
    if moved == 8 {
        return 0;
    }
    if moved >= 0 {
        glibc::set_errno(sys::EINVAL);
    }
    -1
}
