//! Vector clocks: for each thread, up to which of its epochs something is ordered. A clock is as long as its
//! highest thread number requires.

use super::arena;
use core::cell::Cell;
use heisen_wire::MAX_THREADS;

/// One vector clock. All zeros is an empty clock.
#[derive(Debug)]
#[repr(C)]
pub struct Clock {
    at: Cell<usize>,
    length: Cell<u32>,
    /// Room, in entries.
    room: Cell<u32>,
}

impl Clock {
    pub const fn new() -> Clock {
        Clock { at: Cell::new(0), length: Cell::new(0), room: Cell::new(0) }
    }

    fn entries(&self) -> &[Cell<u32>] {
        if self.at.get() == 0 {
            return &[];
        }
        // SAFETY: so many entries are there, in a block that is this clock's alone.
        unsafe { core::slice::from_raw_parts(self.at.get() as *const Cell<u32>, self.length.get() as usize) }
    }

    /// The entry of a thread.
    #[inline(always)]
    pub fn of(&self, thread: usize) -> u32 {
        if thread < self.length.get() as usize {
            // SAFETY: within the length.
            unsafe { *(self.at.get() as *const u32).add(thread) }
        } else {
            0
        }
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.length.get() == 0
    }

    fn lengthen(&self, length: usize) {
        let old = self.length.get() as usize;
        if length <= old {
            return;
        }
        // In memory that was restored by prediction a clock may be garbage, and its length gigabytes. The panic ends
        // the runner, and the execution is discarded.
        assert!(length <= MAX_THREADS);
        if length > self.room.get() as usize {
            let room = length.next_power_of_two().max(4);
            let block = arena::take(room * 4);
            if self.at.get() != 0 {
                // SAFETY: both blocks are large enough for the old entries, and are not the same.
                unsafe {
                    core::ptr::copy_nonoverlapping(self.at.get() as *const u32, block as *mut u32, old);
                }
                arena::give(self.at.get(), self.room.get() as usize * 4);
            }
            self.at.set(block);
            self.room.set(room as u32);
        }
        self.length.set(length as u32);
        for entry in &self.entries()[old..] {
            entry.set(0);
        }
    }

    /// Sets the entry of a thread.
    pub fn set(&self, thread: usize, to: u32) {
        self.lengthen(thread + 1);
        self.entries()[thread].set(to);
    }

    /// Joins another clock: takes the larger of each two entries.
    pub fn join(&self, other: &Clock) {
        self.lengthen(other.length.get() as usize);
        for (mine, theirs) in self.entries().iter().zip(other.entries()) {
            mine.set(mine.get().max(theirs.get()));
        }
    }

    /// Makes it empty.
    pub fn clear(&self) {
        self.length.set(0);
    }

    /// Makes it empty, and frees its memory.
    pub fn drop(&self) {
        if self.at.get() != 0 {
            arena::give(self.at.get(), self.room.get() as usize * 4);
        }
        self.at.set(0);
        self.length.set(0);
        self.room.set(0);
    }
}

/// The clocks of the two orders that count; see the rule in `race`.
#[derive(Debug)]
#[repr(C)]
pub struct Known {
    /// By scheduling points alone. A pair that this leaves unordered may happen in another order.
    pub points: Clock,
    /// By all operations. A conflict that this leaves unordered is a data race. It includes the order of
    /// `points`.
    pub all: Clock,
}

impl Known {
    pub const fn new() -> Known {
        Known { points: Clock::new(), all: Clock::new() }
    }

    /// Joins the other clocks.
    pub fn join(&self, other: &Known) {
        self.points.join(&other.points);
        self.all.join(&other.all);
    }

    /// As [`join`](Known::join), by an operation that is a scheduling point or not.
    pub fn join_by(&self, is_point: bool, other: &Known) {
        if is_point {
            self.points.join(&other.points);
        }
        self.all.join(&other.all);
    }

    /// Whether both are empty.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Sets the entry of a thread.
    pub fn set(&self, thread: usize, to: u32) {
        self.points.set(thread, to);
        self.all.set(thread, to);
    }

    /// Makes both empty.
    pub fn clear(&self) {
        self.points.clear();
        self.all.clear();
    }

    /// Makes both empty, and frees their memory.
    pub fn drop(&self) {
        self.points.drop();
        self.all.drop();
    }
}
