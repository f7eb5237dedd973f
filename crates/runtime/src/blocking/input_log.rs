//! Recorded input: logs the kernel's answers that do not follow from the schedule, and replays them.
//!
//! Two executions of one schedule can differ only by input from outside. The calls on sockets and on other
//! descriptors that lead outside form one sequence, together with all questions which descriptors are ready. It
//! is therefore enough to log their results in order, with the bytes that they wrote to the program's memory.
//! In a replay each call takes the next entry, and the kernel is not asked. An entry that does not fit is a
//! divergence. Pipes and counters inside the program work normally. (The same idea, for entire processes, is in
//! O'Callahan et al., "Engineering Record And Replay For Deployability", USENIX ATC'17, section 2.)

use crate::blocking::descriptors;
use crate::blocking::descriptors::Class;
use crate::platform::baton::Guarded;
use crate::platform::sys;
use crate::platform::sys::Piece;
use crate::sched::pause;
use crate::wire_log;
use core::cell::Cell;
use core::sync::atomic::Ordering::Relaxed;
use heisen_wire::{MAX_INPUT, flag, input};

/// What an entry is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// How long the runtime waits for the outside.
    Patience = 1,
    /// Whether a thread that waits for descriptors can run, with its number.
    Look,
    /// Whether something came while no thread could run.
    Wait,
    /// `poll`, `select` or `epoll_wait`.
    Poll,
    /// A call that transfers bytes.
    Move,
    Accept,
    Connect,
    /// The class of a connected socket.
    Classify,
    /// Any other call on a socket.
    Other,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Off,
    Record,
    Replay,
}

struct Log {
    mode: Cell<Mode>,
    /// Where the next entry begins.
    at: Cell<usize>,
}

static LOG: Guarded<Log> = Guarded::new(Log { mode: Cell::new(Mode::Off), at: Cell::new(0) });

/// An execution begins.
pub fn begin(flags: u32) {
    LOG.at.set(0);
    LOG.mode.set(match flags {
        _ if flags & flag::REPLAY_INPUT != 0 => Mode::Replay,
        _ if flags & flag::RECORD_INPUT != 0 => Mode::Record,
        _ => Mode::Off,
    });
}

/// Whether a log is replayed.
pub fn replays() -> bool {
    LOG.mode.get() == Mode::Replay
}

/// Whether a log is recorded or replayed.
pub fn is_on() -> bool {
    LOG.mode.get() != Mode::Off
}

/// The program makes a call whose effect the log cannot hold, on this descriptor.
pub fn cannot(fd: i32) {
    if LOG.mode.get() == Mode::Record && holds(fd) {
        give_up();
    }
}

fn set_state(bits: u32) {
    let state = &wire_log::wire().input_state;
    state.store(state.load(Relaxed) | bits, Relaxed);
}

/// Whether calls on a descriptor are logged.
fn holds(fd: i32) -> bool {
    descriptors::is_socket(fd) || descriptors::class(fd) == Class::Outside
}

/// The memory of the program to which a call writes.
#[derive(Clone, Copy, Default)]
pub struct Out<'a> {
    /// The call writes here as many units as its result says.
    pub counted: &'a [Piece],
    /// The size of a unit in bytes.
    pub unit: usize,
    /// The call writes all of this, unless it fails.
    pub fixed: &'a [Piece],
}

impl Out<'_> {
    /// Calls `each` with the address and length of each piece that a call with this result writes.
    fn pieces(&self, result: isize, mut each: impl FnMut(usize, usize)) {
        if result < 0 {
            return;
        }
        let mut left = (result as usize).saturating_mul(self.unit);
        for piece in self.counted {
            let length = piece.length.min(left);
            each(piece.base, length);
            left -= length;
        }
        for piece in self.fixed.iter().filter(|piece| piece.base != 0) {
            each(piece.base, piece.length);
        }
    }
}

/// A call on a descriptor, which is logged if the descriptor leads outside.
pub fn call(kind: Kind, fd: i32, out: Out<'_>, real: impl FnOnce() -> isize) -> isize {
    if LOG.mode.get() == Mode::Off || !holds(fd) {
        return real();
    }
    if kind == Kind::Move && descriptors::class(fd) == Class::Outside {
        used();
    }
    through(kind, fd, out, real)
}

