//! The heap of instrumented programs: an allocator that knows of every byte whether it may be touched, keeps what was freed
//! out of use for a while, and gives the same addresses in every execution under the same schedule.
//!
//! It lies at an address of its own, so whose block a pointer is follows from the pointer alone: glibc's are given back to
//! glibc. Beside it lie *marks*, one byte for eight of the heap, as in AddressSanitizer (USENIX ATC'12): a touch that is
//! in order costs one look at a mark, and [`check`] sees only those that are not, or not clearly.
//!
//! There are no locks: one thread runs at a time. A forked child of the program, which is not controlled and may really
//! have several threads, allocates from glibc; what it frees of this heap is left as it is.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`blocks`] | size classes, the record before each block, where new blocks come from |
//! | [`marks`] | which bytes may be touched |
//! | [`quarantine`] | what was freed and is not used again yet |
//! | [`info`] | the block that an address belongs to |
//! | [`error`] | what is told to the engine when something is wrong |
//! | [`leak`] | what nobody can reach any more at the end |

mod blocks;
mod error;
mod info;
mod leak;
mod marks;
mod quarantine;

use crate::memory::race;
use crate::memory::race::shadow;
use crate::platform::baton::Guarded;
use crate::platform::sys;
use crate::sched::dependence;
use crate::sched::pause;
use crate::sched::{S, me};
use crate::wire_log;
use blocks::{Block, state};
use core::cell::Cell;
pub use error::tell_block;
use heisen_trace::Note;
use heisen_wire::{misuse, stop};
pub use info::block_of;
pub use leak::look_for_leaks;

/// Where it begins. The race checker folds addresses to their low 40 bits; there, this range meets neither programs nor
/// their libraries nor stacks.
const BASE: usize = 0x6010_0000_0000;
/// How long it may get; only what is used takes memory.
const LENGTH: usize = 0x40_0000_0000;
/// The least and the largest alignment that can be asked for.
const ALIGN: usize = 16;
const MAX_ALIGN: usize = 1 << 32;

struct Heap {
    /// Whether this process was started with it.
    on: Cell<bool>,
    /// Whether leaks are wanted.
    leaks: Cell<bool>,
    /// The number of the latest block.
    serial: Cell<u32>,
    /// The blocks at whose birth and end the engine wants to look; 0 if none.
    stop_at_alloc: Cell<u32>,
    stop_at_free: Cell<u32>,
}

static H: Guarded<Heap> = Guarded::new(Heap {
    on: Cell::new(false),
    leaks: Cell::new(false),
    serial: Cell::new(0),
    stop_at_alloc: Cell::new(0),
    stop_at_free: Cell::new(0),
});

/// Sets it up, if the engine asks for it. Whether it is used from now on.
pub fn init() -> bool {
    let flags = wire_log::wire().heap.flags.load(core::sync::atomic::Ordering::Relaxed);
    if flags & heisen_wire::heap::ON == 0 {
        return false;
    }
    H.leaks.set(flags & heisen_wire::heap::LEAKS != 0);
    glibc_begins();
    H.on.set(blocks::reserve());
    H.on.get()
}

/// An execution begins.
pub fn begin() {
    let wire = &wire_log::wire().heap;
    let wanted = wire.flags.load(core::sync::atomic::Ordering::Relaxed) & heisen_wire::heap::ON != 0;
    if wanted && !H.on.get() {
        wire_log::note(Note::NoHeap);
    }
    let number = |field: &core::sync::atomic::AtomicU64| match wire_log::stops() {
        true => field.load(core::sync::atomic::Ordering::Relaxed) as u32,
        false => 0,
    };
    H.stop_at_alloc.set(number(&wire.stop_at_alloc));
    H.stop_at_free.set(number(&wire.stop_at_free));
}

/// Whether allocations come from here now.
#[inline]
pub fn serves() -> bool {
    S.active.get() && H.on.get()
}

/// Whether an address lies in this heap.
#[inline]
pub fn contains(address: usize) -> bool {
    address.wrapping_sub(BASE) < LENGTH
}

/// The running thread touches so many bytes. One look at a mark where that is in order.
#[inline]
pub fn touch(address: usize, size: usize, write: bool, pc: usize) {
    if contains(address) && !marks::clean(address, size) {
        check(address, size, write, pc);
    }
}

/// Looks closely at a touch of this heap. If it is an error the execution ends here.
#[cold]
pub fn check(address: usize, size: usize, write: bool, pc: usize) {
    if !serves() {
        return;
    }
    let Some(bad) = marks::first_bad(address, size) else { return };
    let (what, block) = match (info::around(bad), write) {
        (None, false) => (misuse::HEAP_OVERFLOW_READ, None),
        (None, true) => (misuse::HEAP_OVERFLOW_WRITE, None),
        (Some(block), false) if block.is_freed() => (misuse::USE_AFTER_FREE_READ, Some(block)),
        (Some(block), true) if block.is_freed() => (misuse::USE_AFTER_FREE_WRITE, Some(block)),
        (block, false) => (misuse::HEAP_OVERFLOW_READ, block),
        (block, true) => (misuse::HEAP_OVERFLOW_WRITE, block),
    };
    error::fail(what, address, size, bad, block, pc)
}

