//! Reports memory errors of the checked heap to the engine. The execution ends there, because the behaviour
//! after the error is undefined.

use super::blocks::{self, Block};
use super::info;
use crate::memory::symbolic;
use crate::platform::sys;
use crate::sched::SCHED;
use crate::sched::pause;
use crate::wire_log;
use core::sync::atomic::Ordering::Relaxed;
use heisen_wire::{NO_THREAD, end, misuse};

/// Reports an error: an access of `size` bytes, or a call with this address, is wrong because of the byte at
/// `bad`.
#[cold]
pub fn fail(what: u32, address: usize, size: usize, bad: usize, block: Option<Block>, pc: usize) -> ! {
    describe(address, size, bad, block);
    tell(what, address, pc)
}

/// Reports an error that was described, and ends the execution.
pub fn tell(what: u32, address: usize, pc: usize) -> ! {
    if !SCHED.running.get() {
        // Before the zygote parks there is no execution to report on.
        sys::write(2, b"heisen: a memory error (");
        sys::write(2, name(what));
        sys::write(2, b") before the first execution\n");
        sys::kill(sys::getpid(), sys::SIGKILL);
    }
    symbolic::fails(address, pc);
    pause::memory_error(what, address, pc);
    pause::finish(end::ABORT, 0, pc)
}

fn name(what: u32) -> &'static [u8] {
    match what {
        misuse::USE_AFTER_FREE_READ | misuse::USE_AFTER_FREE_WRITE => b"use after free",
        misuse::REALLOC_FREED => b"realloc of a freed block",
        misuse::DOUBLE_FREE => b"double free",
        misuse::INVALID_FREE => b"invalid free",
        _ => b"heap overflow",
    }
}

/// Reports that a pointer passed to `free` or `realloc` is not a block in use: it was freed before (error
/// `freed`), or it is not a block.
#[cold]
pub fn not_live(address: usize, freed: u32, pc: usize) -> ! {
    match blocks::at(address) {
        Some(block) if block.is_freed() => fail(freed, address, 0, address, Some(block), pc),
        // Its record was overwritten.
        Some(block) => fail(misuse::HEAP_TRAMPLED, address, 0, address, Some(block), pc),
        None => fail(misuse::INVALID_FREE, address, 0, address, info::containing(address), pc),
    }
}

/// Tells the engine, for a stop, in which block an address lies; block number 0 means none.
pub fn tell_block(address: usize) {
    let heap = &wire_log::wire().heap;
    let Some(block) = super::block_of(address) else {
        heap.serial.store(0, Relaxed);
        return;
    };
    heap.serial.store(block.serial, Relaxed);
    heap.size.store(block.size as u64, Relaxed);
    heap.offset.store((address - block.start) as u64, Relaxed);
    heap.alloc_thread.store(block.thread.into(), Relaxed);
    heap.alloc_pc.store(block.pc as u64, Relaxed);
}

/// Writes the description of the error to the wire.
fn describe(address: usize, size: usize, bad: usize, block: Option<Block>) {
    let heap = &wire_log::wire().heap;
    heap.access.store(size as u64, Relaxed);
    let Some(block) = block else {
        heap.serial.store(0, Relaxed);
        return;
    };
    let (thread, pc) = block.allocated();
    let (freed_by, free_pc) = block.freed();
    let freed = block.is_freed();
    // An overflow is described by the first byte outside the block, other errors by the start of the access.
    let at = if freed { address } else { bad };
    heap.serial.store(block.serial().into(), Relaxed);
    heap.size.store(block.size() as u64, Relaxed);
    heap.offset.store((at as u64).wrapping_sub(block.start() as u64), Relaxed);
    heap.alloc_thread.store(thread.into(), Relaxed);
    heap.alloc_pc.store(pc as u64, Relaxed);
    heap.free_thread.store(if freed { freed_by.into() } else { NO_THREAD }, Relaxed);
    heap.free_pc.store(free_pc as u64, Relaxed);
}
