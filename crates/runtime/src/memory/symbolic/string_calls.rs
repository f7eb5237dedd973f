//! What the functions of `<string.h>` do to expressions: each is a loop over bytes that branches as its textbook version
//! does. Addresses and sizes decide, so lengths and positions are plain numbers. Each function returns the expression of
//! the result, which is 0 for all that do not compare.

use super::block_traffic;
use super::call::{Call, Value};
use super::number_calls::lower;
use super::terms::{CONCRETE, Operand};
use heisen_trace::ValueOp;

/// No limit.
pub const ALL: usize = usize::MAX;

fn is_zero(call: &Call, at: usize) -> bool {
    call.holds(call.byte(at).is(0))
}

fn length(call: &Call, at: usize, most: usize) -> usize {
    (0..most).find(|index| is_zero(call, at + index)).unwrap_or(most)
}

/// `strlen`, and `strnlen` with a limit.
pub fn measures(call: &Call, at: usize, most: usize) -> u32 {
    call.addresses(&[at]);
    call.size(1, most);
    length(call, at, most);
    CONCRETE
}

/// The character that a function looks for, its second argument.
fn wanted(call: &Call, character: usize) -> Value {
    call.argument(1, character, 32).resized(8)
}

/// Looks for a character in a block of this size, the third argument.
pub fn finds(call: &Call, at: usize, character: usize, bytes: usize) -> u32 {
    call.addresses(&[at]);
    call.size(2, bytes);
    let wanted = wanted(call, character);
    (0..bytes).any(|index| call.holds(call.byte(at + index).equals(wanted)));
    CONCRETE
}

/// Likewise, from the end on.
pub fn finds_last(call: &Call, at: usize, character: usize, bytes: usize) -> u32 {
    call.addresses(&[at]);
    call.size(2, bytes);
    let wanted = wanted(call, character);
    (0..bytes).rev().any(|index| call.holds(call.byte(at + index).equals(wanted)));
    CONCRETE
}

/// Looks for the first of a character in a string, or, with `last`, for the last one.
pub fn finds_in_string(call: &Call, at: usize, character: usize, last: bool) -> u32 {
    call.addresses(&[at]);
    let wanted = wanted(call, character);
    for index in 0.. {
        let byte = call.byte(at + index);
        if call.holds(byte.equals(wanted)) && !last || call.holds(byte.is(0)) {
            break;
        }
    }
    CONCRETE
}

/// `strstr`.
pub fn finds_string(call: &Call, at: usize, wanted: usize) -> u32 {
    call.addresses(&[at, wanted]);
    (at..).find(|start| {
        let mut index = 0;
        loop {
            let byte = call.byte(wanted + index);
            if call.holds(byte.is(0)) {
                return true;
            }
            let there = call.byte(start + index);
            if !call.holds(there.equals(byte)) {
                // The end, or the next start.
                return call.holds(there.is(0));
            }
            index += 1;
        }
    });
    CONCRETE
}

/// Goes on in a string while its bytes are in a set, a string as well, or, without `inside`, while they are not.
pub fn spans(call: &Call, at: usize, set: usize, inside: bool) -> u32 {
    call.addresses(&[at, set]);
    for index in 0.. {
        let byte = call.byte(at + index);
        if call.holds(byte.is(0)) || call.holds(is_among(call, byte, set)) != inside {
            break;
        }
    }
    CONCRETE
}

/// Whether a byte is one of a string.
fn is_among(call: &Call, byte: Value, set: usize) -> Value {
    let mut any = Value::constant(0, 1);
    for index in 0.. {
        let member = call.byte(set + index);
        if call.holds(member.is(0)) {
            break;
        }
        any = any.or(byte.equals(member));
    }
    any
}

/// How two blocks or strings are compared.
#[derive(Clone, Copy, Debug)]
pub struct Comparison {
    /// The largest number of bytes, the third argument if there is one.
    pub most: usize,
    /// Whether a zero ends them.
    pub ends: bool,
    /// Whether upper and lower case are the same.
    pub folds: bool,
}

