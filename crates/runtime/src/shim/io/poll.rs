//! Waiting for several descriptors: `poll`, `select`, `epoll` and their variants.

use super::Piece;
use crate::blocking::descriptors;
use crate::blocking::descriptors::{POLLIN, POLLOUT, PollFd};
use crate::blocking::input_log;
use crate::blocking::input_log::{Kind, Out};
use crate::platform::glibc;
use crate::platform::glibc::real;
use crate::platform::sys;
use crate::sched::Woken;
use crate::sched::clock;
use crate::sched::clock::Timespec;
use crate::sched::events;
use crate::sched::spin;
use crate::shim::signal::{self, Delivered, mask};
use crate::shim::{cancel, shims};
use core::ffi::c_int;
use heisen_trace::Op;

/// How long to wait, and with which signals blocked.
#[derive(Clone, Copy)]
struct Wish {
    at_once: bool,
    deadline: u64,
    /// The signals that the thread blocks during the wait; null if they do not change.
    mask: *const u64,
}

/// The deadline of a wait of `millis` milliseconds; a negative number waits for ever.
fn deadline_in_millis(millis: c_int) -> u64 {
    if millis < 0 { u64::MAX } else { clock::deadline_in(millis as u64 * 1_000_000) }
}

fn wish_of_millis(millis: c_int, mask: *const u64) -> Wish {
    Wish { at_once: millis == 0, deadline: deadline_in_millis(millis), mask }
}

/// The deadline of a wait for a time; null waits for ever. `None` if the time is invalid.
pub fn deadline_in_time(time: *const Timespec) -> Option<u64> {
    if time.is_null() {
        return Some(u64::MAX);
    }
    // SAFETY: the program passes a time, or null.
    unsafe { (*time).nanos_not_negative() }.map(clock::deadline_in)
}

/// Whether the wait is not to block.
fn is_zero(time: *const Timespec) -> bool {
    // SAFETY: the program passes a time, or null.
    !time.is_null() && unsafe { ((*time).seconds, (*time).nanoseconds) == (0, 0) }
}

/// Calls `ask`, which never blocks, until something is ready; waits for `fds` in between.
fn until_ready(fds: &[PollFd], wish: Wish, pc: usize, ask: impl Fn() -> isize) -> c_int {
    cancel::point();
    spin::attempt(Op::Poll, fds.first().map_or(0, |fd| fd.fd as usize), pc);
    let wait = |masked| {
        loop {
            let got = ask();
            if got != 0 {
                descriptors::hears(descriptors::NOBODY);
                return glibc::kernel_result(got) as c_int;
            }
            let mut woken = Woken::TimedOut;
            if masked && signal::deliver() != Delivered::Nothing {
                return interrupted();
            }
            if !wish.at_once {
                woken = cancel::waiting_point(|| descriptors::wait(Op::Poll, fds, pc, wish.deadline));
            }
            match woken {
                Woken::Ready => {}
                Woken::Interrupted if signal::deliver() == Delivered::Nothing => {}
                Woken::Interrupted => return interrupted(),
                Woken::TimedOut => {
                    spin::failed();
                    return 0;
                }
            }
        }
    };
    // SAFETY: the program passes a set of signals, or null.
    match unsafe { wish.mask.as_ref() } {
        Some(&mask) => mask::with(mask, || wait(true)),
        None => wait(false),
    }
}

fn interrupted() -> c_int {
    events::failed();
    glibc::result(sys::EINTR)
}

fn polls<'a>(fds: usize, count: usize) -> &'a [PollFd] {
    if fds == 0 || count == 0 {
        return &[];
    }
    // SAFETY: the program passes so many of them.
    unsafe { core::slice::from_raw_parts(fds as *const PollFd, count) }
}

fn poll_until(fds: usize, count: usize, wish: Wish, pc: usize) -> c_int {
    let whole = [Piece { base: fds, length: count.saturating_mul(size_of::<PollFd>()) }];
    let out = Out { fixed: &whole, ..Out::default() };
    until_ready(polls(fds, count), wish, pc, || {
        input_log::through(Kind::Poll, 0, out, || sys::poll(fds, count, 0))
    })
}

fn poll_millis(fds: usize, count: usize, millis: c_int, pc: usize) -> c_int {
    poll_until(fds, count, wish_of_millis(millis, core::ptr::null()), pc)
}

