//! The quarantine: what was freed is not used again before so much else was freed, so that a touch of it is told from one of
//! a later block at the same place. First in, first out. Where it is noted is apart from the blocks, as a program may
//! write to what it has freed.

use super::blocks::Block;
use crate::platform::baton::Guarded;
use crate::platform::sys;
use core::cell::Cell;

/// Bytes that are held back. Each execution that frees so much touches as many fresh pages, some milliseconds of work; and
/// threads rarely keep a stale pointer for longer.
const BYTES: usize = 16 << 20;
/// Blocks that are held back at most, a power of two.
const PLACES: usize = 1 << 18;
/// How many blocks ahead of being let go one is fetched into the processor's cache.
const AHEAD: usize = 8;
/// Where the ring is.
const RING: usize = 0x6200_0000_0000;

/// Where that ends, and with it all addresses of the heap.
pub const END: usize = RING + PLACES * size_of::<Block>();

struct Quarantine {
    /// How many went in and came out.
    into: Cell<usize>,
    out: Cell<usize>,
    bytes: Cell<usize>,
}

static Q: Guarded<Quarantine> =
    Guarded::new(Quarantine { into: Cell::new(0), out: Cell::new(0), bytes: Cell::new(0) });

/// Maps the ring.
pub fn reserve() -> bool {
    sys::reserve(RING, PLACES * size_of::<Block>()) && sys::make_usable(RING, PLACES * size_of::<Block>())
}

fn place(number: usize) -> &'static Cell<Block> {
    // SAFETY: the ring is that long, and each place is written before it is read.
    unsafe { &*((RING + number % PLACES * size_of::<Block>()) as *const Cell<Block>) }
}

/// A block was freed.
#[inline]
pub fn add(block: Block) {
    if Q.into.get() - Q.out.get() == PLACES {
        release();
    }
    place(Q.into.get()).set(block);
    Q.into.set(Q.into.get() + 1);
    Q.bytes.set(Q.bytes.get() + block.capacity());
    while Q.bytes.get() > BYTES {
        release();
    }
}

/// Lets the oldest go.
#[inline]
fn release() {
    let block = place(Q.out.get()).get();
    Q.out.set(Q.out.get() + 1);
    // What is soon to be let go was last used long ago.
    if Q.into.get() - Q.out.get() > AHEAD {
        place(Q.out.get() + AHEAD).get().prefetch();
    }
    Q.bytes.set(Q.bytes.get().saturating_sub(block.capacity()));
    block.reuse();
}
