//! The quarantine: a freed block is not reused before a certain amount of memory was freed after it. An access
//! to the freed block therefore cannot be mistaken for one to a later block at the same address. The order is
//! first in, first out. The list lies apart from the blocks, because a program may write to freed memory.

use super::blocks::Block;
use crate::platform::baton::Guarded;
use crate::platform::sys;
use core::cell::Cell;

/// The number of bytes in the quarantine. An execution that frees this much touches as many new pages, which
/// takes some milliseconds; threads rarely keep a stale pointer for longer.
const BYTES: usize = 16 << 20;
/// The largest number of blocks in the quarantine, a power of two.
const PLACES: usize = 1 << 18;
/// How many blocks before its release a block is fetched into the processor's cache.
const AHEAD: usize = 8;
/// The address of the ring.
const RING: usize = 0x6200_0000_0000;

/// The end of the ring, and of all addresses of the heap.
pub const END: usize = RING + PLACES * size_of::<Block>();

struct Quarantine {
    /// How many blocks have entered and left.
    into: Cell<usize>,
    out: Cell<usize>,
    bytes: Cell<usize>,
}

static QUARANTINE: Guarded<Quarantine> =
    Guarded::new(Quarantine { into: Cell::new(0), out: Cell::new(0), bytes: Cell::new(0) });

/// Maps the ring.
pub fn reserve() -> bool {
    sys::reserve(RING, PLACES * size_of::<Block>()) && sys::make_usable(RING, PLACES * size_of::<Block>())
}

fn place(number: usize) -> &'static Cell<Block> {
    // SAFETY: the ring is that long, and each place is written before it is read.
    unsafe { &*((RING + number % PLACES * size_of::<Block>()) as *const Cell<Block>) }
}

/// Adds a freed block.
#[inline]
pub fn add(block: Block) {
    if QUARANTINE.into.get() - QUARANTINE.out.get() == PLACES {
        release();
    }
    place(QUARANTINE.into.get()).set(block);
    QUARANTINE.into.set(QUARANTINE.into.get() + 1);
    QUARANTINE.bytes.set(QUARANTINE.bytes.get() + block.capacity());
    while QUARANTINE.bytes.get() > BYTES {
        release();
    }
}

/// Releases the oldest block.
#[inline]
fn release() {
    let block = place(QUARANTINE.out.get()).get();
    QUARANTINE.out.set(QUARANTINE.out.get() + 1);
    // A block that is soon released was last used long ago.
    if QUARANTINE.into.get() - QUARANTINE.out.get() > AHEAD {
        place(QUARANTINE.out.get() + AHEAD).get().prefetch();
    }
    QUARANTINE.bytes.set(QUARANTINE.bytes.get().saturating_sub(block.capacity()));
    block.reuse();
}
