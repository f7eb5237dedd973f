//! The checked heap, for instrumented programs: an allocator that knows for every byte whether it may be
//! accessed. It keeps freed blocks in a quarantine, and returns the same addresses in every execution of the
//! same schedule.
//!
//! It lies at an address range of its own, so a pointer alone shows whose block it is; glibc's blocks go to
//! glibc. Beside it lie *marks*, one byte for eight of the heap, as in AddressSanitizer (USENIX ATC'12). A
//! correct access costs one look at a mark; [`check`] sees only accesses that are wrong, or not clearly right.
//!
//! There are no locks: one thread runs at a time. A forked child of the program is not controlled and may have
//! several real threads. It allocates from glibc, and its frees of blocks in this heap have no effect.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`blocks`] | size classes, the record before each block |
//! | [`arenas`] | where new blocks come from |
//! | [`marks`] | which bytes may be accessed |
//! | [`quarantine`] | freed blocks that are not reused yet |
//! | [`info`] | the block to which an address belongs |
//! | [`error`] | reports of memory errors to the engine |
//! | [`leak`] | blocks that nothing points to at the end |

mod arenas;
mod blocks;
mod error;
mod info;
mod leak;
mod marks;
mod quarantine;

use crate::memory::ending;
use crate::memory::symbolic;
use crate::platform::baton::Guarded;
use crate::platform::sys;
use crate::sched::pause;
use crate::sched::{SCHED, me};
use crate::wire_log;
use blocks::{Block, state};
use core::cell::Cell;
pub use error::tell_block;
use heisen_trace::{Note, Op};
use heisen_wire::{misuse, stop};
pub use info::block_of;
pub use leak::look_for_leaks;

/// Where the heap begins. The race check folds addresses to their low 40 bits; after folding, this range does
/// not collide with programs, libraries or stacks.
const BASE: usize = 0x6010_0000_0000;
/// The largest size of the heap; only the used part takes memory.
const LENGTH: usize = 0x40_0000_0000;
/// The smallest and the largest alignment that can be requested.
const ALIGN: usize = 16;
const MAX_ALIGN: usize = 1 << 32;

struct Heap {
    /// Whether this process was started with the checked heap.
    on: Cell<bool>,
    /// Whether the check looks for leaks.
    leaks: Cell<bool>,
    /// The number of the latest block.
    serial: Cell<u32>,
    /// The blocks at whose allocation and end the engine wants to stop; 0 if none.
    stop_at_alloc: Cell<u32>,
    stop_at_free: Cell<u32>,
}

static HEAP: Guarded<Heap> = Guarded::new(Heap {
    on: Cell::new(false),
    leaks: Cell::new(false),
    serial: Cell::new(0),
    stop_at_alloc: Cell::new(0),
    stop_at_free: Cell::new(0),
});

/// Sets it up, if the engine asks for it. Returns whether it is used from now on.
pub fn init() -> bool {
    let flags = wire_log::wire().heap.flags.load(core::sync::atomic::Ordering::Relaxed);
    if flags & heisen_wire::heap::ON == 0 {
        return false;
    }
    HEAP.leaks.set(flags & heisen_wire::heap::LEAKS != 0);
    glibc_begins();
    HEAP.on.set(blocks::reserve(flags & heisen_wire::heap::DIVIDED != 0));
    HEAP.on.get()
}

/// Whether each thread allocates from memory of its own, so that no address depends on other threads.
pub fn is_divided() -> bool {
    HEAP.on.get() && arenas::divided()
}

/// An execution begins.
pub fn begin() {
    let wire = &wire_log::wire().heap;
    let wanted = wire.flags.load(core::sync::atomic::Ordering::Relaxed) & heisen_wire::heap::ON != 0;
    if wanted && !HEAP.on.get() {
        wire_log::note(Note::NoHeap);
    }
    let number = |field: &core::sync::atomic::AtomicU64| match wire_log::stops() {
        true => field.load(core::sync::atomic::Ordering::Relaxed) as u32,
        false => 0,
    };
    HEAP.stop_at_alloc.set(number(&wire.stop_at_alloc));
    HEAP.stop_at_free.set(number(&wire.stop_at_free));
}

/// Whether allocations come from the checked heap now.
#[inline]
pub fn serves() -> bool {
    SCHED.active.get() && HEAP.on.get()
}

/// Whether an address lies in the checked heap.
#[inline]
pub fn contains(address: usize) -> bool {
    address.wrapping_sub(BASE) < LENGTH
}

/// The running thread accesses `size` bytes. A correct access costs one look at a mark.
#[inline]
pub fn touch(address: usize, size: usize, write: bool, pc: usize) {
    if contains(address) && !marks::clean(address, size) {
        check(address, size, write, pc);
    }
}

