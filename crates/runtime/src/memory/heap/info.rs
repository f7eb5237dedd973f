//! Finds the block of an address, and tells whether a pointer may be a block of glibc.

use super::blocks::{self, Block, RECORD, state};
use super::{ALIGN, arenas, contains, marks};
use crate::platform::sys;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A block, for reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// The address of its first byte.
    pub start: usize,
    /// Its size.
    pub size: usize,
    /// Its number, in the order in which blocks were allocated.
    pub serial: u64,
    /// The thread that allocated it.
    pub thread: u16,
    /// The code address at which it was allocated.
    pub pc: usize,
}

/// The block, in use or freed, in which an address lies.
pub fn block_of(address: usize) -> Option<Info> {
    if !contains(address) || !arenas::reaches(address, 0) {
        return None;
    }
    let block = blocks::at(marks::last_record(address)? + RECORD)?;
    let (thread, pc) = block.allocated();
    (address.wrapping_sub(block.start()) < block.size().max(1)).then_some(Info {
        start: block.start(),
        size: block.size(),
        serial: block.serial().into(),
        thread,
        pc,
    })
}

/// The block to which a bad address belongs: the one that contains it, or the nearer of two.
pub fn containing(address: usize) -> Option<Block> {
    if !arenas::reaches(address, RECORD) {
        return None;
    }
    let lower = marks::last_record(address).and_then(|at| blocks::at(at + RECORD));
    let Some(lower) = lower.filter(|lower| address < lower.start()) else {
        // The record behind may be nearer than the end before.
        return lower;
    };
    // In the record of a block: before its start, or behind the end of the previous block.
    let before = lower.start().checked_sub(RECORD + 1).and_then(marks::last_record);
    let before = before.and_then(|at| blocks::at(at + RECORD)).filter(|before| before.state() == state::LIVE);
    match before {
        Some(before) if address - (before.start() + before.size()) <= lower.start() - address => Some(before),
        _ => Some(lower),
    }
}

/// Where glibc's own heap begins; 0 while it is not used.
pub static GLIBC: AtomicUsize = AtomicUsize::new(0);

/// Whether this pointer can be a block of glibc: in its heap at the program break, or one with a mapping of its
/// own.
pub fn may_be_of_glibc(address: usize) -> bool {
    const PAGE: usize = 4096;
    if !address.is_multiple_of(ALIGN) {
        return false;
    }
    if (GLIBC.load(Relaxed)..sys::program_break()).contains(&address) {
        return true;
    }
    let mut mapped = false;
    sys::each_mapping(|from, to, rights, name| {
        mapped |= &rights[1..] == b"w-p" && name.is_empty() && (from + ALIGN..to).contains(&address);
    });
    // A block with a mapping of its own has two words before it: 0, and its size in full pages with a flag for
    // this kind of block.
    const OF_ITS_OWN: usize = 2;
    let before = |words: usize| {
        // SAFETY: the mapping can be read, and contains that much before the address.
        unsafe { *((address - words * size_of::<usize>()) as *const usize) }
    };
    mapped && address % PAGE == ALIGN && before(2) == 0 && before(1) % PAGE == OF_ITS_OWN && before(1) > PAGE
}
