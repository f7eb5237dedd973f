//! The addresses of the symbolic runtime: reserved when the library is loaded, and filled with memory by the kernel where
//! they are touched.
//!
//! Address bits above the 40th are dropped, as in the shadow memory of the race check, which says why nothing collides.

use crate::memory::race::shadow::FOLDED;
use crate::platform::sys;
use core::cell::Cell;
use heisen_wire::MAX_THREADS;

/// The mapping of the trace.
pub const TRACE: usize = 0x2000_0000_0000;
/// The tables of this module, of [`terms`](super::terms) and of [`inputs`](super::inputs).
const TABLES: usize = 0x2200_0000_0000;
/// The [`Identities`] of threads, which stay for later executions.
const IDENTITIES: usize = 0x2300_0000_0000;
/// For each granule of memory who has accessed it, in any execution: 4 bytes each.
const OWNERS: usize = 0x2400_0000_0000;
/// For each byte of memory the expression that it holds a part of: 8 bytes each.
const PARTS: usize = 0x2800_0000_0000;
const END: usize = PARTS + 8 * (1 << FOLDED);

const FOLD: usize = (1 << FOLDED) - 1;
/// The logarithm of the size of a page of the program.
const PAGE_BITS: u32 = 12;
pub const PAGE: usize = 1 << PAGE_BITS;
const PAGES: usize = 1 << (FOLDED - PAGE_BITS);

/// The number of entries of the table by which nodes are found, a power of two.
pub const CACHE: usize = 1 << 18;
/// The largest number of nodes.
const NODES: usize = 1 << 32;

/// What lies at [`TABLES`]. It begins as zeros.
#[repr(C)]
pub struct Tables {
    /// No thread with this number or a higher one has read an input.
    pub readers: Cell<usize>,
    /// How many inputs each thread has read.
    pub inputs: [Cell<u64>; MAX_THREADS],
    /// Ids of nodes, by a hash of their content.
    pub cache: [Cell<u32>; CACHE],
    /// For each id: which bits may be 1.
    pub bits: [Cell<u64>; NODES],
    /// For each id: the thread, plus 1, that has branched on the node or replaced it by its value.
    pub known_to: [Cell<u16>; NODES],
    /// No thread with this number or a higher one has an identity yet.
    pub threads: Cell<usize>,
    /// For each thread its identity in [`Identities`], plus 1; 0 if it was not looked for yet.
    pub identities: [Cell<u32>; MAX_THREADS],
    /// Which pages of the program have expressions.
    pub held: Touched,
}

/// The threads of all executions, by their keys; see `heisen_trace::hash::thread_key`. The numbers of threads differ from
/// execution to execution.
#[repr(C)]
pub struct Identities {
    pub count: Cell<usize>,
    pub keys: [Cell<u64>; MAX_THREADS],
}

/// A set of pages of the program.
#[repr(C)]
pub struct Touched {
    count: Cell<usize>,
    /// The numbers of the pages.
    list: [Cell<u32>; PAGES],
    is_in: [Cell<bool>; PAGES],
}

const _: () = assert!(TABLES + size_of::<Tables>() <= IDENTITIES);
const _: () = assert!(IDENTITIES + size_of::<Identities>() <= OWNERS);
const _: () = assert!(OWNERS + (1 << FOLDED) <= PARTS);

/// Reserves the addresses. Returns whether they are unused.
///
/// What is known of the threads and of the memory that they access is shared by all processes that are forked from this
/// one: an execution in a process of its own adds to it, too.
pub fn reserve() -> bool {
    sys::reserve_usable(TABLES, IDENTITIES - TABLES)
        && sys::reserve_shared(IDENTITIES, PARTS - IDENTITIES)
        && sys::reserve_usable(PARTS, END - PARTS)
}

/// Whether an address belongs to the symbolic runtime, and not to the program.
pub fn owns(address: usize) -> bool {
    (TRACE..END).contains(&address)
}

#[inline(always)]
pub fn tables() -> &'static Tables {
    // SAFETY: `reserve` has made this memory usable before the first execution. It consists of cells, for which zeros are
    // valid, and only the thread that runs uses it.
    unsafe { &*(TABLES as *const Tables) }
}

#[inline(always)]
pub fn identities() -> &'static Identities {
    // SAFETY: as above.
    unsafe { &*(IDENTITIES as *const Identities) }
}

impl Touched {
    #[inline(always)]
    pub fn has(&self, address: usize) -> bool {
        self.is_in[(address & FOLD) >> PAGE_BITS].get()
    }

    #[inline(always)]
    pub fn add(&self, address: usize) {
        let page = (address & FOLD) >> PAGE_BITS;
        if !self.is_in[page].get() {
            self.is_in[page].set(true);
            self.list[self.count.get()].set(page as u32);
            self.count.set(self.count.get() + 1);
        }
    }

    /// Empties the set, and fills with zeros what lies from `base` on for its pages, `ratio` bytes for each byte.
    fn forget(&self, base: usize, ratio: usize) {
        for place in &self.list[..self.count.replace(0)] {
            let page = place.get() as usize;
            self.is_in[page].set(false);
            let (at, length) = (base + (page << PAGE_BITS) * ratio, PAGE * ratio);
            // SAFETY: within the reserved memory, of which nothing is borrowed here.
            unsafe { core::ptr::write_bytes(at as *mut u8, 0, length) };
        }
    }
}

/// Who has accessed the granule of an address.
#[inline(always)]
pub fn owner(address: usize) -> &'static Cell<u32> {
    // SAFETY: within the reserved memory, which consists of cells.
    unsafe { &*((OWNERS + (address & FOLD & !3)) as *const Cell<u32>) }
}

/// What the byte at an address holds.
#[inline(always)]
pub fn part(address: usize) -> &'static Cell<u64> {
    // SAFETY: as above.
    unsafe { &*((PARTS + (address & FOLD) * 8) as *const Cell<u64>) }
}

/// Forgets everything that an execution has left behind. The table of nodes stays: an entry counts only if the node with
/// that id has the content that is looked for.
pub fn forget() {
    let tables = tables();
    tables.held.forget(PARTS, 8);
    tables.identities[..tables.threads.replace(0)].iter().for_each(|identity| identity.set(0));
}
