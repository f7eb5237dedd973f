//! Blocks of the checked heap: their size classes, the record before each, and where new ones come from.
//!
//! Blocks of all classes lie one behind the other in their arena, in the order in which they were first needed: a short
//! execution then touches few pages. A block keeps its class for ever; a reused block comes from the list of
//! its class. Between the bytes of one block and those of the next lie the unused rest of the class and the
//! record of the next block. The program must not access these: they are the guard.

use super::{ALIGN, BASE, LENGTH, arenas, marks};
use crate::platform::baton::Guarded;
use crate::platform::sys;
use core::cell::Cell;

/// The size of the record before a block, and so the smallest guard on either side.
pub const RECORD: usize = size_of::<Record>();
/// Up to this size, classes are 16 bytes apart; above it, there are eight classes to each doubling.
const FINE: usize = 1024;
const FINE_CLASSES: usize = FINE / ALIGN;
const CLASSES: usize = FINE_CLASSES + 1 + 8 * (LENGTH.ilog2() as usize - FINE.ilog2() as usize + 1);
/// A freed block of this size or more returns its pages to the kernel, as glibc's does. An access by
/// uninstrumented code then crashes, as it would with glibc.
const LARGE: usize = 128 << 10;
const PAGE: usize = 4096;
/// The value that fills the bytes between the end of a block and the end of its class, for up to [`CANARY`]
/// bytes.
const FILL: u128 = u128::from_ne_bytes([0xa7; CANARY]);
const CANARY: usize = size_of::<u128>();

/// What a record says of its block. Any other value shows that the record was overwritten.
pub mod state {
    /// The program uses the block.
    pub const LIVE: u16 = 0x4841;
    /// The program has freed the block.
    pub const FREED: u16 = 0x4842;
    /// There is no block behind this record yet.
    pub const NONE: u16 = 0x4843;
    /// The block was moved up to be aligned, and its record with it.
    pub const MOVED: u16 = 0x4844;
    /// In use, and found to be reachable.
    pub const SEEN: u16 = 0x4845;
}

/// The record of a block.
#[repr(C, align(16))]
struct Record {
    /// One of [`state`].
    state: Cell<u16>,
    class: Cell<u16>,
    /// The threads that allocated and freed it.
    thread: Cell<u16>,
    freed_by: Cell<u16>,
    /// The requested size.
    size: Cell<usize>,
    /// The code addresses at which it was allocated and freed.
    pc: Cell<usize>,
    free_pc: Cell<usize>,
    /// Its number.
    serial: Cell<u32>,
    /// How far it was moved up to be aligned, in units of [`ALIGN`].
    front: Cell<u32>,
    /// The address of the next block of its class that can be reused; 0 if there is none.
    link: Cell<usize>,
}

struct Blocks {
    /// The first block of each class that can be reused.
    lists: [Cell<usize>; CLASSES],
}

static BLOCKS: Guarded<Blocks> = Guarded::new(Blocks { lists: [const { Cell::new(0) }; CLASSES] });

/// Reserves the addresses, and makes the first part usable. Returns whether it succeeded.
pub fn reserve(divided: bool) -> bool {
    if !sys::reserve(BASE, LENGTH) {
        return false;
    }
    if !marks::reserve() || !super::quarantine::reserve() || !arenas::begin(divided) {
        sys::unmap(BASE, LENGTH);
        return false;
    }
    true
}

/// The class for this many bytes, and its capacity.
#[inline]
fn class_of(bytes: usize) -> (usize, usize) {
    if bytes <= FINE {
        let class = bytes.div_ceil(ALIGN).max(1);
        return (class, class * ALIGN);
    }
    let top = (bytes - 1).ilog2() as usize;
    let shift = top - 3;
    let steps = ((bytes - 1) >> shift) + 1;
    (FINE_CLASSES + 8 * (top - FINE.ilog2() as usize) + steps - 8, steps << shift)
}

/// The capacity of a class in bytes.
fn room(class: usize) -> usize {
    if class <= FINE_CLASSES {
        return class * ALIGN;
    }
    let step = class - FINE_CLASSES - 1;
    (9 + step % 8) << (FINE.ilog2() as usize - 3 + step / 8)
}

/// A block, by the address of its first byte; its record lies before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block(usize);

/// The block that begins at this address of the heap, if one does.
#[inline]
pub fn at(address: usize) -> Option<Block> {
    (address.is_multiple_of(ALIGN) && address >= BASE + RECORD && marks::is_record(address - RECORD))
        .then_some(Block(address))
}

