//! `read` and `write`, and their variants for several buffers.

use super::{Call, Piece, WOULD_BLOCK, pieces, total};
use crate::blocking::descriptors;
use crate::blocking::descriptors::{POLLIN, POLLOUT, PollFd};
use crate::blocking::input_log;
use crate::blocking::input_log::{Kind, Out};
use crate::memory::symbolic::marked;
use crate::platform::glibc;
use crate::platform::sys;
use crate::shim::shims;
use core::ffi::c_int;
use heisen_trace::Op;

/// The kernel cannot try without blocking on this kind of descriptor.
const CANNOT_TRY: isize = -(sys::EOPNOTSUPP as isize);
/// A pipe that is ready takes this many bytes without blocking.
const PIPE_BUF: usize = 4096;

fn is_ready(fd: c_int, events: i16) -> bool {
    let fd = PollFd { fd, events, revents: 0 };
    sys::poll(&raw const fd as usize, 1, 0) > 0
}

fn read_pieces(fd: c_int, pieces: &[Piece]) -> isize {
    let out = Out { counted: pieces, unit: 1, ..Out::default() };
    input_log::call(Kind::Move, fd, out, || read_pieces_now(fd, pieces))
}

fn read_pieces_now(fd: c_int, pieces: &[Piece]) -> isize {
    match sys::read_now(fd, pieces.as_ptr() as usize, pieces.len()) {
        CANNOT_TRY if is_ready(fd, POLLIN) => {
            sys::call(sys::SYS_READV, [fd as usize, pieces.as_ptr() as usize, pieces.len(), 0, 0, 0])
        }
        CANNOT_TRY => WOULD_BLOCK,
        got => got,
    }
}

fn write_piece(fd: c_int, piece: Piece) -> isize {
    input_log::call(Kind::Move, fd, Out::default(), || write_piece_now(fd, piece))
}

fn write_piece_now(fd: c_int, piece: Piece) -> isize {
    match sys::write_now(fd, &raw const piece as usize, 1) {
        CANNOT_TRY if is_ready(fd, POLLOUT) => {
            let length = piece.length.min(PIPE_BUF);
            sys::call(sys::SYS_WRITE, [fd as usize, piece.base, length, 0, 0, 0])
        }
        CANNOT_TRY => WOULD_BLOCK,
        got => got,
    }
}

fn reads(fd: c_int, length: usize, pc: usize) -> Call {
    Call { op: Op::Read, fd, events: POLLIN, at_once: false, length, timeout: 0, pc }
}

pub fn read_at(fd: c_int, base: usize, length: usize, pc: usize) -> isize {
    if !descriptors::class(fd).talks() {
        return glibc::kernel_result(marked::reads(fd, &[Piece { base, length }], None, pc, || {
            sys::call(sys::SYS_READ, [fd as usize, base, length, 0, 0, 0])
        }));
    }
    glibc::kernel_result(reads(fd, length, pc).make(|length| read_pieces(fd, &[Piece { base, length }])))
}

pub fn write_at(fd: c_int, base: usize, length: usize, pc: usize) -> isize {
    if !descriptors::class(fd).talks() {
        return glibc::kernel_result(sys::call(sys::SYS_WRITE, [fd as usize, base, length, 0, 0, 0]));
    }
    write_all(fd, &[Piece { base, length }], pc)
}

/// Writes all pieces as if they were one.
fn write_all(fd: c_int, pieces: &[Piece], pc: usize) -> isize {
    let length = if pieces.len() == 1 { pieces[0].length } else { 0 };
    let call = Call { op: Op::Write, fd, events: POLLOUT, at_once: false, length, timeout: 0, pc };
    glibc::kernel_result(call.make_complete(total(pieces), |done, most| {
        if done == 0 && pieces.len() > 1 {
            // Several pieces go in one call, so that a pipe does not separate small ones.
            let write = || sys::write_now(fd, pieces.as_ptr() as usize, pieces.len());
            let got = input_log::call(Kind::Move, fd, Out::default(), write);
            if got != CANNOT_TRY {
                return got;
            }
        }
        write_rest(fd, pieces, done, most)
    }))
}

/// Writes some of the remaining pieces, after `done` bytes have been written; the total stays at most `most`.
pub fn write_rest(fd: c_int, pieces: &[Piece], done: usize, most: usize) -> isize {
    let mut skip = done;
    for piece in pieces {
        if skip < piece.length || pieces.len() == 1 {
            let length = (piece.length - skip).min(most - done);
            return write_piece(fd, Piece { base: piece.base + skip, length });
        }
        skip -= piece.length;
    }
    0
}