fn poll_time(fds: usize, count: usize, time: *const Timespec, mask: *const u64, pc: usize) -> c_int {
    match deadline_in_time(time) {
        Some(deadline) => poll_until(fds, count, Wish { at_once: is_zero(time), deadline, mask }, pc),
        None => glibc::result(sys::EINVAL),
    }
}

/// The number of descriptors in an `fd_set`.
const SET_SIZE: usize = 1024;
const FEW: usize = 64;
type Set = [u64; SET_SIZE / 64];

/// `select`, on sets that may be null. Larger sets go to the real function.
fn select_until(count: c_int, sets: [*mut Set; 3], wish: Wish, pc: usize) -> c_int {
    if count as usize <= FEW {
        select_with(&mut [PollFd::default(); FEW], count, sets, wish, pc)
    } else {
        select_many(count, sets, wish, pc)
    }
}

/// A function of its own, so that a thread with a small stack does not need room for a large set.
#[inline(never)]
fn select_many(count: c_int, sets: [*mut Set; 3], wish: Wish, pc: usize) -> c_int {
    select_with(&mut [PollFd::default(); SET_SIZE], count, sets, wish, pc)
}

fn select_with(fds: &mut [PollFd], count: c_int, sets: [*mut Set; 3], wish: Wish, pc: usize) -> c_int {
    const POLLPRI: i16 = 2;
    let words = (count.max(0) as usize).div_ceil(64);
    let mut wanted: [Set; 3] = [[0; SET_SIZE / 64]; 3];
    for (wanted, set) in wanted.iter_mut().zip(sets) {
        if !set.is_null() {
            // SAFETY: the program passes sets of at least `count` bits, in full words, or null.
            wanted[..words].copy_from_slice(unsafe { &(&*set)[..words] });
        }
    }
    let mut used = 0;
    for fd in 0..count.max(0) as usize {
        let has = |set: &Set| set[fd / 64] >> (fd % 64) & 1 != 0;
        let mut events = 0;
        for (set, event) in wanted.iter().zip([POLLIN, POLLOUT, POLLPRI]) {
            events |= if has(set) { event } else { 0 };
        }
        if events != 0 {
            fds[used] = PollFd { fd: fd as c_int, events, revents: 0 };
            used += 1;
        }
    }
    let ask = || {
        for (wanted, set) in wanted.iter().zip(sets) {
            if !set.is_null() {
                // SAFETY: as above. The kernel has cleared bits, and they are asked for again.
                unsafe { (&mut *set)[..words].copy_from_slice(&wanted[..words]) };
            }
        }
        let zero = Timespec { seconds: 0, nanoseconds: 0 };
        let [read, write, except] = sets.map(|set| set as usize);
        let whole = sets.map(|set| Piece { base: set as usize, length: 8 * words });
        input_log::through(Kind::Poll, 0, Out { fixed: &whole, ..Out::default() }, || {
            sys::call(sys::SYS_PSELECT6, [count as usize, read, write, except, &raw const zero as usize, 0])
        })
    };
    until_ready(&fds[..used], wish, pc, ask)
}

fn epoll(epoll: c_int, events: usize, most: c_int, wish: Wish, pc: usize) -> c_int {
    let fds = [PollFd { fd: epoll, events: POLLIN, revents: 0 }];
    let args = [epoll as usize, events, most as usize, 0, 0, 8];
    const EVENT: usize = 12;
    let counted = [Piece { base: events, length: EVENT * most.max(0) as usize }];
    let out = Out { counted: &counted, unit: EVENT, ..Out::default() };
    let ask = || input_log::through(Kind::Poll, epoll, out, || sys::call(sys::SYS_EPOLL_PWAIT, args));
    until_ready(&fds, wish, pc, ask)
}

