//! Atomic operations in the race check: they conflict with plain accesses, and they order threads by their
//! memory orders.
//!
//! This follows the C++20 standard (section "Data races"). A release sequence is a release followed only by
//! read-modify-writes, of any thread. An acquire that reads a value of the sequence is ordered after the
//! release that heads it. Every store ends the sequence, also one by the thread that released; C++17 still let
//! that one continue it. Relaxed operations order nothing by themselves, but fences before and after them do.
//!
//! The clock at a variable is the join of the clocks of all releases whose sequences contain its value. A store
//! therefore replaces the clock, and a read-modify-write adds to it.

use super::access::passing;
use super::shadow::granule;
use super::vector_clock::Known;
use super::{mode, order};
use crate::wire_log;
use heisen_trace::{Note, Op};
use heisen_wire::kind;

/// `memory_order`, as compilers pass it.
pub mod memory_order {
    pub const RELAXED: i32 = 0;
    pub const CONSUME: i32 = 1;
    pub const ACQUIRE: i32 = 2;
    pub const RELEASE: i32 = 3;
    pub const ACQ_REL: i32 = 4;
    pub const SEQ_CST: i32 = 5;
}
use memory_order::{ACQ_REL, ACQUIRE, CONSUME, RELEASE, SEQ_CST};

fn acquires(order: i32) -> bool {
    matches!(order, CONSUME | ACQUIRE | ACQ_REL | SEQ_CST)
}

fn releases(order: i32) -> bool {
    matches!(order, RELEASE | ACQ_REL | SEQ_CST)
}

/// What an atomic operation does to the variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Does {
    /// It reads.
    Load,
    /// It writes, whatever the old value is.
    Store,
    /// It reads and writes at once.
    Update,
}

impl Does {
    /// The operation in the log.
    pub fn op(self) -> Op {
        match self {
            Does::Load => Op::AtomicLoad,
            Does::Store => Op::AtomicStore,
            Does::Update => Op::AtomicRmw,
        }
    }
}

/// The running thread has done an atomic operation of `size` bytes.
pub fn done(does: Does, address: usize, size: usize, order: i32, pc: usize) {
    done_as(0, does, address, size, order, pc);
}

/// The running thread has taken or released a lock by an atomic operation. Its memory order is that of a lock
/// and is not noted: a program without other weak orders is sequentially consistent.
pub fn done_by_lock(does: Does, address: usize, size: usize, order: i32, pc: usize) {
    order_by(0, does, address, size, order, pc);
}

/// The running thread has done a patched load or store.
pub fn done_patched(does: Does, address: usize, size: usize, pc: usize) {
    done_as(kind::PATCHED, does, address, size, SEQ_CST, pc);
}

/// As [`done`], with more bits of its kind.
fn done_as(bits: u32, does: Does, address: usize, size: usize, order: i32, pc: usize) {
    if order < SEQ_CST {
        wire_log::note(Note::WeakOrders);
    }
    order_by(bits, does, address, size, order, pc);
}

/// Compares it with other accesses, and lets it order threads.
fn order_by(bits: u32, does: Does, address: usize, size: usize, order: i32, pc: usize) {
    if !super::is_on(mode::CHECK) {
        return;
    }
    let kind = bits | kind::ATOMIC | if does == Does::Load { 0 } else { kind::WRITE };
    let left = &granule(address).make_node().left(address).known;
    let left = Some(left).filter(|_| does != Does::Store && acquires(order));
    let mut at = address;
    let end = address + size;
    while at < end {
        let inside = (8 - (at & 7)).min(end - at);
        let bytes = (((1u32 << inside) - 1) << (at & 7)) as u8;
        let granule = granule(at);
        granule.make_node().exact.set(true);
        passing(granule, order::now().with_bytes(bytes), kind, at, pc, left);
        at += inside;
    }
    synchronise(&granule(address).make_node().left(address).known, does, order, super::is_atomic_point(pc));
}

/// Orders threads by the clock at a variable. The order of scheduling points takes part only if the operation
/// is one.
fn synchronise(left: &Known, does: Does, order: i32, is_point: bool) {
    if does != Does::Store && !left.is_empty() {
        if acquires(order) {
            order::learn(is_point, left);
        } else {
            order::fence_acquire().join_by(is_point, left);
        }
    }
    match does {
        Does::Load => return,
        Does::Store => left.clear(),
        Does::Update => {}
    }
    if releases(order) {
        left.join_by(is_point, order::mine());
        order::step();
    } else {
        left.join_by(is_point, order::fence_release());
    }
}

/// A fence.
pub fn fence(order: i32) {
    if order < SEQ_CST {
        wire_log::note(Note::WeakOrders);
    }
    if !super::is_on(mode::CHECK) {
        return;
    }
    if acquires(order) {
        order::learn(true, order::fence_acquire());
    }
    if releases(order) {
        order::fence_release().join(order::mine());
        order::step();
    }
}
