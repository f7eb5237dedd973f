//! The allocator of the race check: blocks whose sizes are powers of two, from an address range of its own. The
//! program's own mappings then lie where they lie without the check. It never returns memory to the kernel,
//! because an execution ends soon.

use crate::platform::baton::Guarded;
use crate::platform::sys;
use core::cell::Cell;

/// Where it begins: below the program and its libraries, above addresses that are not randomised.
pub const BASE: usize = 0x0f00_0000_0000;
/// How much is mapped at a time.
const STEP: usize = 1 << 20;
/// The logarithm of the smallest block.
const LEAST: u32 = 4;
const CLASSES: usize = 40;

struct Arena {
    next: Cell<usize>,
    end: Cell<usize>,
    /// Freed blocks, by the logarithm of their size; each begins with the address of the next.
    free: [Cell<usize>; CLASSES],
}

static ARENA: Guarded<Arena> =
    Guarded::new(Arena { next: Cell::new(0), end: Cell::new(0), free: [const { Cell::new(0) }; CLASSES] });

fn class(bytes: usize) -> u32 {
    bytes.next_power_of_two().trailing_zeros().max(LEAST)
}

/// Takes a block of at least this many bytes, with any content, aligned to 16.
pub fn take(bytes: usize) -> usize {
    let class = class(bytes);
    let free = &ARENA.free[class as usize];
    let block = free.get();
    if block != 0 {
        // SAFETY: a free block begins with the address of the next one.
        free.set(unsafe { *(block as *const usize) });
        return block;
    }
    let size = 1 << class;
    if ARENA.next.get() + size > ARENA.end.get() {
        grow(size);
    }
    let block = ARENA.next.get();
    ARENA.next.set(block + size);
    block
}

/// Frees a block.
pub fn give(block: usize, bytes: usize) {
    let free = &ARENA.free[class(bytes) as usize];
    // SAFETY: the block is as large, and no longer in use.
    unsafe { *(block as *mut usize) = free.get() };
    free.set(block);
}

#[cold]
fn grow(size: usize) {
    let at = if ARENA.end.get() == 0 { BASE } else { ARENA.end.get() };
    let length = size.next_multiple_of(STEP);
    sys::map_at(at, length);
    if ARENA.end.get() == 0 {
        ARENA.next.set(at);
    }
    ARENA.end.set(at + length);
}