/// A new block; 0 if there is no memory. `alignment` is a power of two.
#[inline]
pub fn allocate(bytes: usize, alignment: usize, pc: usize) -> usize {
    if alignment > MAX_ALIGN || bytes > LENGTH {
        return 0;
    }
    let Some((block, fresh)) = blocks::take(bytes, alignment.max(ALIGN)) else { return 0 };
    born(block, bytes, fresh, pc)
}

/// A new block of zeros; 0 if there is no memory.
pub fn allocate_zeroed(count: usize, bytes: usize, pc: usize) -> usize {
    let Some(bytes) = count.checked_mul(bytes).filter(|&bytes| bytes <= LENGTH) else { return 0 };
    let Some((block, fresh)) = blocks::take(bytes, ALIGN) else { return 0 };
    if !fresh {
        block.clear(bytes);
    }
    born(block, bytes, fresh, pc)
}

#[inline(always)]
fn born(block: Block, bytes: usize, fresh: bool, pc: usize) -> usize {
    let serial = H.serial.get().wrapping_add(1);
    H.serial.set(serial);
    block.begin(bytes, fresh, serial, me() as u16, pc);
    if serial == H.stop_at_alloc.get() {
        pause::stop_at(stop::ALLOCATED);
    }
    block.start()
}

/// How much of a freed block counts as written.
const MOST_WRITTEN: usize = 4096;

/// Gives a block of this heap back. If it is none, or was given back before, the execution ends here.
#[inline]
pub fn free(address: usize, pc: usize) {
    let Some(block) = live(address, misuse::DOUBLE_FREE, pc) else { return };
    if block.serial() == H.stop_at_free.get() {
        pause::stop_at(stop::FREED);
    }
    // For the race check the end of a block is a write of it, so that an access that nothing orders with it becomes a
    // scheduling point. Of a large one, only the beginning.
    if race::is_on(race::mode::CHECK) {
        let written = block.size().min(MOST_WRITTEN);
        race::access::range(address, written, true, pc);
        // What conflicted with it before must not be taken for independent of it.
        if race::is_atomic_point(pc) {
            dependence::memory(address, written, true);
        }
    }
    // And what is remembered of its bytes would let this thread's own accesses pass unseen.
    shadow::renew(address, block.size());
    block.end(me() as u16, pc);
    quarantine::add(block);
}

/// The block that begins at this address, if it may be given back: else it is an error, of the given kind if it was given
/// back before. None in a child that goes on by itself.
#[inline(always)]
fn live(address: usize, freed: u32, pc: usize) -> Option<Block> {
    if !serves() {
        return None;
    }
    let Some(block) = blocks::at(address).filter(|block| block.state() == state::LIVE) else {
        error::not_live(address, freed, pc)
    };
    if let Some(trampled) = block.trampled() {
        error::fail(misuse::HEAP_TRAMPLED, trampled, 1, trampled, Some(block), pc);
    }
    Some(block)
}

/// Blocks from this size on stay where they are if the new size still fits. Smaller ones always move, so that whoever has
/// kept the old address is found out.
const STAYS: usize = 4096;

/// Another size for a block of this heap; 0 if there is no memory. In a child that goes on by itself, a block of `other`.
pub fn reallocate(address: usize, bytes: usize, pc: usize, other: impl FnOnce(usize) -> usize) -> usize {
    let Some(block) = live(address, misuse::REALLOC_FREED, pc) else {
        let size = blocks::at(address).map_or(0, Block::size);
        let new = other(bytes);
        if new != 0 {
            blocks::copy(address, new, size.min(bytes));
        }
        return new;
    };
    let old = block.size();
    if bytes >= STAYS && bytes <= block.capacity() && old >= STAYS {
        block.resize(bytes);
        return address;
    }
    let new = allocate(bytes, ALIGN, pc);
    if new != 0 {
        blocks::copy(address, new, old.min(bytes));
        free(address, pc);
    }
    new
}

/// How many bytes a block of this heap has: as many as were asked for.
pub fn usable(address: usize, pc: usize) -> usize {
    match live(address, misuse::USE_AFTER_FREE_READ, pc) {
        Some(block) => block.size(),
        None => blocks::at(address).map_or(0, Block::size),
    }
}

/// A pointer that is not of this heap was given back. If glibc cannot know it either, the execution ends here.
pub fn foreign(address: usize, pc: usize) {
    if serves() && !info::may_be_of_glibc(address) {
        error::fail(misuse::INVALID_FREE, address, 0, address, None, pc);
    }
}

/// The least address that glibc's own heap can have, told before its first use.
pub fn glibc_begins() {
    if info::GLIBC.load(core::sync::atomic::Ordering::Relaxed) == 0 {
        info::GLIBC.store(sys::program_break(), core::sync::atomic::Ordering::Relaxed);
    }
}
