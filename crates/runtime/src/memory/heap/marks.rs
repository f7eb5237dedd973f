//! Marks: one byte for each eight bytes of the checked heap, which says how many of these may be accessed. They
//! work like AddressSanitizer's shadow (USENIX ATC'12, section 3.1). Beyond the used part of the heap all marks
//! are 0; an access there meets no memory.

use super::{BASE, LENGTH};
use crate::platform::sys;

/// The address of the marks.
const MARKS: usize = 0x6100_0000_0000;
/// Bytes of the heap per mark.
const GRAIN: usize = 8;

/// All eight bytes may be accessed; a number below eight: that many of them.
const OPEN: u8 = 0;
/// The first mark of a record.
const RECORD: u8 = 0xf1;
/// A guard: the rest of a record, or of the room of a block.
const GUARD: u8 = 0xf2;
/// Freed.
const FREED: u8 = 0xfd;

/// Reserves the addresses. All marks can be read from the start, and written once the heap has grown there.
pub fn reserve() -> bool {
    sys::reserve_readable(MARKS, LENGTH / GRAIN)
}

/// The heap has grown from one address to another.
pub fn grow(from: usize, to: usize) -> bool {
    sys::make_usable(place(from), (to - from) / GRAIN)
}

/// The address of the mark of an address.
#[inline]
pub fn place(address: usize) -> usize {
    MARKS + (address - BASE) / GRAIN
}

#[inline]
fn of(address: usize) -> u8 {
    // SAFETY: the marks of the full range can be read; callers pass addresses of the heap.
    unsafe { (place(address) as *const u8).read() }
}

/// Sets this many marks. It does not call `memset`, which may be intercepted.
#[inline]
fn set(at: usize, value: u8, count: usize) {
    /// A word at any address.
    #[repr(C, packed)]
    struct Unaligned(u64);
    let word = u64::from_ne_bytes([value; 8]);
    let mut at = at;
    let mut left = count;
    if left > 256 {
        fill_bytes(at, value, left);
        return;
    }
    // SAFETY: callers pass marks of the part to which the heap has grown. The stores are volatile so that the
    // compiler does not turn them into a call.
    unsafe {
        while left >= 8 {
            (at as *mut Unaligned).write_volatile(Unaligned(word));
            at += 8;
            left -= 8;
        }
        while left > 0 {
            (at as *mut u8).write_volatile(value);
            at += 1;
            left -= 1;
        }
    }
}

/// Fills memory of this heap. It does not call `memset`, which may be intercepted.
pub fn fill_bytes(at: usize, value: u8, count: usize) {
    // SAFETY: callers pass memory that is theirs.
    unsafe {
        core::arch::asm!("rep stosb", in("al") value, inout("rdi") at => _, inout("rcx") count => _,
            options(nostack, preserves_flags));
    }
}

/// Marks that a record begins here.
#[inline]
pub fn record(at: usize, bytes: usize) {
    set(place(at), GUARD, bytes / GRAIN);
    set(place(at), RECORD, 1);
}

/// Marks that these bytes must not be accessed.
#[inline]
pub fn guard(at: usize, bytes: usize) {
    set(place(at), GUARD, bytes / GRAIN);
}

/// Marks that these bytes may be accessed.
#[inline]
pub fn open(start: usize, bytes: usize) {
    set(place(start), OPEN, bytes / GRAIN);
}

/// Marks that the rest of the room must not be accessed.
#[inline]
pub fn close(start: usize, bytes: usize, room: usize) {
    let mut at = bytes / GRAIN;
    if !bytes.is_multiple_of(GRAIN) {
        set(place(start) + at, (bytes % GRAIN) as u8, 1);
        at += 1;
    }
    set(place(start) + at, GUARD, room / GRAIN - at);
}

/// Marks these bytes as freed.
#[inline]
pub fn freed(start: usize, room: usize) {
    set(place(start), FREED, room / GRAIN);
}

/// Whether a record begins here.
#[inline]
pub fn is_record(at: usize) -> bool {
    of(at) == RECORD
}

/// Whether these bytes, of which the first is in the heap, may clearly be accessed. If not, [`first_bad`]
/// decides.
#[inline]
pub fn clean(address: usize, size: usize) -> bool {
    // Between two blocks lies at least a record, so for a short range it is enough to check both ends.
    of(address) == OPEN
        && ((address % GRAIN) + size <= GRAIN
            || size <= super::blocks::RECORD
                && address + size <= BASE + LENGTH
                && of(address + size - 1) == OPEN)
}

/// The first of these bytes that must not be accessed.
pub fn first_bad(address: usize, size: usize) -> Option<usize> {
    let end = address.saturating_add(size).min(BASE + LENGTH);
    let mut at = address;
    while at < end {
        let grain = at & !(GRAIN - 1);
        let good = match of(grain) {
            OPEN => GRAIN,
            part if (part as usize) < GRAIN => part as usize,
            _ => 0,
        };
        let bad = at.max(grain + good);
        if good < GRAIN && bad < end && bad < grain + GRAIN {
            return Some(bad);
        }
        at = grain + GRAIN;
    }
    None
}

/// The record at or before this address; `None` if there is none.
pub fn last_record(address: usize) -> Option<usize> {
    // Records begin at every other mark.
    let mut at = address & !(2 * GRAIN - 1);
    while at >= BASE {
        if is_record(at) {
            return Some(at);
        }
        at -= 2 * GRAIN;
    }
    None
}

/// The first record between two addresses.
pub fn next_record(from: usize, to: usize) -> Option<usize> {
    (from..to).step_by(2 * GRAIN).find(|&at| is_record(at))
}
