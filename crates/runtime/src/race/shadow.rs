//! Shadow memory: what is remembered of each 8 bytes of the program's memory.
//!
//! A [`Granule`] is either simple, with the epoch of the last write and of the last read, each with the bytes it touched and
//! its place in the code; or it refers to a [`Node`] that has a list of accesses, and what was left there by releases.
//! Granules lie in one linear range, made of pieces that are mapped as they are needed: address bits above the 40th are
//! dropped, which keeps apart what a program has (its image and `brk` heap from 0x5555..., libraries, stacks and mappings
//! from 0x7fff... downwards, an image at a fixed low address, `heap`'s own at 0x6010..., and `order::key`).

use super::clock::Clock;
use super::{arena, order};
use crate::sys;
use core::cell::Cell;

const FOLD: usize = (1 << 40) - 1;
/// Where the granules are: 32 bytes for each 8.
const BASE: usize = 0x1000_0000_0000;
const PIECE: u32 = 20;
const PIECES: usize = 1 << (40 - PIECE);
/// Bytes of granules for each byte of memory.
const RATIO: usize = size_of::<Granule>() / 8;

/// What is remembered of 8 bytes.
#[derive(Debug)]
#[repr(C)]
pub struct Granule {
    /// The epoch of the last write, with the bytes it touched as its lowest 8 bits. With [`NODE`] set, the place of a
    /// node in the arena instead, shifted; the other fields mean nothing then.
    pub write: Cell<u64>,
    /// The same of the last read; 0 if none.
    pub read: Cell<u64>,
    /// Where the write is.
    pub write_pc: Cell<usize>,
    /// Where the read is.
    pub read_pc: Cell<usize>,
}

/// The bit of [`Granule::write`] that says that it is no epoch.
pub const NODE: u64 = 1 << 22;

/// An access that is remembered.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Access {
    /// Epoch and bytes.
    pub epoch: u64,
    /// Its place, and above that bits of `heisen_wire::kind`.
    what: u64,
}

const KIND: u32 = 56;

impl Access {
    pub fn new(epoch: u64, kind: u32, pc: usize) -> Access {
        Access { epoch, what: pc as u64 | u64::from(kind) << KIND }
    }

    /// The bytes it touched.
    pub fn bytes(&self) -> u8 {
        self.epoch as u8
    }

    pub fn kind(&self) -> u32 {
        (self.what >> KIND) as u32
    }

    pub fn pc(&self) -> usize {
        (self.what & ((1 << KIND) - 1)) as usize
    }

    /// Whether place and kind are the same.
    pub fn alike(&self, other: &Access) -> bool {
        self.what == other.what
    }
}

/// What is remembered where a granule is not enough.
#[derive(Debug)]
#[repr(C)]
pub struct Node {
    /// What was left here for those that pass.
    pub left: Clock,
    /// The thread that left it last.
    pub leaver: Cell<usize>,
    /// Every place in the code that touches it is remembered: it has been raced for, or is atomic.
    pub exact: Cell<bool>,
    /// It was raced for in an execution before, and stays exact when the memory is used for something else.
    pub known: Cell<bool>,
    count: Cell<u32>,
    room: Cell<u32>,
    at: Cell<usize>,
}

impl Node {
    pub fn accesses(&self) -> &[Cell<Access>] {
        if self.at.get() == 0 {
            return &[];
        }
        // SAFETY: so many are there, in a block that is this node's alone.
        unsafe {
            core::slice::from_raw_parts(self.at.get() as *const Cell<Access>, self.count.get() as usize)
        }
    }

    pub fn push(&self, access: Access) {
        /// Beyond this the oldest are forgotten.
        const MOST: u32 = 4096;
        let (count, room) = (self.count.get(), self.room.get());
        if count == room && room < MOST {
            self.grow();
        } else if count == room {
            self.remove(0);
        }
        let count = self.count.get();
        self.count.set(count + 1);
        self.accesses()[count as usize].set(access);
    }

    fn grow(&self) {
        const SIZE: usize = size_of::<Access>();
        let room = (self.room.get() as usize * 2).max(4);
        let block = arena::take(room * SIZE);
        if self.at.get() != 0 {
            let old = self.count.get() as usize;
            // SAFETY: both blocks are large enough, and are not the same.
            unsafe {
                core::ptr::copy_nonoverlapping(self.at.get() as *const Access, block as *mut Access, old);
            }
            arena::give(self.at.get(), self.room.get() as usize * SIZE);
        }
        self.at.set(block);
        self.room.set(room as u32);
    }

    /// Removes one; the last takes its place.
    pub fn remove(&self, index: usize) {
        let accesses = self.accesses();
        accesses[index].set(accesses[accesses.len() - 1].get());
        self.count.set(self.count.get() - 1);
    }

    /// Whether nothing but accesses is remembered, and not all of them are.
    fn is_plain(&self) -> bool {
        !self.exact.get() && self.left.is_empty()
    }

    fn drop(&self) {
        if self.at.get() != 0 {
            arena::give(self.at.get(), self.room.get() as usize * size_of::<Access>());
        }
        self.left.drop();
        arena::give(core::ptr::from_ref(self) as usize, size_of::<Node>());
    }
}

struct Pieces([Cell<bool>; PIECES]);

// SAFETY: as for `sched::S`.
unsafe impl Sync for Pieces {}

