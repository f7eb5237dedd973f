//! What is known of an address: the block that it belongs to, or whose memory it is.

use super::blocks::{self, Block, RECORD, state};
use super::{ALIGN, contains, marks};
use crate::platform::sys;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A block, for reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// Its first byte.
    pub start: usize,
    /// Its bytes.
    pub size: usize,
    /// Its number, in the order in which blocks were allocated.
    pub serial: u64,
    /// The thread that allocated it.
    pub thread: u16,
    /// Where.
    pub pc: usize,
}

/// The block, live or freed, that an address lies in.
pub fn block_of(address: usize) -> Option<Info> {
    if !contains(address) || address >= blocks::frontier() {
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

/// The block that a bad address belongs to: the one it is in or, between two, the nearer one.
pub fn around(address: usize) -> Option<Block> {
    if address >= blocks::frontier() + RECORD {
        return None;
    }
    let lower = marks::last_record(address).and_then(|at| blocks::at(at + RECORD));
    let Some(lower) = lower.filter(|lower| address < lower.start()) else {
        // The record behind may be nearer than the end before.
        return lower;
    };
    // In the record of a block: before its start, or behind the end of the one before.
    let before = lower.start().checked_sub(RECORD + 1).and_then(marks::last_record);
    let before = before.and_then(|at| blocks::at(at + RECORD)).filter(|before| before.state() == state::LIVE);
    match before {
        Some(before) if address - (before.start() + before.size()) <= lower.start() - address => Some(before),
        _ => Some(lower),
    }
}

/// Where glibc's own heap begins; 0 while it is not used.
pub static GLIBC: AtomicUsize = AtomicUsize::new(0);

/// Whether this pointer can be of a block of glibc's: of its heap at the program's break, or one with a mapping of its own.
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
    // There, two words lie before it: 0, and how many whole pages it has, with a bit that says that it is such a one.
    const OF_ITS_OWN: usize = 2;
    let before = |words: usize| {
        // SAFETY: the mapping can be read, and has so much before the address.
        unsafe { *((address - words * size_of::<usize>()) as *const usize) }
    };
    mapped && address % PAGE == ALIGN && before(2) == 0 && before(1) % PAGE == OF_ITS_OWN && before(1) > PAGE
}