shims! {
    /// Waits until there is something to read: bytes, the end of a stream, or an error.
    fn read(fd: c_int, buffer: usize, length: usize) -> isize = pc { read_at(fd, buffer, length, pc) }

    /// As `read`, for programs compiled with `_FORTIFY_SOURCE`.
    fn __read_chk(fd: c_int, buffer: usize, length: usize, size: usize) -> isize = pc {
        if length > size {
            return glibc::real!(__read_chk, fn(
                fd => c_int, buffer => usize, length => usize, size => usize
            ) -> isize);
        }
        read_at(fd, buffer, length, pc)
    }

    /// As `read`, into several buffers.
    fn readv(fd: c_int, buffers: usize, count: c_int) -> isize = pc {
        match pieces(buffers, count) {
            Some(pieces) if descriptors::class(fd).talks() => {
                glibc::kernel_result(reads(fd, 0, pc).make(|_| read_pieces(fd, pieces)))
            }
            pieces => marked::reads(fd, pieces.unwrap_or_default(), None, pc, || {
                glibc::real!(readv, fn(fd => c_int, buffers => usize, count => c_int) -> isize)
            }),
        }
    }

    /// Goes to the kernel unchanged. Not a scheduling point, unless `--input` marks bytes of the file.
    fn pread(fd: c_int, buffer: usize, length: usize, position: usize) -> isize = pc {
        marked::reads(fd, &[Piece { base: buffer, length }], Some(position), pc, || {
            glibc::real!(pread, fn(fd => c_int, buffer => usize, length => usize, position => usize) -> isize)
        })
    }

    /// As `pread`.
    fn pread64(fd: c_int, buffer: usize, length: usize, position: usize) -> isize = pc {
        marked::reads(fd, &[Piece { base: buffer, length }], Some(position), pc, || {
            glibc::real!(pread64, fn(fd => c_int, buffer => usize, length => usize, position => usize) -> isize)
        })
    }

    /// Waits until there is room for the data, and enables threads that wait for it.
    fn write(fd: c_int, buffer: usize, length: usize) -> isize = pc { write_at(fd, buffer, length, pc) }

    /// As `write`, from several buffers.
    fn writev(fd: c_int, buffers: usize, count: c_int) -> isize = pc {
        match pieces(buffers, count) {
            Some(pieces) if descriptors::class(fd).talks() && !pieces.is_empty() => write_all(fd, pieces, pc),
            _ => glibc::real!(writev, fn(fd => c_int, buffers => usize, count => c_int) -> isize),
        }
    }

    /// Waits until `from` has data and `to` has room, then copies as much as possible.
    fn sendfile(to: c_int, from: c_int, offset: usize, count: usize) -> isize = pc {
        send_file(to, from, offset, count, pc)
    }

    /// As `sendfile`.
    fn sendfile64(to: c_int, from: c_int, offset: usize, count: usize) -> isize = pc {
        send_file(to, from, offset, count, pc)
    }

    /// Waits until `from` has data and `to` has room, then moves as much as possible.
    fn splice(from: c_int, at: usize, to: c_int, onto: usize, count: usize, flags: u32) -> isize = pc {
        const SPLICE_F_NONBLOCK: u32 = 2;
        let at_once = flags & SPLICE_F_NONBLOCK != 0;
        let flags = (flags | SPLICE_F_NONBLOCK) as usize;
        copy(to, from, at_once, pc, || {
            sys::call(sys::SYS_SPLICE, [from as usize, at, to as usize, onto, count, flags])
        })
    }
}

fn send_file(to: c_int, from: c_int, offset: usize, count: usize, pc: usize) -> isize {
    let args = [to as usize, from as usize, offset, count, 0, 0];
    copy(to, from, false, pc, || sys::call(sys::SYS_SENDFILE, args))
}

/// Copies between two descriptors. The kernel has no variant that does not block on the source. The thread
/// therefore waits for the source first, and again if other threads took the data before the destination had
/// room.
fn copy(to: c_int, from: c_int, at_once: bool, pc: usize, attempt: impl Fn() -> isize) -> isize {
    const TAKEN: isize = isize::MAX;
    input_log::cannot(to);
    input_log::cannot(from);
    let (from_talks, to_talks) = (descriptors::class(from).talks(), descriptors::class(to).talks());
    let does_not_wait = |fd, talks| talks && sys::is_nonblocking(fd);
    let at_once = at_once || does_not_wait(from, from_talks) || does_not_wait(to, to_talks);
    let gives = || !from_talks || at_once || is_ready(from, POLLIN);
    let call = |op, fd, events| Call { op, fd, events, at_once, length: 0, timeout: 0, pc };
    let reads = call(Op::Read, from, POLLIN);
    if !to_talks {
        let got = if from_talks {
            reads.make(|_| if gives() { attempt() } else { WOULD_BLOCK })
        } else {
            attempt()
        };
        return glibc::kernel_result(got);
    }
    loop {
        if !gives() {
            let got = reads.make(|_| if gives() { 0 } else { WOULD_BLOCK });
            if got < 0 {
                return glibc::kernel_result(got);
            }
        }
        let got = call(Op::Write, to, POLLOUT).make(|_| match () {
            () if !gives() => TAKEN,
            () if at_once || is_ready(to, POLLOUT) => attempt(),
            () => WOULD_BLOCK,
        });
        if got != TAKEN {
            return glibc::kernel_result(got);
        }
    }
}
