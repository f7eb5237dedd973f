//! Which bytes of memory hold parts of expressions.
//!
//! Beside each part lies the value that the byte had. Code that is not instrumented writes memory without notice; a load
//! that finds another value drops the expression, which is counted.

use super::reserved::{PAGE, part, tables};
use super::terms::{self, CONCRETE, Operand, ones};
use crate::wire_log::symbolic_log;
use heisen_trace::ValueOp;

/// A part of an expression in a byte: the expression, which of its bytes, and the value of the byte.
#[derive(Clone, Copy)]
struct Part {
    id: u32,
    offset: u32,
    value: u8,
}

impl Part {
    fn pack(self) -> u64 {
        u64::from(self.id) | u64::from(self.offset) << 32 | u64::from(self.value) << 40
    }

    fn at(address: usize) -> Part {
        let word = part(address).get();
        Part { id: word as u32, offset: (word >> 32) as u8 as u32, value: (word >> 40) as u8 }
    }
}

/// Whether a page that an access of at most 8 bytes touches has any expression.
#[inline]
fn may_hold(address: usize, size: usize) -> bool {
    let held = &tables().held;
    held.has(address) || held.has(address + size - 1)
}

/// Byte `index` of a value.
fn byte(value: u64, index: usize) -> u8 {
    (value >> (8 * index)) as u8
}

/// The expression of up to 8 bytes of memory, which have this value; 0 if they are concrete.
#[inline]
pub fn load(address: usize, size: usize, value: u64) -> u32 {
    if may_hold(address, size) { load_parts(address, size, value) } else { CONCRETE }
}

fn load_parts(address: usize, size: usize, value: u64) -> u32 {
    let mut parts = [Part { id: CONCRETE, offset: 0, value: 0 }; 8];
    let parts = &mut parts[..size];
    for (index, part) in parts.iter_mut().enumerate() {
        *part = Part::at(address + index);
    }
    if parts.iter().all(|part| part.id == CONCRETE) {
        return CONCRETE;
    }
    if parts.iter().enumerate().any(|(index, part)| part.id != CONCRETE && part.value != byte(value, index)) {
        symbolic_log::count(&symbolic_log::header().overwritten);
        clear(address, size);
        return CONCRETE;
    }
    let (first, bits) = (parts[0].id, 8 * size as u32);
    let is_whole = |(index, part): (usize, &Part)| part.id == first && part.offset == index as u32;
    if first != CONCRETE && parts.iter().enumerate().all(is_whole) && terms::width(first) == bits {
        return first;
    }
    join(parts, value, bits)
}

/// The expression of `bits` bits for a row of bytes.
fn join(parts: &[Part], value: u64, bits: u32) -> u32 {
    // The bytes that are concrete, and then the runs of bytes of one expression.
    let mut known = 0;
    let mut all = Operand::constant(0);
    let mut start = 0;
    while start < parts.len() {
        let first = parts[start];
        let follows = |(index, part): (usize, &Part)| {
            part.id == first.id && (first.id == CONCRETE || part.offset == first.offset + index as u32)
        };
        let count = parts[start..].iter().enumerate().take_while(|&run| follows(run)).count();
        let (shift, run) = (8 * start as u32, 8 * count as u32);
        if first.id == CONCRETE {
            known |= value & ones(run) << shift;
        } else {
            let piece = extract(first.id, 8 * first.offset, run);
            let wide = Operand::node(terms::unary(ValueOp::ZExt, run, bits, piece));
            let placed = terms::binary(ValueOp::Shl, bits, bits, wide, Operand::constant(shift.into()));
            all = Operand::node(terms::binary(ValueOp::Or, bits, bits, all, Operand::node(placed)));
        }
        start += count;
    }
    terms::binary(ValueOp::Or, bits, bits, all, Operand::constant(known))
}

/// So many bits of an expression, from bit `from` on.
fn extract(id: u32, from: u32, bits: u32) -> u32 {
    let width = terms::width(id);
    let shifted =
        terms::binary(ValueOp::LShr, width, width, Operand::node(id), Operand::constant(from.into()));
    terms::unary(ValueOp::Trunc, width, bits, shifted)
}

/// An expression with as many bits as it takes in memory.
pub fn fit(id: u32, size: usize) -> u32 {
    let bits = 8 * size as u32;
    match id {
        CONCRETE => CONCRETE,
        id if terms::width(id) > bits => terms::unary(ValueOp::Trunc, terms::width(id), bits, id),
        id => terms::unary(ValueOp::ZExt, terms::width(id), bits, id),
    }
}

/// Up to 8 bytes of memory have got this value and expression.
#[inline]
pub fn store(address: usize, size: usize, id: u32, value: u64) {
    let id = if id == CONCRETE { CONCRETE } else { fit(id, size) };
    if id != CONCRETE {
        for index in 0..size {
            tables().held.add(address + index);
            let held = Part { id, offset: index as u32, value: byte(value, index) };
            part(address + index).set(held.pack());
        }
    } else if may_hold(address, size) {
        clear(address, size);
    }
}

/// A range of memory holds no expression any more.
pub fn clear(start: usize, length: usize) {
    each_held_page(start, length, |from, to| (from..to).for_each(|at| part(at).set(0)));
}

/// Memory is copied within the program: its parts go along.
pub fn copy(to: usize, from: usize, length: usize) {
    let copy = |index: usize| {
        if tables().held.has(from + index) {
            let word = part(from + index).get();
            if word != 0 {
                tables().held.add(to + index);
                part(to + index).set(word);
                return;
            }
        }
        if tables().held.has(to + index) {
            part(to + index).set(0);
        }
    };
    if to <= from { (0..length).for_each(copy) } else { (0..length).rev().for_each(copy) }
}

/// Calls `with` for the parts of a range in pages that have expressions.
fn each_held_page(start: usize, length: usize, mut with: impl FnMut(usize, usize)) {
    let end = start.saturating_add(length);
    let mut at = start;
    while at < end {
        let next = ((at | (PAGE - 1)) + 1).min(end);
        if tables().held.has(at) {
            with(at, next);
        }
        at = next;
    }
}