/// A process outside takes part: the log is needed.
pub fn used() {
    if LOG.mode.get() == Mode::Record {
        set_state(input::USED);
    }
}

/// The size of an entry without the written bytes: kind, number, result, and the number of written bytes.
const HEAD: usize = 1 + 4 + 8 + 4;

/// Asks the kernel and logs the answer, or takes the answer from the log.
pub fn through(kind: Kind, number: i32, out: Out<'_>, real: impl FnOnce() -> isize) -> isize {
    match LOG.mode.get() {
        Mode::Off => real(),
        Mode::Record => {
            let result = real();
            let mut length = 0;
            out.pieces(result, |_, more| length += more);
            let at = LOG.at.get();
            if length > MAX_INPUT || at + HEAD + length > MAX_INPUT {
                give_up();
                return result;
            }
            put(&[kind as u8]);
            put(&number.to_le_bytes());
            put(&(result as i64).to_le_bytes());
            put(&(length as u32).to_le_bytes());
            out.pieces(result, |base, length| {
                if length > 0 {
                    // SAFETY: the call has just written so many bytes there.
                    put(unsafe { core::slice::from_raw_parts(base as *const u8, length) });
                }
            });
            wire_log::wire().input_length.store(LOG.at.get() as u32, Relaxed);
            result
        }
        Mode::Replay => {
            let logged = wire_log::wire().input_length.load(Relaxed) as usize;
            let (mut head, at) = ([0; HEAD], LOG.at.get());
            if at + HEAD > logged.min(MAX_INPUT) {
                pause::other_input();
            }
            take(&mut head);
            let word = |from: usize| {
                u32::from_le_bytes([head[from], head[from + 1], head[from + 2], head[from + 3]])
            };
            let result = (u64::from(word(5)) | u64::from(word(9)) << 32) as i64 as isize;
            let mut length = 0;
            out.pieces(result, |_, more| length += more);
            let fits = head[0] == kind as u8 && word(1) as i32 == number && word(13) as usize == length;
            if !fits || at + HEAD + length > logged.min(MAX_INPUT) {
                pause::other_input();
            }
            out.pieces(result, |base, length| {
                if length > 0 {
                    // SAFETY: the program has passed so many bytes to be written to.
                    take(unsafe { core::slice::from_raw_parts_mut(base as *mut u8, length) });
                }
            });
            result
        }
    }
}

/// Stops recording. That matters only if a process outside takes part.
fn give_up() {
    set_state(input::INCOMPLETE);
    LOG.mode.set(Mode::Off);
}

fn put(bytes: &[u8]) {
    let at = LOG.at.get();
    for (slot, &byte) in wire_log::wire().input[at..].iter().zip(bytes) {
        slot.store(byte, Relaxed);
    }
    LOG.at.set(at + bytes.len());
}

fn take(bytes: &mut [u8]) {
    let at = LOG.at.get();
    for (byte, slot) in bytes.iter_mut().zip(&wire_log::wire().input[at..]) {
        *byte = slot.load(Relaxed);
    }
    LOG.at.set(at + bytes.len());
}

/// In a replay, opens a socket in place of a recorded connection, with the same number and kind, that leads
/// nowhere. Its options work; the log holds the data.
pub fn stand_in(listener: i32, wanted: i32, flags: i32) {
    let option = |option| {
        let mut value = [0; 2];
        sys::socket_option(listener, option, &mut value);
        value[0] as usize & 0xffff_ffff
    };
    const SO_TYPE: i32 = 3;
    const SO_DOMAIN: i32 = 39;
    let made = sys::call(sys::SYS_SOCKET, [option(SO_DOMAIN), option(SO_TYPE) | flags as usize, 0, 0, 0, 0]);
    if made < 0 {
        pause::other_input();
    }
    if made != wanted as isize {
        const CLOSE_ON_EXEC: i32 = 0o2_000_000;
        sys::call(sys::SYS_DUP3, [made as usize, wanted as usize, (flags & CLOSE_ON_EXEC) as usize, 0, 0, 0]);
        sys::close(made as i32);
    }
}
