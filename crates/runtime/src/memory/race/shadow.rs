//! Shadow memory: what is remembered of each 8 bytes of the program's memory.
//!
//! A [`Granule`] is either simple, with the last write and the last read, each with the bytes it touched, and
//! its place in the code beside it; or it refers to a [`Node`] that has a list of accesses, and what was left there by releases.
//! Granules lie in one linear range, made of pieces that are mapped as they are needed: address bits above the 40th are
//! dropped, which keeps apart what a program has (its image and `brk` heap from 0x5555..., libraries, stacks and mappings
//! from 0x7fff... downwards, an image at a fixed low address, `heap`'s own at 0x6010..., and `order::key`).

use super::arena;
use super::vector_clock::Known;
use crate::platform::baton::Guarded;
use crate::platform::sys;
use crate::sched::epoch::{Epoch, NODE};
use crate::sched::hooks;
use crate::wire_log;
use core::cell::Cell;
use core::sync::atomic::Ordering::Relaxed;
use heisen_trace::Note;

/// The bits of an address that count.
pub const FOLDED: u32 = 40;
const FOLD: usize = (1 << FOLDED) - 1;
/// Where the granules are: 16 bytes for each 8.
pub const BASE: usize = 0x1000_0000_0000;
/// Where the rest is: 64 bytes for each 8. Apart, as most accesses need not look at them.
const PLACES: usize = 0x1400_0000_0000;
/// The logarithm of how much memory one piece is for.
pub const PIECE: u32 = 20;
const PIECES: usize = 1 << (40 - PIECE);
/// Bytes of granules for each byte of memory.
pub const RATIO: usize = size_of::<Granule>() / 8;
/// Where they end.
pub const END: usize = PLACES + (4 << FOLDED) * RATIO;

/// The logarithm of what nodes are aligned to.
const UNIT: u32 = 4;

/// What is remembered of 8 bytes.
#[derive(Debug)]
#[repr(C)]
pub struct Granule {
    /// The last write. With [`NODE`] set, the place of a node in the arena instead.
    pub write: Cell<Epoch>,
    /// The last read. If there is a node, that has it, too, and this is only to see at once that a read is like the last one; it is
    /// never, then, if the node is exact, where each place counts.
    pub read: Cell<Epoch>,
}

/// What else is remembered of the accesses of a granule, its writes and its reads.
#[derive(Debug)]
#[repr(C)]
pub struct Places {
    pub write: Place,
    pub read: Place,
}

/// Where the last access of a kind is, and the older one.
#[derive(Debug)]
#[repr(C)]
pub struct Place {
    pub last: Cell<usize>,
    pub older: Cell<usize>,
    /// When the older one was; its bytes are with the last.
    pub epoch: Cell<Epoch>,
    /// Makes the size a power of two.
    pad: usize,
}

impl Place {
    /// The older access, of which the word of the last one is `last`.
    pub fn older(&self, last: Epoch) -> Epoch {
        self.epoch.get().with_bytes(last.older_bytes())
    }
}

/// An access that is remembered.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Access {
    /// When, and which bytes: one access.
    pub epoch: Epoch,
    /// Its place, and above that bits of `heisen_wire::kind`.
    what: u64,
}

const KIND: u32 = 56;

impl Access {
    pub fn new(epoch: Epoch, kind: u32, pc: usize) -> Access {
        Access { epoch, what: pc as u64 | u64::from(kind) << KIND }
    }

    /// The bytes it touched.
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

    /// Whether whatever conflicts with the other, which came before, conflicts with this one, too, as far as they touch
    /// the same bytes.
    pub fn covers(&self, other: &Access) -> bool {
        use heisen_wire::kind::{ATOMIC, PATCHED, WRITE};
        // What is atomic or patched conflicts with less.
        let less = !self.kind() | other.kind();
        (self.kind() | !other.kind()) & WRITE != 0 && less & ATOMIC != 0 && less & PATCHED != 0
    }

    /// Whether place and kind are the same.
    pub fn alike(&self, other: &Access) -> bool {
        self.what == other.what
    }
}

