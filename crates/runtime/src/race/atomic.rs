//! Atomic operations: they conflict with plain accesses, and they order threads as their memory orders say.
//!
//! After the standard of C++: an acquire that reads what a release has written, or what a chain of read-modify-writes has made of
//! it, is after it. A plain store by another thread breaks the chain. Relaxed operations order nothing by themselves,
//! but fences before and after them do.

use super::access::passing;
use super::shadow::{Left, granule};
use super::{mode, order};
use crate::report;
use crate::sched::me;
use heisen_trace::Note;
use heisen_wire::kind;

/// `memory_order`, as compilers pass it.
pub mod memory_order {
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
    /// It writes whatever was there before.
    Store,
    /// It reads and writes at once.
    Update,
}

/// An atomic operation of so many bytes was done by the running thread.
pub fn done(does: Does, address: usize, size: usize, order: i32, pc: usize) {
    if order < SEQ_CST {
        report::note(Note::WeakOrders);
    }
    if !super::is_on(mode::CHECK) {
        return;
    }
    let kind = kind::ATOMIC | if does == Does::Load { 0 } else { kind::WRITE };
    let left = &granule(address).make_node().left(address).clock;
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
    synchronise(granule(address).make_node().left(address), does, order);
}

fn synchronise(left: &Left, does: Does, order: i32) {
    if does != Does::Store && !left.clock.is_empty() {
        if acquires(order) {
            order::learn(&left.clock);
        } else {
            order::fence_acquire().join(&left.clock);
        }
    }
    match does {
        Does::Load => {}
        // What the thread itself has left may stay: it knows it anyway.
        Does::Store if left.leaver.get() != me() => left.clock.clear(),
        Does::Store | Does::Update => {}
    }
    if does == Does::Load {
        return;
    }
    if releases(order) {
        left.clock.join(order::mine());
        left.leaver.set(me());
        order::step();
    } else if !order::fence_release().is_empty() {
        left.clock.join(order::fence_release());
        left.leaver.set(me());
    }
}

/// A fence.
pub fn fence(order: i32) {
    if order < SEQ_CST {
        report::note(Note::WeakOrders);
    }
    if !super::is_on(mode::CHECK) {
        return;
    }
    if acquires(order) {
        order::learn(order::fence_acquire());
    }
    if releases(order) {
        order::fence_release().join(order::mine());
        order::step();
    }
}
