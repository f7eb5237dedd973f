//! Copies and fills of blocks of memory. Where a block is shared, each of its words is an event of its own.

use super::held;
use super::sharing::{self, is_shared};
use super::terms::{self, CONCRETE, Operand};
use super::traffic::Access;
use crate::platform::program_memory;
use crate::wire_log::symbolic_log;
use heisen_trace::ValueOp;

/// The bytes from an address on that lie in one aligned word, at most so many.
fn in_word(address: usize, most: usize) -> usize {
    (8 - (address & 7)).min(most)
}

/// A block was or will be copied, which may overlap itself. Its content is now at `from`.
pub fn copies(to: usize, from: usize, length: usize, pc: usize) {
    copy(to, from, length, pc, from);
}

/// A block was copied to a place that does not overlap it.
pub fn copied(to: usize, from: usize, length: usize, pc: usize) {
    copy(to, from, length, pc, to);
}

fn copy(to: usize, from: usize, length: usize, pc: usize, content: usize) {
    // Words of neither block may be cut in two, as far as possible: an event has a size of at most 8.
    let size_at = |done: usize| in_word(to + done, in_word(from + done, length - done));
    if to <= from {
        let mut done = 0;
        while done < length && symbolic_log::is_on() {
            let size = size_at(done);
            word(to + done, from + done, size, pc, content + done);
            done += size;
        }
        return;
    }
    // From the end on, as the source lies before the destination. The pieces are the same.
    let mut left = length;
    while left > 0 && symbolic_log::is_on() {
        let back = |at: usize| ((at + left - 1) & 7) + 1;
        let size = back(to).min(back(from)).min(left);
        left -= size;
        word(to + left, from + left, size, pc, content + left);
    }
}

/// Copies a word of at most 8 bytes.
fn word(to: usize, from: usize, size: usize, pc: usize, content: usize) {
    let source_is_shared = is_shared(from, size, false);
    let target_is_shared = is_shared(to, size, true);
    if !source_is_shared && !target_is_shared {
        held::copy(to, from, size);
        return;
    }
    let value = program_memory::load(content, size);
    let id = Access { address: from, size, pc }.loads(value);
    Access { address: to, size, pc }.stores(id, value);
}

/// A block was filled with a byte.
pub fn fills(to: usize, length: usize, byte: Operand, pc: usize) {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let byte = Operand::of(held::fit(byte.id, 1), byte.value & 0xff);
    let mut done = 0;
    while done < length && symbolic_log::is_on() {
        let size = in_word(to + done, length - done);
        let bits = 8 * size as u32;
        let each = EACH & terms::ones(bits);
        let id = match byte.id {
            CONCRETE => CONCRETE,
            id => {
                let wide = Operand::node(terms::unary(ValueOp::ZExt, 8, bits, id));
                terms::binary(ValueOp::Mul, bits, bits, wide, Operand::constant(each))
            }
        };
        Access { address: to + done, size, pc }.stores(id, byte.value.wrapping_mul(each));
        done += size;
    }
}

/// A new block of memory is full of zeros. Where it is shared, that is a write; elsewhere nobody has accessed it.
pub fn zeroed(to: usize, length: usize, pc: usize) {
    sharing::each_shared_word(to, length, |at| {
        let size = in_word(at, to + length - at);
        Access { address: at, size, pc }.stores(CONCRETE, 0);
    });
}

/// A block was stored that is no expression: its values are in memory.
pub fn stored(to: usize, length: usize, pc: usize) {
    let mut done = 0;
    while done < length && symbolic_log::is_on() {
        let size = in_word(to + done, length - done);
        Access { address: to + done, size, pc }.stores(CONCRETE, program_memory::load(to + done, size));
        done += size;
    }
}