/// Takes a block for this many bytes; returns it and whether it is all zeros.
#[inline]
pub fn take(bytes: usize, alignment: usize) -> Option<(Block, bool)> {
    // With this many more bytes the block contains an aligned address.
    let spare = if alignment > ALIGN { alignment } else { 0 };
    let (class, room) = class_of(bytes + spare);
    let reusable = if arenas::divided() { 0 } else { BLOCKS.lists[class].get() };
    let (block, fresh) = match reusable {
        0 => (extend(class, room)?, true),
        start => {
            let block = Block(start);
            let next = block.record().link.get();
            // A program that writes to freed memory may have overwritten the record.
            BLOCKS.lists[class].set(if super::contains(next) && next.is_multiple_of(ALIGN) {
                next
            } else {
                0
            });
            // The pages of a large block were returned to the kernel.
            let (from, to) = block.pages();
            if room >= LARGE && !sys::make_usable(from, to - from) {
                BLOCKS.lists[class].set(start);
                return None;
            }
            (block, false)
        }
    };
    let up = block.0.next_multiple_of(alignment) - block.0;
    Some((if up == 0 { block } else { block.move_up(up) }, fresh))
}

/// Makes a block behind all others of its arena.
#[inline]
fn extend(class: usize, room: usize) -> Option<Block> {
    let (place, at) = arenas::place(room, RECORD)?;
    if place.is_first {
        close_off(at);
    }
    let start = at + RECORD;
    close_off(start + room);
    place.end(start + room);
    let block = Block(start);
    block.record().class.set(class as u16);
    block.record().front.set(0);
    Some(block)
}

/// The next record will be here; until then it is a guard.
fn close_off(end: usize) {
    record_at(end).state.set(state::NONE);
    marks::guard(end, RECORD);
}

#[inline]
fn record_at(at: usize) -> &'static Record {
    // SAFETY: callers pass addresses in the usable part of the heap at which a record lies, or will.
    unsafe { &*(at as *const Record) }
}

