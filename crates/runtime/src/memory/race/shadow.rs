//! Shadow memory: what the race check remembers of each 8 bytes of the program's memory.
//!
//! A [`Granule`] is simple or refers to a [`Node`]. A simple one has the last write and the last read, each
//! with the bytes that it touched; their places in the code lie beside it. A node has a list of accesses, and
//! the clocks of releases.
//!
//! Granules lie in one linear range, in pieces that are mapped when they are needed. Address bits above the
//! 40th are dropped. The memory of a program still does not collide: its image and `brk` heap from 0x5555...,
//! libraries, stacks and mappings from 0x7fff... downwards, an image at a fixed low address, the checked heap
//! at 0x6010..., and `order::key`.

use super::arena;
use super::vector_clock::Known;
use crate::memory::symbolic;
use crate::platform::baton::Guarded;
use crate::platform::sys;
use crate::sched::epoch::{Epoch, NODE};
use crate::sched::hooks;
use crate::wire_log;
use core::cell::Cell;
use core::sync::atomic::Ordering::Relaxed;
use heisen_trace::Note;

/// The number of address bits that count.
pub const FOLDED: u32 = 40;
const FOLD: usize = (1 << FOLDED) - 1;
/// The address of the granules: 16 bytes for each 8.
pub const BASE: usize = 0x1000_0000_0000;
/// The address of the places in the code: 64 bytes for each 8. They lie apart, because most accesses do not
/// need them.
const PLACES: usize = 0x1400_0000_0000;
/// The logarithm of the memory that one piece covers.
pub const PIECE: u32 = 20;
const PIECES: usize = 1 << (40 - PIECE);
/// Bytes of granules for each byte of memory.
pub const RATIO: usize = size_of::<Granule>() / 8;
/// The end of the shadow memory.
pub const END: usize = PLACES + (4 << FOLDED) * RATIO;

/// The logarithm of the alignment of nodes.
const UNIT: u32 = 4;

/// What is remembered of 8 bytes.
#[derive(Debug)]
#[repr(C)]
pub struct Granule {
    /// The last write. With [`NODE`] set, the position of a node in the arena instead.
    pub write: Cell<Epoch>,
    /// The last read. If there is a node, the node has it, too; this copy only shows quickly that a read
    /// repeats the last one. It is empty if the node is exact, where each place counts.
    pub read: Cell<Epoch>,
}

/// What else is remembered of the writes and the reads of a granule.
#[derive(Debug)]
#[repr(C)]
pub struct Places {
    pub write: Place,
    pub read: Place,
}

/// The place of the last access of a kind, and of the older one.
#[derive(Debug)]
#[repr(C)]
pub struct Place {
    pub last: Cell<usize>,
    pub older: Cell<usize>,
    /// The epoch of the older access; its bytes are with the last one.
    pub epoch: Cell<Epoch>,
    /// Makes the size a power of two.
    pad: usize,
}

impl Place {
    /// The older access; `last` is the word of the last one.
    pub fn older(&self, last: Epoch) -> Epoch {
        self.epoch.get().with_bytes(last.older_bytes())
    }
}

/// An access that is remembered.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Access {
    /// Its epoch and its bytes.
    pub epoch: Epoch,
    /// Its place, and above that bits of `heisen_wire::kind`.
    what: u64,
}

const KIND: u32 = 56;

impl Access {
    pub fn new(epoch: Epoch, kind: u32, pc: usize) -> Access {
        Access { epoch, what: pc as u64 | u64::from(kind) << KIND }
    }

    /// The bytes that it touched.
    pub fn bytes(&self) -> u8 {
        self.epoch.bytes()
    }

    pub fn with_bytes(&self, bytes: u8) -> Access {
        Access { epoch: self.epoch.with_bytes(bytes), what: self.what }
    }

    pub fn kind(&self) -> u32 {
        (self.what >> KIND) as u32
    }

    pub fn pc(&self) -> usize {
        (self.what & ((1 << KIND) - 1)) as usize
    }

    /// Whether every access that conflicts with `other`, which came before, also conflicts with this one, as
    /// far as they touch the same bytes.
    pub fn covers(&self, other: &Access) -> bool {
        use heisen_wire::kind::{ATOMIC, PATCHED, WRITE};
        // An atomic or patched access conflicts with fewer accesses.
        let less = !self.kind() | other.kind();
        (self.kind() | !other.kind()) & WRITE != 0 && less & ATOMIC != 0 && less & PATCHED != 0
    }

    /// Whether place and kind are the same.
    pub fn same_place_and_kind(&self, other: &Access) -> bool {
        self.what == other.what
    }
}

/// The clock that releases have left at a variable or object. All zeros is an empty clock, at the first byte.
#[derive(Debug)]
#[repr(C)]
pub struct Left {
    pub known: Known,
    /// With which of the 8 bytes the variable begins.
    byte: Cell<usize>,
    /// The address of the entry of another variable in the same 8 bytes, or 0.
    next: Cell<usize>,
}

impl Left {
    fn next(&self) -> Option<&'static Left> {
        // SAFETY: only ever set by `Node::left`, to a block that holds one as long as the node lives.
        (self.next.get() != 0).then(|| unsafe { &*(self.next.get() as *const Left) })
    }
}