/// What was left at a variable or object for those that pass. All zeros is nothing, at the first byte.
#[derive(Debug)]
#[repr(C)]
pub struct Left {
    pub known: Known,
    /// Which of the 8 bytes the variable begins with.
    byte: Cell<usize>,
    /// The address of what was left at another variable in the same 8 bytes, or 0.
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
    /// What was left at the variable that begins here, and then at others; see [`left`](Node::left).
    first: Left,
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
        /// Beyond this, one is forgotten for each that comes.
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

    /// Removes one; the last takes its place.
    pub fn remove(&self, index: usize) {
        let accesses = self.accesses();
        accesses[index].set(accesses[accesses.len() - 1].get());
        self.count.set(self.count.get() - 1);
    }

    /// What was left at the variable that begins at that address. Small ones share the 8 bytes, and order threads each for
    /// itself.
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

    /// Whether nothing but accesses is remembered, and not all of them are.
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

/// A block of the arena that holds a value of all zeros, which must be a good one.
fn zeroed<T>() -> &'static T {
    let block = arena::take(size_of::<T>());
    // SAFETY: a block of that size, which nobody else has.
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

/// Memory from here to there is going to be accessed: what is remembered of it is mapped once for all executions.
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
    /// The places of what it remembers.
    #[inline(always)]
    pub fn places(&self) -> &'static Places {
        let at = PLACES + (core::ptr::from_ref(self) as usize - BASE) * 4;
        // SAFETY: mapped together with the granule, and of four times its size.
        unsafe { &*(at as *const Places) }
    }

    /// Its node, if it has one.
    #[inline(always)]
    pub fn node(&self) -> Option<&'static Node> {
        let write = self.write.get().0;
        let at = arena::BASE + ((write & !NODE) << UNIT) as usize;
        // SAFETY: set by `make_node` to the address of a node, which lives as long as the granule refers to it.
        (write & NODE != 0).then(|| unsafe { &*(at as *const Node) })
    }

    /// Its node, made of what it remembers if it has none.
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

    /// Forgets everything, except that it is known to be raced for.
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

    /// Makes it simple again, if it has become so: all that is remembered is of one epoch. `access` is the latest.
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

/// What was left at an object, if anything.
pub fn left_at(object: usize) -> Option<&'static Known> {
    granule(object).node().map(|node| &node.left(object).known)
}

/// Where a thread leaves something at an object.
pub fn leave_at(object: usize) -> &'static Known {
    &granule(object).make_node().left(object).known
}

/// A place is known to be raced for: every access of it is remembered.
pub fn mark(address: usize) {
    let granule = granule(address);
    let node = granule.make_node();
    node.exact.set(true);
    node.known.set(true);
    granule.read.set(Epoch::NONE);
}

/// The places that are known to be raced for.
pub fn known() -> impl Iterator<Item = usize> {
    let wire = wire_log::wire();
    let count = wire.racy_count.load(Relaxed) as usize;
    wire.racy.iter().take(count).map(|address| address.load(Relaxed) as usize)
}

/// Memory is used for something new, and what was before is nobody's concern any more.
pub fn born(start: usize, length: usize) {
    /// From here on, whole pages of granules are given back to the kernel.
    const LARGE: usize = 1 << 16;
    if length >= LARGE {
        each_mapped(start, length, drop_pages);
        known().filter(|&address| address.wrapping_sub(start) < length).for_each(mark);
    } else {
        each_mapped(start, length, forget_each);
    }
}

/// Calls `with` for the parts of a range that have granules, each as long as it can be.
fn each_mapped(start: usize, length: usize, with: impl Fn(usize, usize)) {
    let end = start + length;
    let next = |at: usize| ((at | ((1 << PIECE) - 1)) + 1).min(end);
    let is_mapped = |at: usize| PIECES_MAPPED.0[(at & FOLD) >> PIECE].get();
    let mut at = start & !7;
    while at < end {
        let mut until = next(at);
        if is_mapped(at) {
            // Where addresses are folded, the granules of one part are not beside those of the next.
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

/// As [`forget_each`]; the nodes are lost to the arena.
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

/// Lets the scheduler call this module.
pub fn plug_in() {
    hooks::HOOKS.renew_memory.set(renew);
}

/// As [`born`], if anything is remembered at all.
pub fn renew(start: usize, length: usize) {
    if super::is_on(super::mode::CHECK) {
        born(start, length);
    }
}
