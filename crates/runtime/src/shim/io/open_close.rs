//! Descriptors that come and go: what each of them is has to be known before it is used.

use crate::blocking::descriptors;
use crate::blocking::descriptors::Class;
use crate::blocking::timer_descriptors;
use crate::platform::glibc;
use crate::platform::glibc::real;
use crate::platform::sys;
use crate::sched;
use crate::shim::shims;
use crate::wire_log;
use core::ffi::c_int;
use heisen_trace::{Note, Op};

/// Remembers a descriptor that was just made; passes an error on.
pub fn made(fd: c_int, class: Class) -> c_int {
    descriptors::set_class(fd, class);
    descriptors::set_socket(fd, false);
    fd
}

/// Remembers a pair of descriptors, if making them has succeeded.
fn made_pair(pair: *const [c_int; 2], result: c_int) -> c_int {
    if result == 0 {
        // SAFETY: the real function has just filled it.
        for fd in unsafe { *pair } {
            made(fd, Class::Inside);
        }
    }
    result
}

/// A copy of `old` was made as `new`, or an error.
fn copied(old: c_int, new: c_int) -> c_int {
    if new >= 0 && new != old {
        descriptors::copy_class(old, new);
        descriptors::set_socket(new, descriptors::is_socket(old));
        descriptors::touched();
    }
    new
}

/// A way to talk is about to be closed: those at the other end will see that.
fn closes(fd: c_int, pc: usize) {
    sched::point(Op::Close, fd as usize, pc);
    timer_descriptors::closed(fd, fd);
    descriptors::touched();
}

/// As [`closes`] for what `new` is before it becomes a copy of `old`.
fn replaces(old: c_int, new: c_int, pc: usize) {
    if new >= 0 && new != old && descriptors::class(new).talks() {
        closes(new, pc);
    }
}

/// As [`closes`] for a range of descriptors, whatever they are.
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
    /// A scheduling point if the descriptor is a way to talk: those that wait at the other end see its end.
    fn close(fd: c_int) -> c_int = pc {
        if fd >= 0 && descriptors::class(fd).talks() {
            closes(fd, pc);
        }
        descriptors::set_class(fd, Class::Unknown);
        real!(close, fn(fd => c_int) -> c_int)
    }

    /// Closes all descriptors of a range; a scheduling point, as `close` is.
    fn close_range(first: u32, last: u32, flags: c_int) -> c_int = pc {
        const CLOSE_RANGE_CLOEXEC: c_int = 4;
        if flags & CLOSE_RANGE_CLOEXEC == 0 {
            closes_range(first, last, pc);
        }
        real!(close_range, fn(first => u32, last => u32, flags => c_int) -> c_int)
    }

    /// Closes all descriptors from one on; a scheduling point, as `close` is.
    fn closefrom(first: c_int) -> () = pc {
        closes_range(first.max(0) as u32, u32::MAX, pc);
        real!(closefrom, fn(first => c_int) -> ())
    }

    /// Not a scheduling point. The copy is waited for as the original is.
    fn dup(old: c_int) -> c_int = pc { copied(old, real!(dup, fn(old => c_int) -> c_int)) }

    /// The copy is waited for as the original is. What it replaces is closed as by `close`.
    fn dup2(old: c_int, new: c_int) -> c_int = pc {
        replaces(old, new, pc);
        copied(old, real!(dup2, fn(old => c_int, new => c_int) -> c_int))
    }

    /// The copy is waited for as the original is. What it replaces is closed as by `close`.
    fn dup3(old: c_int, new: c_int, flags: c_int) -> c_int = pc {
        replaces(old, new, pc);
        copied(old, real!(dup3, fn(old => c_int, new => c_int, flags => c_int) -> c_int))
    }

    /// Copies as `dup` does; waits for a lock on a file aside, so that other threads go on; else passed on.
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

    /// Not a scheduling point. Both ends are known to be in the program, so a wait that nobody there can end is a deadlock.
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

    /// Tells of signals from other processes that all threads block; those that the program sends itself do not arrive
    /// there, which the verdict says.
    fn signalfd(fd: c_int, set: usize, flags: c_int) -> c_int = pc {
        wire_log::note(Note::SignalFd);
        made(real!(signalfd, fn(fd => c_int, set => usize, flags => c_int) -> c_int), Class::Outside)
    }

    /// Not a scheduling point. Makes a counter that threads wait for with `read`, `poll` and `epoll`.
    fn eventfd(value: u32, flags: c_int) -> c_int = pc {
        made(real!(eventfd, fn(value => u32, flags => c_int) -> c_int), Class::Inside)
    }

    /// As `read` of the counter.
    fn eventfd_read(fd: c_int, value: *mut u64) -> c_int = pc { whole(super::stream::read_at(fd, value as usize, 8, pc)) }

    /// As `write` of the counter.
    fn eventfd_write(fd: c_int, value: u64) -> c_int = pc {
        whole(super::stream::write_at(fd, &raw const value as usize, 8, pc))
    }

    /// Not a scheduling point. What is added to it later is waited for with `epoll_wait`.
    fn epoll_create(size: c_int) -> c_int = pc {
        made(real!(epoll_create, fn(size => c_int) -> c_int), Class::Epoll)
    }

    /// As `epoll_create`.
    fn epoll_create1(flags: c_int) -> c_int = pc {
        made(real!(epoll_create1, fn(flags => c_int) -> c_int), Class::Epoll)
    }
}

/// 0 if all eight bytes of a counter were handed over; `errno` is set already if they were not.
fn whole(moved: isize) -> c_int {
    if moved == 8 {
        return 0;
    }
    if moved >= 0 {
        glibc::set_errno(sys::EINVAL);
    }
    -1
}
