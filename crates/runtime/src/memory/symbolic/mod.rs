//! The runtime of symbolic builds: keeps expressions beside the values of the program, and logs the symbolic trace.
//!
//! Instrumented code calls the functions of [`callbacks`] after its operations. They add nodes to the trace
//! ([`terms`]), remember which bytes of memory hold expressions ([`held`]), find out which memory threads share
//! ([`sharing`]), and log what threads do with shared memory ([`traffic`], [`block_traffic`]). [`inputs`] has the functions
//! by which a program reads inputs, [`marked`] makes bytes from outside inputs, and [`futex_events`] logs what threads do with
//! futexes. [`string_calls`] and [`number_calls`] say what functions of the C library do to expressions ([`call`]).
//!
//! Only one thread runs at a time, and no thread is switched out in here, so nothing is atomic or locked. All data lies at
//! addresses of its own ([`reserved`]), outside of what a snapshot restores: an execution that begins in the same process
//! resets what the last one has touched.

mod block_traffic;
pub mod call;
pub mod callbacks;
pub mod futex_events;
mod held;
pub mod inputs;
pub mod marked;
pub mod number_calls;
mod reserved;
mod results;
mod sharing;
pub mod string_calls;
mod terms;
mod traffic;

pub use reserved::owns;

use crate::platform::sys;
use crate::platform::{allocation, glibc, program_memory};
use crate::sched::{SCHED, me};
use crate::wire_log;
use crate::wire_log::symbolic_log::{self, Logged};
use callbacks::FRAME;
use core::ffi::c_char;
use heisen_trace::Op;
use heisen_wire::flag;
use heisen_wire::symbolic::{CALLED_ALONE, ENV_FD, REASONS, kind, reason};

/// The library is loaded: maps the symbolic trace, if the engine has passed one.
pub fn init() {
    let mut name = [0u8; 32];
    name[..ENV_FD.len()].copy_from_slice(ENV_FD.as_bytes());
    name[ENV_FD.len()] = b'=';
    let Some(fd) = glibc::take_env_number(&name[..=ENV_FD.len()]) else { return };
    if !reserved::reserve() || !symbolic_log::attach(fd, reserved::TRACE) {
        sys::write(2, b"heisen: no addresses are left for the symbolic trace\n");
        sys::exit_group(3);
    }
    sys::close(fd);
}

/// An execution begins.
pub fn begin() {
    if !symbolic_log::is_attached() {
        return;
    }
    symbolic_log::begin(wire_log::flags() & flag::SYMBOLIC != 0);
    reserved::forget();
    inputs::begin();
    if symbolic_log::is_on() {
        FRAME.begin();
        allocation::follow();
        sharing::begin();
    }
    marked::begin();
}

/// Whether the execution that runs logs a symbolic trace.
#[inline]
pub fn is_on() -> bool {
    symbolic_log::is_on()
}

/// The process is no longer controlled.
pub fn leave() {
    symbolic_log::leave();
}

/// The function at this address, the program's `main`, has returned its exit status. Each value is a way of its own.
pub fn exits(main: usize, status: i32) {
    if symbolic_log::is_on() {
        let id = FRAME.take_result(main);
        terms::pin(id, status as u32 as u64, reason::SWITCH, main);
    }
}

/// The function of the running thread, which is at this address, has returned the result of the thread.
pub fn returns_result(function: usize, result: usize) {
    if symbolic_log::is_on() {
        results::leaves(FRAME.take_result(function), result);
    }
}

/// The running thread ends with this result, on which nothing unknown has an effect.
pub fn ends_with(result: usize) {
    if symbolic_log::is_on() {
        results::leaves(terms::CONCRETE, result);
    }
}

/// The running thread has taken the result of another one into this place.
pub fn takes_result(of: usize, place: usize, pc: usize) {
    if symbolic_log::is_on() {
        results::takes(of, place, pc);
    }
}

/// The running thread finds the initialiser of a `pthread_once` done, or is going to run it.
pub fn finds_once(control: usize, done: bool, pc: usize) {
    if symbolic_log::is_on() {
        results::finds_once(control, done, pc);
    }
}