shims! {
    /// Waits until one of the descriptors is ready. Whether the time-out, on the virtual clock, fires first is
    /// a decision.
    fn poll(fds: usize, count: usize, millis: c_int) -> c_int = pc { poll_millis(fds, count, millis, pc) }

    /// As `poll`, for programs compiled with `_FORTIFY_SOURCE`.
    fn __poll_chk(fds: usize, count: usize, millis: c_int, size: usize) -> c_int = pc {
        if size / size_of::<PollFd>() < count {
            return real!(__poll_chk, fn(
                fds => usize, count => usize, millis => c_int, size => usize
            ) -> c_int);
        }
        poll_millis(fds, count, millis, pc)
    }

    /// As `poll`, with other signals blocked during the wait.
    fn ppoll(fds: usize, count: usize, time: *const Timespec, mask: *const u64) -> c_int = pc {
        poll_time(fds, count, time, mask, pc)
    }

    /// As `ppoll`, for programs compiled with `_FORTIFY_SOURCE`.
    fn __ppoll_chk(fds: usize, count: usize, time: *const Timespec, mask: *const u64, size: usize) -> c_int = pc {
        if size / size_of::<PollFd>() < count {
            return real!(__ppoll_chk, fn(
                fds => usize, count => usize, time => *const Timespec, mask => *const u64, size => usize
            ) -> c_int);
        }
        poll_time(fds, count, time, mask, pc)
    }

    /// As `poll`, for sets of descriptors.
    fn select(count: c_int, read: *mut Set, write: *mut Set, except: *mut Set, time: *mut Timespec) -> c_int = pc {
        if count as usize > SET_SIZE {
            return real!(select, fn(
                count => c_int, read => *mut Set, write => *mut Set, except => *mut Set, time => *mut Timespec
            ) -> c_int);
        }
        let (mut deadline, mut at_once) = (u64::MAX, false);
        if !time.is_null() {
            // SAFETY: the program passes a `struct timeval`, two words as a timespec, or null.
            let Timespec { seconds, nanoseconds: micros } = unsafe { *time };
            if seconds < 0 || micros < 0 {
                return glibc::result(sys::EINVAL);
            }
            at_once = (seconds, micros) == (0, 0);
            deadline = clock::deadline_in((seconds as u64).saturating_mul(1_000_000_000) + micros as u64 * 1_000);
        }
        let wish = Wish { at_once, deadline, mask: core::ptr::null() };
        let got = select_until(count, [read, write, except], wish, pc);
        if !time.is_null() && got >= 0 {
            // Linux returns the remaining time.
            let left = Timespec::of(deadline.saturating_sub(clock::now()));
            // SAFETY: as above.
            unsafe { *time = Timespec { seconds: left.seconds, nanoseconds: left.nanoseconds / 1_000 } };
        }
        got
    }

    /// As `select`, with other signals blocked during the wait.
    fn pselect(
        count: c_int, read: *mut Set, write: *mut Set, except: *mut Set, time: *const Timespec, mask: *const u64
    ) -> c_int = pc {
        if count as usize > SET_SIZE {
            return real!(pselect, fn(
                count => c_int, read => *mut Set, write => *mut Set, except => *mut Set, time => *const Timespec,
                mask => *const u64
            ) -> c_int);
        }
        match deadline_in_time(time) {
            Some(deadline) => {
                let wish = Wish { at_once: is_zero(time), deadline, mask };
                select_until(count, [read, write, except], wish, pc)
            }
            None => glibc::result(sys::EINVAL),
        }
    }

    /// As `poll`, for the descriptors in the epoll set.
    fn epoll_wait(fd: c_int, events: usize, most: c_int, millis: c_int) -> c_int = pc {
        epoll(fd, events, most, wish_of_millis(millis, core::ptr::null()), pc)
    }

    /// As `epoll_wait`, with other signals blocked during the wait.
    fn epoll_pwait(fd: c_int, events: usize, most: c_int, millis: c_int, mask: *const u64) -> c_int = pc {
        epoll(fd, events, most, wish_of_millis(millis, mask), pc)
    }

    /// As `epoll_pwait`, with the time-out in nanoseconds.
    fn epoll_pwait2(fd: c_int, events: usize, most: c_int, time: *const Timespec, mask: *const u64) -> c_int = pc {
        match deadline_in_time(time) {
            Some(deadline) => epoll(fd, events, most, Wish { at_once: is_zero(time), deadline, mask }, pc),
            None => glibc::result(sys::EINVAL),
        }
    }

    /// Changes the epoll set. A new descriptor may be ready already, so waiting threads check again.
    fn epoll_ctl(fd: c_int, command: c_int, other: c_int, event: usize) -> c_int = pc {
        descriptors::says(descriptors::NOBODY);
        let result = real!(epoll_ctl, fn(fd => c_int, command => c_int, other => c_int, event => usize) -> c_int);
        if result == 0 {
            descriptors::added_to_epoll(other);
        }
        result
    }
}