/// Whether an access would be an error.
pub fn is_wrong(address: usize, size: usize) -> bool {
    contains(address) && !marks::clean(address, size) && serves() && marks::first_bad(address, size).is_some()
}

/// Examines an access to this heap closely. If it is an error, the execution ends here.
#[cold]
pub fn check(address: usize, size: usize, write: bool, pc: usize) {
    if !serves() {
        return;
    }
    let Some(bad) = marks::first_bad(address, size) else { return };
    let (what, block) = match (info::containing(bad), write) {
        (None, false) => (misuse::HEAP_OVERFLOW_READ, None),
        (None, true) => (misuse::HEAP_OVERFLOW_WRITE, None),
        (Some(block), false) if block.is_freed() => (misuse::USE_AFTER_FREE_READ, Some(block)),
        (Some(block), true) if block.is_freed() => (misuse::USE_AFTER_FREE_WRITE, Some(block)),
        (block, false) => (misuse::HEAP_OVERFLOW_READ, block),
        (block, true) => (misuse::HEAP_OVERFLOW_WRITE, block),
    };
    error::fail(what, address, size, bad, block, pc)
}

/// Allocates a block; 0 if there is no memory. `alignment` is a power of two.
#[inline]
pub fn allocate(bytes: usize, alignment: usize, pc: usize) -> usize {
    if alignment > MAX_ALIGN || bytes > LENGTH {
        return 0;
    }
    let Some((block, fresh)) = blocks::take(bytes, alignment.max(ALIGN)) else { return 0 };
    born(block, bytes, fresh, pc)
}

/// Allocates a block of zeros; 0 if there is no memory.
pub fn allocate_zeroed(count: usize, bytes: usize, pc: usize) -> usize {
    let Some(bytes) = count.checked_mul(bytes).filter(|&bytes| bytes <= LENGTH) else { return 0 };
    let Some((block, fresh)) = blocks::take(bytes, ALIGN) else { return 0 };
    if !fresh {
        block.clear(bytes);
    }
    let address = born(block, bytes, fresh, pc);
    symbolic::zeroed(address, bytes, pc);
    address
}

#[inline(always)]
fn born(block: Block, bytes: usize, fresh: bool, pc: usize) -> usize {
    let serial = HEAP.serial.get().wrapping_add(1);
    HEAP.serial.set(serial);
    block.begin(bytes, fresh, serial, me() as u16, pc);
    if serial == HEAP.stop_at_alloc.get() {
        pause::stop_at(stop::ALLOCATED);
    }
    block.start()
}

/// Frees a block of this heap. If the address is not a block, or was freed before, the execution ends here.
#[inline]
pub fn free(address: usize, pc: usize) {
    if serves() {
        let size = blocks::at(address).map_or(0, Block::size);
        ending::log(Op::Free, address, size, pc);
    }
    let Some(block) = live(address, misuse::DOUBLE_FREE, pc) else { return };
    if block.serial() == HEAP.stop_at_free.get() {
        pause::stop_at(stop::FREED);
    }
    ending::end(address, block.size(), pc);
    block.end(me() as u16, pc);
    quarantine::add(block);
}

/// The block that begins at this address, if it is in use. Otherwise it is an error: of the kind `freed` if the
/// block was freed before. `None` in a forked child that is not controlled.
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

/// Blocks from this size on stay in place if the new size still fits. Smaller ones always move, so that uses of
/// the old address are found.
const STAYS: usize = 4096;

/// Changes the size of a block of this heap; 0 if there is no memory. In a forked child that is not controlled,
/// moves it to a block from `other`.
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
        ending::shrink(address, (old, bytes), pc);
        block.resize(bytes);
        return address;
    }
    let new = allocate(bytes, ALIGN, pc);
    if new != 0 {
        blocks::copy(address, new, old.min(bytes));
        symbolic::moved(new, address, old.min(bytes), pc);
        free(address, pc);
    }
    new
}

/// The usable size of a block of this heap: the requested size.
pub fn usable(address: usize, pc: usize) -> usize {
    match live(address, misuse::USE_AFTER_FREE_READ, pc) {
        Some(block) => block.size(),
        None => blocks::at(address).map_or(0, Block::size),
    }
}

/// The program frees a pointer that is not in this heap. If it cannot be a block of glibc either, the execution
/// ends here.
pub fn foreign(address: usize, pc: usize) {
    if serves() && !info::may_be_of_glibc(address) {
        error::fail(misuse::INVALID_FREE, address, 0, address, None, pc);
    }
}

/// Stores the lowest address that glibc's own heap can have. It is called before the first use of that heap.
pub fn glibc_begins() {
    if info::GLIBC.load(core::sync::atomic::Ordering::Relaxed) == 0 {
        info::GLIBC.store(sys::program_break(), core::sync::atomic::Ordering::Relaxed);
    }
}