/// What is remembered where a granule is not enough.
#[derive(Debug)]
#[repr(C)]
pub struct Node {
    /// The clock at the variable that begins here, then those at others; see [`left`](Node::left).
    first: Left,
    /// Every place in the code that accesses it is remembered, because it was in an unordered conflict or is
    /// atomic.
    pub exact: Cell<bool>,
    /// It was in an unordered conflict in an earlier execution, and stays exact when the memory is reused.
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
        /// Above this number, one access is forgotten for each new one.
        const MOST: u32 = 4096;
        let (count, room) = (self.count.get(), self.room.get());
        if count == room && room < MOST {
            self.grow();
        } else if count == room {
            wire_log::note(Note::TooManyAccesses);
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

    /// Removes an access; the last one takes its index.
    pub fn remove(&self, index: usize) {
        let accesses = self.accesses();
        accesses[index].set(accesses[accesses.len() - 1].get());
        self.count.set(self.count.get() - 1);
    }

    /// The clock at the variable that begins at that address. Small variables share the 8 bytes, but each
    /// orders threads by itself.
    pub fn left(&self, address: usize) -> &Left {
        let mut left = &self.first;
        while left.byte.get() != address & 7 {
            left = left.next().unwrap_or_else(|| {
                let block: &Left = zeroed();
                block.byte.set(address & 7);
                left.next.set(core::ptr::from_ref(block) as usize);
                block
            });
        }
        left
    }

    fn all_left(&self) -> impl Iterator<Item = &Left> {
        core::iter::successors(Some(&self.first), |left| left.next())
    }

    /// Whether the node holds only accesses, and need not hold all of them.
    fn is_plain(&self) -> bool {
        !self.exact.get() && self.all_left().all(|left| left.known.is_empty())
    }

    fn drop(&self) {
        if self.at.get() != 0 {
            arena::give(self.at.get(), self.room.get() as usize * size_of::<Access>());
        }
        self.first.known.drop();
        let mut next = self.first.next();
        while let Some(left) = next {
            next = left.next();
            left.known.drop();
            arena::give(core::ptr::from_ref(left) as usize, size_of::<Left>());
        }
        arena::give(core::ptr::from_ref(self) as usize, size_of::<Node>());
    }
}

/// A block of the arena that holds a value of all zeros, which must be a valid one.
fn zeroed<T>() -> &'static T {
    let block = arena::take(size_of::<T>());
    // SAFETY: a block of that size, which nothing else uses.
    unsafe {
        core::ptr::write_bytes(block as *mut u8, 0, size_of::<T>());
        &*(block as *const T)
    }
}

pub struct Pieces([Cell<bool>; PIECES]);

/// Which pieces are mapped.
pub static PIECES_MAPPED: Guarded<Pieces> = Guarded::new(Pieces([const { Cell::new(false) }; PIECES]));

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

/// The program is going to access this range: maps its shadow memory once for all executions.
pub fn prepare(from: usize, to: usize) {
    for address in (from & !((1 << PIECE) - 1)..to).step_by(1 << PIECE) {
        granule(address);
    }
}

#[cold]
fn map(piece: usize) {
    for (base, ratio) in [(BASE, RATIO), (PLACES, 4 * RATIO)] {
        sys::map_at(base + (piece << PIECE) * ratio, ratio << PIECE);
    }
    PIECES_MAPPED.0[piece].set(true);
}

