//! The access points: places in the code whose accesses are scheduling points.
//!
//! The parked zygote copies them from the wire, so that executions find them in memory of their own.

use super::{arena, shadow};
use crate::platform::baton::Guarded;
use crate::wire_log;
use core::cell::Cell;
use core::sync::atomic::Ordering::Relaxed;

struct Table {
    /// A hash table of code addresses; its length is a power of two.
    at: Cell<usize>,
    mask: Cell<usize>,
    version: Cell<u32>,
}

static TABLE: Guarded<Table> =
    Guarded::new(Table { at: Cell::new(0), mask: Cell::new(0), version: Cell::new(0) });

fn slots() -> &'static [Cell<usize>] {
    if TABLE.at.get() == 0 {
        return &[];
    }
    // SAFETY: the table has that many entries; it is replaced only in the zygote, where nothing holds it.
    unsafe { core::slice::from_raw_parts(TABLE.at.get() as *const Cell<usize>, TABLE.mask.get() + 1) }
}

fn hash(pc: usize) -> usize {
    pc.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}

/// Whether there are any access points.
pub fn any() -> bool {
    TABLE.at.get() != 0
}

/// Whether an access at this code address is a scheduling point.
#[inline]
pub fn has(pc: usize) -> bool {
    let slots = slots();
    if slots.is_empty() {
        return false;
    }
    let mut index = hash(pc) & TABLE.mask.get();
    loop {
        match slots[index].get() {
            0 => return false,
            found if found == pc => return true,
            _ => index = (index + 1) & TABLE.mask.get(),
        }
    }
}

/// In the zygote: copies the access points that the engine has written.
pub fn renew() {
    let wire = wire_log::wire();
    let version = wire.points_version.load(Relaxed);
    if TABLE.version.replace(version) == version {
        return;
    }
    if TABLE.at.get() != 0 {
        arena::give(TABLE.at.get(), (TABLE.mask.get() + 1) * 8);
        TABLE.at.set(0);
    }
    let count = wire.points_count.load(Relaxed) as usize;
    if count != 0 {
        let room = (count * 4).next_power_of_two();
        TABLE.at.set(arena::take(room * 8));
        TABLE.mask.set(room - 1);
        for slot in slots() {
            slot.set(0);
        }
        for pc in wire.points.iter().take(count) {
            add(pc.load(Relaxed) as usize);
        }
    }
    shadow::known().for_each(shadow::mark);
}

fn add(pc: usize) {
    let mut index = hash(pc) & TABLE.mask.get();
    while slots()[index].get() != 0 {
        index = (index + 1) & TABLE.mask.get();
    }
    slots()[index].set(pc);
}