impl Comparison {
    /// Of so many bytes at most.
    pub const fn up_to(self, most: usize) -> Comparison {
        Comparison { most, ..self }
    }
}

/// Compares; `real` is the library's result. Its sign says which is smaller; what else it says, the library decides: the
/// difference of two bytes, or just 1 or -1.
pub fn compares(call: &Call, one: usize, other: usize, how: Comparison, real: impl FnOnce() -> i32) -> u32 {
    call.addresses(&[one, other]);
    call.size(2, how.most);
    let byte = |at| {
        let byte = call.byte(at).resized(32);
        if how.folds { lower(call, byte) } else { byte }
    };
    for index in 0..how.most {
        let (a, b) = (byte(one + index), byte(other + index));
        if !call.holds(a.equals(b)) {
            return difference(call, a, b, real);
        }
        if how.ends && call.holds(a.is(0)) {
            break;
        }
    }
    CONCRETE
}

/// The result of a comparison that ends with two different bytes.
fn difference(call: &Call, a: Value, b: Value, real: impl FnOnce() -> i32) -> u32 {
    let difference = a.binary(ValueOp::Sub, b);
    let distance = difference.value as u32 as i32;
    match if difference.is_expression() { real() } else { return CONCRETE } {
        real if real == distance && distance.abs() > 1 => difference.id,
        real if real == distance.signum() && distance.abs() > 1 => {
            let smaller = a.binary(ValueOp::Ult, b);
            smaller.select(Value::constant(u64::MAX, 32), Value::constant(1, 32)).id
        }
        // Both would give this result.
        _ => {
            call.pins(difference);
            CONCRETE
        }
    }
}

/// Copies a block of this size, the third argument.
pub fn copies(call: &Call, to: usize, from: usize, bytes: usize) -> u32 {
    call.addresses(&[to, from]);
    call.size(2, bytes);
    block_traffic::copies(to, from, bytes, call.pc);
    CONCRETE
}

/// Fills a block of this size with a byte; `argument` is the number of the size.
pub fn fills(call: &Call, to: usize, byte: Value, bytes: usize, argument: usize) -> u32 {
    call.addresses(&[to]);
    call.size(argument, bytes);
    let byte = byte.resized(8);
    block_traffic::fills(to, bytes, Operand::of(byte.id, byte.value), call.pc);
    CONCRETE
}

/// `strcpy`.
pub fn copies_string(call: &Call, to: usize, from: usize) -> u32 {
    call.addresses(&[to, from]);
    let bytes = length(call, from, ALL) + 1;
    block_traffic::copies(to, from, bytes, call.pc);
    CONCRETE
}

/// `strncpy`.
pub fn copies_some(call: &Call, to: usize, from: usize, most: usize) -> u32 {
    call.addresses(&[to, from]);
    call.size(2, most);
    let bytes = length(call, from, most);
    block_traffic::copies(to, from, bytes, call.pc);
    block_traffic::fills(to + bytes, most - bytes, Operand::constant(0), call.pc);
    CONCRETE
}

/// `strncat`, and `strcat` without a limit.
pub fn appends(call: &Call, to: usize, from: usize, most: usize) -> u32 {
    call.addresses(&[to, from]);
    call.size(2, most);
    let end = to + length(call, to, ALL);
    let bytes = length(call, from, most);
    block_traffic::copies(end, from, bytes, call.pc);
    call.writes(end + bytes, 1, 0);
    CONCRETE
}

/// `strndup`, and `strdup` without a limit, after the copy was allocated: how many bytes it has without the zero.
pub fn duplicated(call: &Call, to: usize, from: usize, bytes: usize) {
    block_traffic::copies(to, from, bytes, call.pc);
    call.writes(to + bytes, 1, 0);
}