/// The initialiser that the running thread has run is done.
pub fn runs_once(control: usize) {
    if symbolic_log::is_on() {
        results::runs_once(control);
    }
}

/// The running thread reads in the guard of a static variable whether it is initialised, and goes on accordingly.
pub fn finds_initialised(guard: usize, initialised: bool, pc: usize) {
    if symbolic_log::is_on() {
        results::finds_initialised(guard, initialised, pc);
    }
}

/// The running thread has written into the guard of a static variable that it is initialised.
pub fn is_initialised(guard: usize, pc: usize) {
    traffic::wrote(results::guard(guard, pc), terms::CONCRETE, 1);
}

/// The runtime has written plain values into memory of the program: words of 8 bytes.
pub fn wrote_words(place: usize, words: usize, pc: usize) {
    for address in (place..).step_by(size_of::<u64>()).take(words) {
        let written = traffic::Access { address, size: size_of::<u64>(), pc };
        traffic::wrote(written, terms::CONCRETE, program_memory::load(address, size_of::<u64>()));
    }
}

/// The running thread calls a function without instrumentation, whose name is at this address. As long as there is no other
/// thread and no input, its result does not depend on them.
fn calls(name: u64) {
    if SCHED.count.get() > 1 {
        symbolic_log::called(name);
    } else if inputs::were_read() {
        symbolic_log::called(name | CALLED_ALONE);
    }
}

/// The running thread is about to run code that may access memory without an event, such as inline assembly. It matters once
/// there are other threads, or expressions.
fn accesses_unseen(reason: u32) {
    if SCHED.count.get() > 1 || symbolic_log::node_count() > 0 {
        symbolic_log::count(&symbolic_log::header().pinned[reason as usize % REASONS]);
    }
}

/// The running thread looks up a function, whose name is at this address, to call it later.
pub fn looks_up(name: *const c_char) {
    if symbolic_log::is_on() {
        symbolic_log::called(name as u64);
    }
}

/// The address of a new block may depend on what other threads have allocated, which no event says.
pub fn depends_on_allocations() {
    if symbolic_log::is_on() {
        symbolic_log::count(&symbolic_log::header().pinned[reason::ALLOCATION as usize]);
    }
}

/// Memory gets a new use: it holds no expression.
pub fn renew(start: usize, length: usize) {
    if symbolic_log::is_on() {
        held::clear(start, length);
    }
}

/// The running thread ends this memory by this operation. Each word that threads share is an event of its own.
pub fn ends(op: Op, address: usize, size: usize, pc: usize) {
    if !symbolic_log::is_on() {
        return;
    }
    for word in (address & !7..address + size).step_by(8) {
        let start = word.max(address);
        if sharing::is_shared(start, (word + 8).min(address + size) - start, true) {
            let event =
                Logged { kind: kind::SYNC, op: op as u8, address: word as u64, value: 0, id: 0, size: 1, pc };
            log(event);
        }
    }
}

/// The running thread is about to access memory that it must not access, which ends the execution.
pub fn fails(address: usize, pc: usize) {
    if symbolic_log::is_on() {
        let op = Op::WrongAccess as u8;
        log(Logged { kind: kind::SYNC, op, address: address as u64, value: 0, id: 0, size: 1, pc });
    }
}

/// The runtime has moved the content of a block of memory to another place, on behalf of the program.
pub fn moved(to: usize, from: usize, length: usize, pc: usize) {
    if symbolic_log::is_on() {
        block_traffic::copied(to, from, length, pc);
    }
}

/// The program gets memory that is full of zeros, and new.
pub fn zeroed(at: usize, length: usize, pc: usize) {
    if symbolic_log::is_on() {
        block_traffic::zeroed(at, length, pc);
    }
}

/// Logs an event of the running thread.
fn log(event: Logged) {
    symbolic_log::push_event(SCHED.step.get(), me() as u16, event);
}

/// Logs an event of the running thread with an unknown of so many bits. Returns the unknown.
fn log_unknown(bits: u32, event: Logged) -> u32 {
    symbolic_log::push_unknown(SCHED.step.get(), me() as u16, bits, event)
}
