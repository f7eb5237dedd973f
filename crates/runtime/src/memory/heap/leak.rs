//! Leaks: finds blocks that are in use at the end and that nothing points to. It works like a conservative
//! garbage collector: any aligned word that could be the address of a byte of a block counts as a pointer to
//! it. It scans:
//!
//! - all private writable memory: the program's variables, glibc's heap, the program's mappings;
//! - the stacks of live threads, from their stack pointers on;
//! - every block that was reached.
//!
//! The registers of a thread are on its stack, because it is switched out or in a call to this function.

use super::blocks::{self, Block, state};
use super::{BASE, HEAP, arenas, contains, error, marks, quarantine, serves};
use crate::carrier::fibers;
use crate::memory::{race, symbolic};
use crate::platform::registers;
use crate::platform::sys;
use crate::sched::{SCHED, Thread, me, thread, threads};
use crate::wire_log;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use heisen_wire::{NO_THREAD, misuse};

/// A larger mapping is not scanned: no program under test fills it.
const HUGE: usize = 1 << 34;
const WORD: usize = size_of::<usize>();

/// Blocks that were reached and are still to be scanned. There is room for as many as there are blocks.
struct Pending {
    at: usize,
    count: usize,
}

/// The process is about to end. If the check looks for leaks and finds any, the execution ends here with that
/// finding.
#[inline(never)]
pub fn look_for_leaks(pc: usize) {
    if HEAP.leaks.get() && serves() && SCHED.running.get() {
        clear_dead_frames();
        look(pc);
    }
}

/// Overwrites what calls that have returned have left on the stack. Otherwise a stale pointer may lie between the variables
/// of [`look`], where it would count as one of the program's.
#[inline(never)]
fn clear_dead_frames() {
    let mut dead = [0_usize; 512];
    core::hint::black_box(&mut dead);
}

#[inline(never)]
fn look(pc: usize) {
    let live = blocks::all().filter(|block| block.state() == state::LIVE).count();
    let bytes = (live * WORD).next_multiple_of(4096).max(4096);
    let Some(at) = sys::map_stack(bytes) else { return };
    let mut pending = Pending { at, count: 0 };
    let registers = [const { AtomicU64::new(0) }; 8];
    registers::capture(&registers);
    // Thread-local variables of an ended thread, which lie below its control block, do not count as pointers.
    for (_, t) in threads().filter(|(_, t)| t.ended.get()) {
        if let Some(block) = lies_in(t.fs.get()) {
            block.set_state(state::SEEN);
            scan(t.fs.get(), block.start() + block.size(), &mut pending);
        }
    }
    let stack = registers.as_ptr() as usize;
    scan(stack, stack + size_of_val(&registers), &mut pending);
    roots(stack, &mut pending);
    while pending.count > 0 {
        pending.count -= 1;
        // SAFETY: within the mapping, and written before.
        let start = unsafe { *((pending.at + pending.count * WORD) as *const usize) };
        if let Some(block) = blocks::at(start) {
            scan(start, start + block.size(), &mut pending);
        }
    }
    sys::unmap(at, bytes);
    let (mut count, mut bytes, mut first) = (0u64, 0u64, None);
    for block in blocks::all() {
        match block.state() {
            state::SEEN => block.set_state(state::LIVE),
            state::LIVE => {
                count += 1;
                bytes += block.size() as u64;
                first = first.into_iter().chain([block]).min_by_key(|block| block.serial());
            }
            _ => {}
        }
    }
    let Some(first) = first else { return };
    let heap = &wire_log::wire().heap;
    let (thread, from) = first.allocated();
    heap.leaked_blocks.store(count, Relaxed);
    heap.leaked_bytes.store(bytes, Relaxed);
    heap.serial.store(first.serial().into(), Relaxed);
    heap.size.store(first.size() as u64, Relaxed);
    heap.offset.store(0, Relaxed);
    heap.alloc_thread.store(thread.into(), Relaxed);
    heap.alloc_pc.store(from as u64, Relaxed);
    heap.free_thread.store(NO_THREAD, Relaxed);
    error::tell(misuse::LEAK, first.start(), pc)
}

/// The block in use in which an address lies.
fn lies_in(address: usize) -> Option<Block> {
    if !contains(address) || !arenas::reaches(address, 0) {
        return None;
    }
    let block = blocks::at(marks::last_record(address)? + blocks::RECORD)?;
    let inside = (block.start()..=block.start() + block.size()).contains(&address);
    (inside && block.state() == state::LIVE).then_some(block)
}

/// Scans the words of a range of memory.
fn scan(from: usize, to: usize, pending: &mut Pending) {
    let mut at = from.next_multiple_of(WORD);
    while at + WORD <= to {
        // SAFETY: callers pass memory that can be read. The read is volatile, because any thread may own the
        // memory.
        let value = unsafe { (at as *const usize).read_volatile() };
        at += WORD;
        if !contains(value) {
            continue;
        }
        if let Some(block) = lies_in(value) {
            block.set_state(state::SEEN);
            // SAFETY: within the mapping, because each block in use is added once.
            unsafe { *((pending.at + pending.count * WORD) as *mut usize) = block.start() };
            pending.count += 1;
        }
    }
}

/// Scans everything outside this heap; the running thread's stack from `here` on.
fn roots(here: usize, pending: &mut Pending) {
    for (number, t) in threads() {
        if number != 0 && !t.ended.get() {
            scan(if number == me() { here } else { t.sp.get() }, top(t), pending);
        }
    }
    let main = if me() == 0 { here } else { thread(0).sp.get() };
    sys::each_mapping(|from, to, rights, name| {
        let ours = (BASE..quarantine::END).contains(&from) || race::owns(from) || symbolic::owns(from);
        if rights[1] != b'w' || rights[3] != b'p' || ours || to - from > HUGE {
            return;
        }
        if name.starts_with(b"[stack]") {
            scan(main.clamp(from, to), to, pending);
            return;
        }
        sys::each_touched_page(from, to, |page, end| {
            // The used parts of stacks were scanned already.
            let used = threads().map(|(_, t)| (t.stack.get(), top(t)));
            if !used.chain(fibers::spare_stacks()).any(|(base, end)| (base..end).contains(&page)) {
                scan(page, end, pending);
            }
        });
    });
}

/// Where the stack of a thread ends.
fn top(t: &Thread) -> usize {
    t.stack.get() + t.guard_size.get() + t.stack_size.get()
}