impl Granule {
    /// The places of the accesses that it remembers.
    #[inline(always)]
    pub fn places(&self) -> &'static Places {
        let at = PLACES + (core::ptr::from_ref(self) as usize - BASE) * 4;
        // SAFETY: mapped together with the granule, and of four times its size.
        unsafe { &*(at as *const Places) }
    }

    /// Whether it remembers an access by another thread than this one.
    pub fn is_accessed_by_others(&self, me: usize) -> bool {
        if let Some(node) = self.node() {
            return node.accesses().iter().any(|access| access.get().epoch.thread() != me);
        }
        let places = self.places();
        let both = [(self.write.get(), &places.write), (self.read.get(), &places.read)];
        both.into_iter().any(|(last, place)| {
            [last, place.older(last)].into_iter().any(|one| one != Epoch::NONE && one.thread() != me)
        })
    }

    /// Its node, if it has one.
    #[inline(always)]
    pub fn node(&self) -> Option<&'static Node> {
        let write = self.write.get().0;
        let at = arena::BASE + ((write & !NODE) << UNIT) as usize;
        // SAFETY: set by `make_node` to the address of a node, which lives as long as the granule refers to it.
        (write & NODE != 0).then(|| unsafe { &*(at as *const Node) })
    }

    /// Its node; if it has none, a new one with what the granule remembers.
    pub fn make_node(&self) -> &'static Node {
        if let Some(node) = self.node() {
            return node;
        }
        let node: &'static Node = zeroed();
        let places = self.places();
        let both =
            [(self.read.get(), 0, &places.read), (self.write.get(), heisen_wire::kind::WRITE, &places.write)];
        for (epoch, kind, place) in both {
            let last = epoch.with_bytes(epoch.bytes());
            for (one, pc) in [(place.older(epoch), &place.older), (last, &place.last)] {
                if one != Epoch::NONE {
                    node.push(Access::new(one, kind, pc.get()));
                }
            }
        }
        let unit = ((core::ptr::from_ref(node) as usize - arena::BASE) >> UNIT) as u64;
        assert!(unit < NODE);
        self.write.set(Epoch(unit | NODE));
        self.read.set(Epoch::NONE);
        node
    }

    /// Forgets everything, except that it is known to be in a conflict.
    fn forget(&self) {
        if let Some(node) = self.node() {
            if node.known.get() {
                node.count.set(0);
                node.all_left().for_each(|left| left.known.clear());
                self.read.set(Epoch::NONE);
                return;
            }
            node.drop();
        }
        self.write.set(Epoch::NONE);
        self.read.set(Epoch::NONE);
    }

    /// Makes it simple again, if all that is remembered is of one epoch. `access` is the latest.
    pub fn simplify(&self, node: &Node, access: Access) {
        const WRITE: u32 = heisen_wire::kind::WRITE;
        let accesses = node.accesses();
        if !node.is_plain() || accesses.iter().any(|one| !one.get().epoch.same(access.epoch)) {
            return;
        }
        let (mut write, mut read) = (0, 0);
        for one in accesses {
            let one = one.get();
            let (bytes, place) = match one.kind() {
                WRITE => (&mut write, &self.places().write),
                _ => (&mut read, &self.places().read),
            };
            *bytes |= one.bytes();
            place.last.set(one.pc());
        }
        node.drop();
        self.write.set(access.epoch.with_bytes(write));
        self.read.set(access.epoch.with_bytes(read));
    }
}

/// The clock at an object, if there is one.
pub fn left_at(object: usize) -> Option<&'static Known> {
    granule(object).node().map(|node| &node.left(object).known)
}

/// The clock at an object, to which a thread adds its own.
pub fn leave_at(object: usize) -> &'static Known {
    &granule(object).make_node().left(object).known
}

/// Marks an address as known to be in a conflict: every access to it is remembered.
pub fn mark(address: usize) {
    let granule = granule(address);
    let node = granule.make_node();
    node.exact.set(true);
    node.known.set(true);
    granule.read.set(Epoch::NONE);
}

/// The addresses that are known to be in a conflict.
pub fn known() -> impl Iterator<Item = usize> {
    let wire = wire_log::wire();
    let count = wire.racy_count.load(Relaxed) as usize;
    wire.racy.iter().take(count).map(|address| address.load(Relaxed) as usize)
}

/// Marks memory as new: earlier accesses to it cannot conflict with later ones.
pub fn born(start: usize, length: usize) {
    /// From this length on, full pages of granules are returned to the kernel.
    const LARGE: usize = 1 << 16;
    if length >= LARGE {
        each_mapped(start, length, drop_pages);
        known().filter(|&address| address.wrapping_sub(start) < length).for_each(mark);
    } else {
        each_mapped(start, length, forget_each);
    }
}

/// Calls `with` for each granule of a range that remembers an access, with the address of its 8 bytes.
pub fn each_accessed(start: usize, length: usize, with: impl Fn(usize, &Granule)) {
    each_mapped(start, length, |from, to| {
        for address in (from & !7..to).step_by(8) {
            let granule = granule(address);
            if granule.write.get() != Epoch::NONE || granule.read.get() != Epoch::NONE {
                with(address, granule);
            }
        }
    });
}

/// Calls `with` for the parts of a range that have granules, each as long as possible.
fn each_mapped(start: usize, length: usize, with: impl Fn(usize, usize)) {
    let end = start + length;
    let next = |at: usize| ((at | ((1 << PIECE) - 1)) + 1).min(end);
    let is_mapped = |at: usize| PIECES_MAPPED.0[(at & FOLD) >> PIECE].get();
    let mut at = start & !7;
    while at < end {
        let mut until = next(at);
        if is_mapped(at) {
            // Where addresses wrap by folding, the granules of one part do not lie beside those of the next.
            while until < end && until & FOLD != 0 && is_mapped(until) {
                until = next(until);
            }
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

/// As [`forget_each`], but the arena does not get the nodes back.
fn drop_pages(start: usize, end: usize) {
    const PAGE: usize = 4096 / RATIO;
    let (first, last) = (start.next_multiple_of(PAGE), end & !(PAGE - 1));
    forget_each(start, first);
    let (at, size) = (BASE + (first & FOLD) * RATIO, (last - first) * RATIO);
    if !hooks::zero_pages(at, size) {
        sys::drop_pages(at, size);
    }
    forget_each(last, end);
}

/// Plugs this module into the hooks of the scheduler.
pub fn plug_in() {
    hooks::HOOKS.renew_memory.set(renew);
}

/// As [`born`], if the race check is on, and in the symbolic trace.
pub fn renew(start: usize, length: usize) {
    symbolic::renew(start, length);
    if super::is_on(super::mode::CHECK) {
        born(start, length);
    }
}