/// Which pieces are mapped.
static PIECES_MAPPED: Pieces = Pieces([const { Cell::new(false) }; PIECES]);

struct Count(Cell<usize>);

// SAFETY: as for `sched::S`.
unsafe impl Sync for Count {}

impl core::ops::Deref for Count {
    type Target = Cell<usize>;

    fn deref(&self) -> &Cell<usize> {
        &self.0
    }
}

/// How many nodes are known to be raced for.
static KNOWN: Count = Count(Cell::new(0));

/// The granule of an address.
#[inline(always)]
pub fn granule(address: usize) -> &'static Granule {
    let folded = address & FOLD;
    if !PIECES_MAPPED.0[folded >> PIECE].get() {
        map(folded >> PIECE);
    }
    // SAFETY: the piece is mapped, and holds granules only.
    unsafe { &*((BASE + (folded & !7) * RATIO) as *const Granule) }
}

#[cold]
fn map(piece: usize) {
    sys::map_at(BASE + (piece << PIECE) * RATIO, RATIO << PIECE);
    PIECES_MAPPED.0[piece].set(true);
}

impl Granule {
    /// Its node, if it has one.
    #[inline(always)]
    pub fn node(&self) -> Option<&'static Node> {
        let write = self.write.get();
        // SAFETY: set by `make_node` to the address of a node, which lives as long as the granule refers to it.
        (write & NODE != 0)
            .then(|| unsafe { &*((arena::BASE + (write >> order::CLOCK) as usize) as *const Node) })
    }

    /// Its node, made of what it remembers if it has none.
    pub fn make_node(&self) -> &'static Node {
        if let Some(node) = self.node() {
            return node;
        }
        let block = arena::take(size_of::<Node>());
        // SAFETY: a block of that size, which all zeros make a node of.
        let node = unsafe {
            core::ptr::write_bytes(block as *mut u8, 0, size_of::<Node>());
            &*(block as *const Node)
        };
        for (epoch, kind, pc) in [
            (self.write.get(), heisen_wire::kind::WRITE, self.write_pc.get()),
            (self.read.get(), 0, self.read_pc.get()),
        ] {
            if epoch != 0 {
                node.push(Access::new(epoch, kind, pc));
            }
        }
        self.write.set(((block - arena::BASE) as u64) << order::CLOCK | NODE);
        self.read.set(0);
        node
    }

    /// Forgets everything, except that it is known to be raced for.
    fn forget(&self) {
        if let Some(node) = self.node() {
            if node.known.get() {
                node.count.set(0);
                node.left.clear();
                return;
            }
            node.drop();
        }
        self.write.set(0);
        self.read.set(0);
    }

    /// Makes it simple again, if it has become so: one access, by which all others are covered.
    pub fn simplify(&self, node: &Node, access: Access) {
        if node.is_plain() && node.count.get() == 1 && access.kind() == heisen_wire::kind::WRITE {
            node.drop();
            self.write.set(access.epoch);
            self.write_pc.set(access.pc());
            self.read.set(0);
        }
    }
}

/// What was left at an object, if anything.
pub fn left_at(object: usize) -> Option<&'static Clock> {
    granule(object).node().map(|node| &node.left)
}

/// Where a thread leaves something at an object.
pub fn leave_at(object: usize, thread: usize) -> &'static Clock {
    let node = granule(object).make_node();
    node.leaver.set(thread);
    &node.left
}

/// The thread that left something at an object last.
pub fn last_at(object: usize) -> Option<usize> {
    granule(object).node().map(|node| node.leaver.get())
}

/// A place is known to be raced for: every access of it is remembered.
pub fn mark(address: usize) {
    let node = granule(address).make_node();
    node.exact.set(true);
    if !node.known.replace(true) {
        KNOWN.set(KNOWN.get() + 1);
    }
}

/// Memory is used for something new, and what was before is nobody's concern any more.
pub fn born(start: usize, length: usize) {
    /// From here on, whole pages of granules are given back to the kernel.
    const LARGE: usize = 1 << 16;
    if length >= LARGE && KNOWN.get() == 0 {
        each_piece(start, length, drop_pages);
    } else {
        each_piece(start, length, forget_each);
    }
}

/// Calls `with` for the parts of a range that lie in one piece each, if that is mapped.
fn each_piece(start: usize, length: usize, with: impl Fn(usize, usize)) {
    let mut at = start & !7;
    let end = start + length;
    while at < end {
        let piece_end = (at | ((1 << PIECE) - 1)) + 1;
        let until = piece_end.min(end);
        if PIECES_MAPPED.0[(at & FOLD) >> PIECE].get() {
            with(at, until);
        }
        at = until;
    }
}

fn forget_each(start: usize, end: usize) {
    for address in (start..end).step_by(8) {
        granule(address).forget();
    }
}

/// As [`forget_each`]; the nodes are lost to the arena.
fn drop_pages(start: usize, end: usize) {
    const PAGE: usize = 4096 / RATIO;
    let (first, last) = (start.next_multiple_of(PAGE), end & !(PAGE - 1));
    forget_each(start, first);
    sys::drop_pages(BASE + (first & FOLD) * RATIO, (last - first) * RATIO);
    forget_each(last, end);
}

/// As [`born`], if anything is remembered at all.
pub fn renew(start: usize, length: usize) {
    if super::is_on(super::mode::CHECK) {
        born(start, length);
    }
}
