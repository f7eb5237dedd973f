//! Input and output through channels: descriptors by which threads or processes communicate. See
//! `crate::blocking::descriptors` for how a thread waits.
//!
//! Each call is tried without blocking. If it would block, the thread waits until the descriptor is ready and
//! tries again. Calls on plain files go to the kernel unchanged: they end by themselves, and no thread waits
//! for them.

pub mod file_lock;
pub mod open_close;
pub mod poll;
pub mod socket;
pub mod stream;
pub mod sysv;
pub mod timerfd;

use crate::blocking::descriptors;
use crate::blocking::descriptors::PollFd;
use crate::platform::sys;
pub use crate::platform::sys::Piece;
use crate::sched::Woken;
use crate::sched::clock;
use crate::sched::events;
use crate::sched::{decision, spin};
use crate::shim::cancel;
use crate::shim::signal::{self, Delivered};
use core::ffi::c_int;
use heisen_trace::{Fault, Op};

/// The result of a call that would block.
pub const WOULD_BLOCK: isize = -(sys::EAGAIN as isize);

/// A call on one descriptor.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub op: Op,
    pub fd: c_int,
    /// What the descriptor must be ready for.
    pub events: i16,
    /// Whether the caller asked not to block.
    pub at_once: bool,
    /// The number of bytes, if the call may transfer fewer; else 0.
    pub length: usize,
    /// The socket option that limits how long the call may wait; 0 if there is none.
    pub timeout: c_int,
    pub pc: usize,
}

impl Call {
    /// Makes the call: a scheduling point, then `attempt`, which gets the number of bytes to transfer and never
    /// blocks. While it answers that it would block, the thread waits and tries again.
    pub fn make(&self, mut attempt: impl FnMut(usize) -> isize) -> isize {
        cancel::point();
        spin::attempt(self.op, self.fd as usize, self.pc);
        if let Some(error) = self.fault() {
            events::failed();
            return error;
        }
        let length = self.shortened();
        if self.events & descriptors::POLLOUT != 0 {
            descriptors::says(self.fd);
        }
        loop {
            let got = attempt(length);
            if got != WOULD_BLOCK {
                descriptors::touched();
                if self.events & descriptors::POLLIN != 0 {
                    descriptors::hears(self.fd);
                }
                if got < 0 {
                    events::failed();
                }
                return got;
            }
            if self.at_once || sys::is_nonblocking(self.fd) {
                spin::failed();
                return got;
            }
            match self.wait() {
                Woken::Ready => {}
                Woken::Interrupted if self.goes_on() => {}
                woken => {
                    events::failed();
                    return if woken == Woken::TimedOut { got } else { -(sys::EINTR as isize) };
                }
            }
        }
    }

    /// The error of a call that fails by `--faults`: EINTR if the call may block, else EAGAIN.
    fn fault(&self) -> Option<isize> {
        if !decision::faults_are_left() {
            return None;
        }
        let waits = !self.at_once && !sys::is_nonblocking(self.fd);
        let (fault, error) = if waits { (Fault::Eintr, sys::EINTR) } else { (Fault::Eagain, sys::EAGAIN) };
        decision::fault(fault).then_some(-(error as isize))
    }

    /// The number of bytes to transfer, which `--faults` may shorten.
    fn shortened(&self) -> usize {
        let fault = if self.op == Op::Read { Fault::ShortRead } else { Fault::ShortWrite };
        if self.length > 1 && decision::fault(fault) { self.length / 2 } else { self.length }
    }

    /// Waits until the descriptor is ready; a cancellation point.
    fn wait(&self) -> Woken {
        cancel::waiting_point(|| self.wait_for_it())
    }

    fn wait_for_it(&self) -> Woken {
        let fds = [PollFd { fd: self.fd, events: self.events, revents: 0 }];
        descriptors::wait(self.op, &fds, self.pc, self.deadline())
    }

    /// Runs the handlers of the signals that interrupted the wait; returns whether the wait continues. Like the
    /// kernel, it does not restart a call with a time-out.
    fn goes_on(&self) -> bool {
        match signal::deliver() {
            Delivered::Nothing => true,
            Delivered::Restart => self.deadline() == u64::MAX,
            Delivered::Interrupt => false,
        }
    }

    fn deadline(&self) -> u64 {
        if self.timeout == 0 {
            return u64::MAX;
        }
        let mut time = [0i64; 2];
        sys::socket_option(self.fd, self.timeout, &mut time);
        match time {
            [0, 0] => u64::MAX,
            [seconds, micros] => clock::deadline_in(seconds as u64 * 1_000_000_000 + micros as u64 * 1_000),
        }
    }

    /// As [`Call::make`], for a call that writes `total` bytes: if it may block, it continues until all are
    /// written. `attempt` gets the number of bytes written so far, and the largest allowed total.
    pub fn make_complete(&self, total: usize, mut attempt: impl FnMut(usize, usize) -> isize) -> isize {
        let mut done = 0;
        let got = self.make(|length| {
            let total = if self.length == 0 { total } else { length };
            loop {
                let got = attempt(done, total);
                if got <= 0 {
                    return got;
                }
                done += got as usize;
                descriptors::touched();
                if done >= total || self.at_once || sys::is_nonblocking(self.fd) {
                    return done as isize;
                }
            }
        });
        if done > 0 { done as isize } else { got }
    }
}

/// The sum of the lengths of some pieces.
fn total(pieces: &[Piece]) -> usize {
    pieces.iter().fold(0, |sum: usize, piece| sum.saturating_add(piece.length))
}

/// The largest number of pieces in one call, which is the kernel's limit.
const MAX_PIECES: usize = 1024;

/// The pieces that a program passes; `None` if their number is too large or negative.
fn pieces<'a>(at: usize, count: c_int) -> Option<&'a [Piece]> {
    let count = usize::try_from(count).ok().filter(|&count| count <= MAX_PIECES)?;
    if count == 0 {
        return Some(&[]);
    }
    // SAFETY: the program passes so many pieces. Where they are not mapped, it crashes here instead of getting
    // EFAULT.
    (at != 0).then(|| unsafe { core::slice::from_raw_parts(at as *const Piece, count) })
}