impl Block {
    #[inline]
    fn record(self) -> &'static Record {
        record_at(self.0 - RECORD)
    }

    /// The address of its first byte.
    #[inline]
    pub fn start(self) -> usize {
        self.0
    }

    /// The requested size.
    pub fn size(self) -> usize {
        self.record().size.get()
    }

    /// The number of bytes that it has room for.
    #[inline]
    pub fn capacity(self) -> usize {
        self.end_of_class() - self.0
    }

    /// Prefetches it, because it will be used soon.
    #[inline]
    pub fn prefetch(self) {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        for at in [self.0 - RECORD, self.0, self.0 + 64, marks::place(self.0)] {
            // SAFETY: a prefetch touches no memory, whatever the address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(at as *const i8) };
        }
    }

    /// Its state, one of [`state`].
    #[inline]
    pub fn state(self) -> u16 {
        self.record().state.get()
    }

    /// Sets its state.
    pub fn set_state(self, state: u16) {
        self.record().state.set(state);
    }

    /// Whether it was freed.
    pub fn is_freed(self) -> bool {
        self.state() == state::FREED
    }

    /// Its number.
    #[inline]
    pub fn serial(self) -> u32 {
        self.record().serial.get()
    }

    /// The thread that allocated it, and where.
    pub fn allocated(self) -> (u16, usize) {
        (self.record().thread.get(), self.record().pc.get())
    }

    /// The thread that freed it, and where.
    pub fn freed(self) -> (u16, usize) {
        (self.record().freed_by.get(), self.record().free_pc.get())
    }

    fn origin(self) -> usize {
        self.0 - self.record().front.get() as usize * ALIGN
    }

    fn end_of_class(self) -> usize {
        self.origin() + room(self.record().class.get() as usize)
    }

    /// The full pages of its bytes.
    fn pages(self) -> (usize, usize) {
        let from = self.0.next_multiple_of(PAGE);
        (from, (self.end_of_class() & !(PAGE - 1)).max(from))
    }

    /// The same block, begun further up.
    fn move_up(self, up: usize) -> Block {
        let class = self.record().class.get();
        self.set_state(state::MOVED);
        marks::guard(self.0 - RECORD, up);
        let block = Block(self.0 + up);
        block.record().class.set(class);
        block.record().front.set((up / ALIGN) as u32);
        block
    }

    /// The program gets the block; `fresh` says that it was never used before.
    #[inline]
    pub fn begin(self, bytes: usize, fresh: bool, serial: u32, thread: u16, pc: usize) {
        let record = self.record();
        record.state.set(state::LIVE);
        record.thread.set(thread);
        record.size.set(bytes);
        record.pc.set(pc);
        record.serial.set(serial);
        marks::record(self.0 - RECORD, RECORD);
        self.bound(bytes, fresh);
    }

    /// Sets the marks of its bytes, unless they are fresh, and of the rest, and fills the beginning of the
    /// rest.
    #[inline(always)]
    fn bound(self, bytes: usize, fresh: bool) {
        let capacity = self.capacity();
        if !fresh {
            marks::open(self.0, bytes);
        }
        marks::close(self.0, bytes, capacity);
        if let Some((at, ours)) = self.canary(bytes, capacity) {
            // SAFETY: as `canary` says.
            unsafe { at.write_unaligned(at.read_unaligned() & !ours | FILL & ours) };
        }
    }

    /// The [`CANARY`] bytes of its room, at any address, with a mask of those that lie behind its end. `None`
    /// if it ends with its room.
    #[inline(always)]
    fn canary(self, bytes: usize, capacity: usize) -> Option<(*mut u128, u128)> {
        let rest = capacity.saturating_sub(bytes);
        match rest {
            0 => None,
            1..CANARY => {
                Some(((self.0 + capacity - CANARY) as *mut u128, u128::MAX << (8 * (CANARY - rest))))
            }
            _ => Some(((self.0 + bytes) as *mut u128, u128::MAX)),
        }
    }

    /// Clears these bytes of it. The pages of a large block were returned to the kernel and are zeros already.
    pub fn clear(self, bytes: usize) {
        let end = self.0 + bytes;
        let (from, to) = if self.capacity() >= LARGE { self.pages() } else { (end, end) };
        let (from, to) = (from.min(end), to.min(end));
        marks::fill_bytes(self.0, 0, from - self.0);
        marks::fill_bytes(to, 0, end - to);
    }

    /// Changes its size within its room.
    pub fn resize(self, bytes: usize) {
        self.record().size.set(bytes);
        self.bound(bytes, false);
    }

    /// The first byte behind its end, or of the record there, that uninstrumented code has overwritten.
    #[inline(always)]
    pub fn trampled(self) -> Option<usize> {
        let capacity = self.capacity();
        if let Some((at, ours)) = self.canary(self.size(), capacity) {
            // SAFETY: as `canary` says.
            let differs = (unsafe { at.read_unaligned() } ^ FILL) & ours;
            return (differs != 0).then(|| at as usize + differs.trailing_zeros() as usize / 8);
        }
        let end = self.0 + capacity;
        (!(state::LIVE..=state::SEEN).contains(&record_at(end).state.get())).then_some(end)
    }

    /// The program frees the block. It must not be used again before [`Block::reuse`].
    #[inline]
    pub fn end(self, thread: u16, pc: usize) {
        let record = self.record();
        record.state.set(state::FREED);
        record.freed_by.set(thread);
        record.free_pc.set(pc);
        marks::freed(self.0, self.capacity());
        self.give_pages_back();
    }

    /// Returns the pages of a large block to the kernel.
    #[inline]
    fn give_pages_back(self) {
        if self.capacity() >= LARGE {
            let (from, to) = self.pages();
            sys::make_unusable(from, to - from);
        }
    }

    /// Makes it available for reuse.
    pub fn reuse(self) {
        let (record, origin) = (self.record(), self.origin());
        let (class, size, serial) = (record.class.get(), record.size.get(), record.serial.get());
        let (thread, pc) = self.allocated();
        let (freed_by, free_pc) = self.freed();
        let list = &BLOCKS.lists[class as usize];
        let block = Block(origin);
        if block != self {
            // Back to its position before it was aligned.
            marks::freed(origin, self.0 - origin);
            marks::record(origin - RECORD, RECORD);
            let record = block.record();
            record.state.set(state::FREED);
            record.class.set(class);
            record.size.set(size);
            record.serial.set(serial);
            record.front.set(0);
            record.thread.set(thread);
            record.pc.set(pc);
            record.freed_by.set(freed_by);
            record.free_pc.set(free_pc);
            block.give_pages_back();
        }
        block.record().link.set(list.get());
        list.set(origin);
    }
}

/// All blocks from the lowest address on, in use or not.
pub fn all() -> impl Iterator<Item = Block> {
    arenas::used().flat_map(|(from, to)| {
        let next = move |from: usize| marks::next_record(from, to);
        core::iter::successors(next(from), move |&at| next(at + RECORD)).map(|at| Block(at + RECORD))
    })
}

/// Copies bytes between two blocks.
pub fn copy(from: usize, to: usize, bytes: usize) {
    // SAFETY: both have that many bytes, and they do not overlap. This does not call `memcpy`, which may be
    // intercepted.
    unsafe {
        core::arch::asm!("rep movsb", inout("rsi") from => _, inout("rdi") to => _, inout("rcx") bytes => _,
            options(nostack, preserves_flags));
    }
}
