//! Inputs: values that the program asks for, and that the engine may choose. Each is an unknown of the trace.
//!
//! An input is named by its thread and its number among the inputs of that thread, so that a chosen value reaches the same
//! input whatever the other threads do. Chosen values also count in executions without a trace, such as a replay.

use super::callbacks::FRAME;
use super::reserved::tables;
use super::terms::{self, CONCRETE, Operand, ones};
use super::traffic::Access;
use super::{is_on, log_unknown, traffic};
use crate::platform::program_memory;
use crate::sched::{NONE, me, pause, thread};
use crate::wire_log::symbolic_log::{self, Logged};
use core::ffi::{CStr, c_char};
use heisen_trace::ValueOp;
use heisen_trace::hash::{EMPTY, thread_key};
use heisen_wire::misuse;
use heisen_wire::symbolic::{MAX_INPUT_BYTES, kind, reason};

/// An execution begins: no thread has read an input.
pub fn begin() {
    let tables = tables();
    tables.inputs[..tables.readers.replace(0)].iter().for_each(|count| count.set(0));
}

/// Whether a thread has read an input.
pub fn were_read() -> bool {
    tables().readers.get() > 0
}

/// The key of a thread, see [`thread_key`].
pub fn key(number: usize) -> u64 {
    let t = thread(number);
    if t.parent.get() == NONE { EMPTY } else { thread_key(key(t.parent.get() as usize), t.child.get()) }
}

/// The running thread reads an input of at most 64 bits, which has this value if the engine has not chosen another.
/// `piece` is its first byte, if it is a piece of a larger input. Returns its unknown and its value.
fn read(name: &[u8], piece: Option<u32>, bits: u32, default: u64, pc: usize) -> Operand {
    if !symbolic_log::is_attached() {
        return Operand::constant(default);
    }
    let tables = tables();
    tables.readers.set(tables.readers.get().max(me() + 1));
    let number = tables.inputs[me()].get();
    tables.inputs[me()].set(number + 1);
    let value = symbolic_log::chosen(key(me()), number, bits).unwrap_or(default) & ones(bits);
    if !is_on() {
        return Operand::constant(value);
    }
    let address = symbolic_log::name(name);
    let size = bits | piece.map_or(0, |first| (first + 1) << 8);
    let id = log_unknown(bits, Logged { kind: kind::INPUT, op: 0, address, value, id: CONCRETE, size, pc });
    Operand::of(terms::added(id, bits), value)
}

/// The running thread reads an input of any number of bytes into memory, which holds the default. Memory and size are the
/// arguments of the function at this address.
pub fn read_into(function: usize, at: usize, bytes: usize, name: *const c_char, pc: usize) {
    if !symbolic_log::is_attached() {
        return;
    }
    let [at_id, bytes_id] = FRAME.take_arguments(function);
    terms::pin(at_id, at as u64, reason::ADDRESS, pc);
    terms::pin(bytes_id, bytes as u64, reason::SIZE, pc);
    FRAME.returns(function, CONCRETE);
    let name = if name.is_null() {
        b"input"
    } else {
        // SAFETY: the program passes a C string.
        unsafe { CStr::from_ptr(name) }.to_bytes()
    };
    if bytes > MAX_INPUT_BYTES {
        return pause::misused(misuse::INPUT_SIZE, bytes, pc);
    }
    let mut done = 0;
    while done < bytes {
        let size = (bytes - done).min(8);
        let piece = (bytes > 8).then_some(done as u32);
        let input = read(name, piece, 8 * size as u32, program_memory::load(at + done, size), pc);
        let value = input.value.to_le_bytes();
        // SAFETY: the program passes memory of that size.
        unsafe { core::ptr::copy_nonoverlapping(value.as_ptr(), (at + done) as *mut u8, size) };
        traffic::wrote(Access { address: at + done, size, pc }, input.id, input.value);
        done += size;
    }
}

/// The running thread reads one byte of an input into memory, which holds the default.
pub fn read_byte(at: usize, name: &[u8], index: u32) {
    let input = read(name, Some(index), 8, program_memory::load(at, 1), 0);
    // SAFETY: memory of the runtime.
    unsafe { *(at as *mut u8) = input.value as u8 };
    traffic::wrote(Access { address: at, size: 1, pc: 0 }, input.id, input.value);
}

/// The running thread reads an input that the function at this address returns.
pub fn returned(function: usize, name: &[u8], bits: u32, pc: usize) -> u64 {
    let input = read(name, None, bits, 0, pc);
    FRAME.returns(function, input.id);
    input.value
}

/// The running thread reads an input of 128 bits that the function at this address returns. Expressions have at most 64.
pub fn returned_wide(function: usize, name: &[u8], pc: usize) -> u128 {
    let [low, high] = [0, 8].map(|first| read(name, Some(first), 64, 0, pc));
    terms::pin(low.id, low.value, reason::WIDE, pc);
    terms::pin(high.id, high.value, reason::WIDE, pc);
    FRAME.returns(function, CONCRETE);
    u128::from(high.value) << 64 | u128::from(low.value)
}

/// The running thread assumes the condition that is the argument of the function at this address, an `int`.
pub fn assumes(function: usize, condition: i32, pc: usize) {
    let [id] = FRAME.take_arguments(function);
    FRAME.returns(function, CONCRETE);
    if id == CONCRETE || !is_on() {
        return;
    }
    let bits = terms::width(id);
    let zero = terms::binary(ValueOp::Eq, bits, 1, Operand::node(id), Operand::constant(0));
    // Without an expression the value is never 0, and nothing is assumed.
    if zero != CONCRETE {
        terms::asserts(kind::ASSUME, terms::unary(ValueOp::Not, 1, 1, zero), condition != 0, pc);
    }
}
