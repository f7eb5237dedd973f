//! Arenas: the parts of the checked heap in which new blocks are made, one behind the other.
//!
//! Usually there is one. In a symbolic build each thread has an arena of its own, and no block is reused, so the address of
//! a block depends on what its own thread has done, and not on when other threads allocate. All other searches may rely on
//! the schedule for that. A thread whose arena is full, or belongs to another thread, allocates from the common arena:
//! addresses there depend on all threads, and the symbolic trace says so.

use super::{BASE, LENGTH, marks};
use crate::memory::symbolic;
use crate::platform::baton::Guarded;
use crate::platform::sys;
use crate::sched::{NONE, me, thread};
use core::cell::Cell;

/// How many threads have an arena, and its size.
const OWN: usize = 64;
const SHARE: usize = 64 << 20;
/// The threads that the main thread creates have the first arenas behind its own, in the order of creation. All others
/// share out the rest by their keys.
const CHILDREN: u64 = 48;
/// The index of the common arena, behind all others.
const COMMON: usize = OWN;
/// How much of the common arena is made usable at a time.
const STEP: usize = 4 << 20;

#[derive(Debug)]
struct Arena {
    /// Where the next record will be; 0 before the first block.
    frontier: Cell<usize>,
    /// The key of the thread that it belongs to; 0 if it belongs to none yet.
    owner: Cell<u64>,
}

struct Arenas {
    all: [Arena; OWN + 1],
    /// Whether threads have arenas of their own.
    divided: Cell<bool>,
    /// The end of the usable part of the common arena.
    usable: Cell<usize>,
}

static ARENAS: Guarded<Arenas> = Guarded::new(Arenas {
    all: [const { Arena { frontier: Cell::new(0), owner: Cell::new(0) } }; OWN + 1],
    divided: Cell::new(false),
    usable: Cell::new(BASE),
});

/// Makes the first parts usable. Returns whether it succeeded.
pub fn begin(divided: bool) -> bool {
    ARENAS.divided.set(divided);
    // All arenas of threads lie in one mapping, which is made before any snapshot.
    let first = if divided { OWN * SHARE } else { 0 };
    grow(BASE + first + STEP)
}

/// Whether threads have arenas of their own, and blocks are not reused.
#[inline]
pub fn divided() -> bool {
    ARENAS.divided.get()
}

/// Makes the range usable up to an address, together with its marks.
#[cold]
fn grow(to: usize) -> bool {
    let from = ARENAS.usable.get();
    let to = to.next_multiple_of(STEP);
    if to > BASE + LENGTH || !sys::make_usable(from, to - from) || !marks::grow(from, to) {
        return false;
    }
    ARENAS.usable.set(to);
    true
}

/// The first address of an arena.
fn base(index: usize) -> usize {
    if divided() { BASE + index * SHARE } else { BASE }
}

/// The arena in which the running thread makes a block, which takes this many bytes with its records.
fn choose(bytes: usize) -> usize {
    let (index, key) = own();
    let arena = &ARENAS.all[index];
    if arena.owner.get() == 0 {
        arena.owner.set(key);
    }
    if arena.owner.get() == key && frontier(index) + bytes <= base(index) + SHARE {
        return index;
    }
    symbolic::depends_on_allocations();
    COMMON
}

/// The arena that the running thread may have, and the key of the thread, which is not 0.
fn own() -> (usize, u64) {
    let (number, key) = (me(), symbolic::inputs::key(me()).max(1));
    let child = u64::from(thread(number).child.get());
    match thread(number).parent.get() {
        NONE => (0, key),
        0 if child < CHILDREN => (child as usize, key),
        _ => ((CHILDREN + key % (OWN as u64 - CHILDREN)) as usize, key),
    }
}

/// Where the next record of an arena will be.
fn frontier(index: usize) -> usize {
    match ARENAS.all[index].frontier.get() {
        0 => base(index),
        at => at,
    }
}

/// The addresses of a new block of so many bytes, between two records of `record` bytes: where the first record begins.
#[inline]
pub fn place(room: usize, record: usize) -> Option<(Place, usize)> {
    let bytes = room + 2 * record;
    let index = if divided() { choose(bytes) } else { COMMON };
    let at = frontier(index);
    if index == COMMON && at + bytes > ARENAS.usable.get() && !grow(at + bytes) {
        return None;
    }
    Some((Place { index, is_first: ARENAS.all[index].frontier.get() == 0 }, at))
}

/// A place for a block.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    index: usize,
    /// Whether the arena has no record yet.
    pub is_first: bool,
}

impl Place {
    /// The next record of the arena will be here.
    #[inline]
    pub fn end(self, at: usize) {
        ARENAS.all[self.index].frontier.set(at);
    }
}

/// The used parts: where they begin and end. The end is where the next record will be.
pub fn used() -> impl Iterator<Item = (usize, usize)> {
    let parts = ARENAS.all.iter().enumerate().map(|(index, arena)| (base(index), arena.frontier.get()));
    parts.filter(|(_, end)| *end != 0)
}

/// Whether an address lies in a used part, or at most so many bytes behind it.
pub fn reaches(address: usize, behind: usize) -> bool {
    used().any(|(from, to)| (from..to + behind).contains(&address))
}
