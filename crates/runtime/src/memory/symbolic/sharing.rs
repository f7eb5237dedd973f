//! Which memory threads share. A granule of 4 bytes is shared once two threads have accessed it and at least one of them
//! wrote, whatever the order of these accesses. Only accesses of shared memory are events of the trace.
//!
//! It does not matter whether they did so in one execution: a search may see one thread's write only where the other thread
//! takes a path without its read. So what is known of a granule stays for later executions, and threads are told apart by
//! their places in the tree of creation. Memory that is freed and allocated again is still the same memory.
//!
//! Accesses before a granule was found to be shared have no events. The trace is then incomplete, and the same plan has to
//! run again: the engine hands the list of shared granules to later executions.

use super::inputs;
use super::reserved::{identities, owner, tables};
use crate::sched::me;
use crate::wire_log::symbolic_log;
use core::cell::Cell;
use core::sync::atomic::Ordering::Relaxed;
use heisen_wire::MAX_THREADS;
use heisen_wire::symbolic::GRANULE;

/// Bits of the word of a granule. Below them is the identity of the thread that has accessed it, plus 1.
const SHARED: u32 = 1 << 31;
/// That thread has written it.
const WRITTEN: u32 = 1 << 30;
/// Several threads have read it, and none has written it.
const READ: u32 = 1 << 29;
const THREAD: u32 = READ - 1;

const STEP: usize = GRANULE as usize;

/// An execution begins: marks the granules that are known to be shared.
pub fn begin() {
    let header = symbolic_log::header();
    let count = header.shared_count.load(Relaxed) as usize;
    for granule in header.shared.iter().take(count) {
        let address = (granule.load(Relaxed) * GRANULE) as usize;
        owner(address).set(SHARED);
    }
}

/// The running thread accesses memory: whether it is shared. If a part of it is, all of it is from now on, so that each
/// access is an event or not.
#[inline]
pub fn is_shared(address: usize, size: usize, write: bool) -> bool {
    let end = address + size;
    let mut at = address & !(STEP - 1);
    let (mut some, mut all) = (false, true);
    while at < end {
        let is = access(at, write);
        some |= is;
        all &= is;
        at += STEP;
    }
    if some && !all {
        for at in (address & !(STEP - 1)..end).step_by(STEP) {
            share(owner(at), at);
        }
    }
    some
}

/// The identity of the running thread, plus 1.
#[inline(always)]
fn identity() -> u32 {
    match tables().identities[me()].get() {
        0 => find_identity(),
        known => known,
    }
}

/// Finds the identity by the thread's key. Where there are too many threads, several have the last one, and everything that
/// such a thread accesses counts as shared.
#[cold]
fn find_identity() -> u32 {
    let (tables, all, key) = (tables(), identities(), inputs::key(me()));
    let count = all.count.get();
    let at = all.keys[..count].iter().position(|known| known.get() == key).unwrap_or_else(|| {
        let at = count.min(all.keys.len() - 1);
        all.keys[at].set(key);
        all.count.set(at + 1);
        at
    });
    tables.threads.set(tables.threads.get().max(me() + 1));
    tables.identities[me()].set(at as u32 + 1);
    at as u32 + 1
}

/// Whether a part of at most 8 bytes of memory is shared.
fn has_shared(address: usize, size: usize) -> bool {
    (address & !(STEP - 1)..address + size).step_by(STEP).any(|at| owner(at).get() & SHARED != 0)
}

/// Calls `with` for the addresses in a range of the aligned words of 8 bytes that are shared. The memory of owners of a
/// large range is not read, because reading it fills it.
pub fn each_shared_word(start: usize, length: usize, mut with: impl FnMut(usize)) {
    let header = symbolic_log::header();
    let count = header.shared_count.load(Relaxed) as usize;
    let end = start.saturating_add(length);
    if length / 8 <= count {
        let words = (start & !7..end).step_by(8).map(|word| word.max(start));
        return words.filter(|&at| has_shared(at, (8 - (at & 7)).min(end - at))).for_each(with);
    }
    for granule in header.shared.iter().take(count) {
        let at = (granule.load(Relaxed) * GRANULE) as usize;
        // The first granule of a word stands for both.
        let second = at & 4 != 0 && at - STEP >= start && owner(at - STEP).get() & SHARED != 0;
        if at + STEP > start && at < end && !second {
            with((at & !7).max(start));
        }
    }
}

/// The running thread accesses a granule: whether it is shared.
#[inline(always)]
fn access(address: usize, write: bool) -> bool {
    let word = owner(address);
    let before = word.get();
    let number = identity();
    let written = if write { WRITTEN } else { 0 };
    if before & (SHARED | READ | THREAD) == number && number < MAX_THREADS as u32 {
        word.set(before | written);
        return false;
    }
    if before & SHARED != 0 {
        return true;
    }
    if before == 0 {
        word.set(number | written);
        return false;
    }
    if write || before & WRITTEN != 0 {
        share(word, address);
        return true;
    }
    word.set(READ);
    false
}

/// Adds a granule to the list of shared ones.
#[cold]
fn share(word: &Cell<u32>, address: usize) {
    if word.get() & SHARED != 0 {
        return;
    }
    word.set(SHARED);
    let header = symbolic_log::header();
    header.incomplete.store(1, Relaxed);
    let count = header.shared_count.load(Relaxed);
    match header.shared.get(count as usize) {
        Some(place) => {
            place.store(address as u64 / GRANULE, Relaxed);
            header.shared_count.store(count + 1, Relaxed);
        }
        None => symbolic_log::fill(),
    }
}
