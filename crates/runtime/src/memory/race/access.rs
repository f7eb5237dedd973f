//! Compares an access with earlier ones. The idea of epochs is FastTrack's (PLDI'09).

use super::dead_stack;
use super::found;
use super::order::{self, knows, knows_at_all, settled};
use super::shadow::{Access, Granule, Node, Place, granule};
use super::vector_clock::Known;
use crate::sched::epoch::Epoch;
use crate::sched::me;
use heisen_wire::kind;

/// A mask of the bytes that an access touches in its first granule.
#[inline(always)]
fn bytes(address: usize, size: usize) -> u8 {
    (((1u32 << size) - 1) << (address & 7)) as u8
}

/// An access of at most 8 bytes, which begins in one granule and may end in the next.
#[inline(always)]
pub fn plain(address: usize, size: usize, write: bool, pc: usize) {
    let inside = (8 - (address & 7)).min(size);
    one(granule(address), bytes(address, inside), write, address, pc);
    if inside < size {
        let (address, size) = (address + inside, size - inside);
        one(granule(address), bytes(address, size), write, address, pc);
    }
}

/// An access of any number of bytes.
pub fn range(address: usize, size: usize, write: bool, pc: usize) {
    let (mut at, end) = (address, address.saturating_add(size));
    while at < end {
        let inside = (8 - (at & 7)).min(end - at);
        one(granule(at), bytes(at, inside), write, at, pc);
        at += inside;
    }
}

/// The memory of a granule ends, as far as it lies in this range: see [`ending`](crate::memory::ending).
pub fn end(granule: &Granule, at: usize, (address, size): (usize, usize), write: bool, pc: usize) {
    let start = at.max(address);
    let inside = (at + 8).min(address + size) - start;
    one(granule, bytes(start, inside), write, start, pc);
}

/// An access within one granule.
#[inline(always)]
fn one(granule: &Granule, bytes: u8, write: bool, address: usize, pc: usize) {
    let now = order::now();
    // Within one epoch, only the first access of a kind matters.
    let last = if write { granule.write.get() } else { granule.read.get() };
    if last.same(now) && last.bytes() & bytes == bytes {
        return;
    }
    another(granule, now.with_bytes(bytes), write, address, pc);
}

#[inline(never)]
fn another(granule: &Granule, new: Epoch, write: bool, address: usize, pc: usize) {
    let kind = if write { kind::WRITE } else { 0 };
    if granule.node().is_some() {
        return general(granule, new, kind, address, pc);
    }
    let places = granule.places();
    let (last, other) = if write { (&granule.write, &granule.read) } else { (&granule.read, &granule.write) };
    let (now, beside) = (last.get(), other.get());
    for old in [now, beside] {
        if old != Epoch::NONE && old.thread() != new.thread() {
            dead_stack::check(address, old.thread(), pc);
        }
    }
    // The thread accesses one more byte beside its last access, and no other thread has accessed these bytes.
    if now.same(new) && now.older_bytes() == 0 && (beside == Epoch::NONE || beside.thread() == new.thread()) {
        let place = if write { &places.write } else { &places.read };
        place.last.set(pc);
        last.set(Epoch(now.0 | u64::from(new.bytes())));
        return;
    }
    let writes = Both::of(granule.write.get(), &places.write);
    let reads = Both::of(granule.read.get(), &places.read);
    if writes.conflict(new) || write && reads.conflict(new) {
        granule.make_node().exact.set(true);
        return general(granule, new, kind, address, pc);
    }
    let (cell, place, old) =
        if write { (&granule.write, &places.write, writes) } else { (&granule.read, &places.read, reads) };
    let Some(both) = old.join(new) else { return general(granule, new, kind, address, pc) };
    if both.older != Epoch::NONE && !both.older.same(old.older) {
        place.older.set(place.last.get());
    }
    place.last.set(pc);
    place.epoch.set(both.older);
    cell.set(both.last.with_older_bytes(both.older.bytes()));
    if write && !reads.last.same(new) && reads.is_over(new) {
        granule.read.set(Epoch::NONE);
    }
}

/// What a granule remembers of writes, or of reads: two accesses of one thread, to different bytes.
#[derive(Clone, Copy)]
struct Both {
    last: Epoch,
    older: Epoch,
}

impl Both {
    fn of(last: Epoch, place: &Place) -> Both {
        Both { last: last.with_bytes(last.bytes()), older: place.older(last) }
    }

    /// Whether either conflicts with an access of the running thread.
    fn conflict(&self, new: Epoch) -> bool {
        let conflicts = |old: Epoch| old.bytes() & new.bytes() != 0 && !knows(new.thread(), old);
        self.last.thread() != new.thread() && (conflicts(self.last) || conflicts(self.older))
    }

    /// Whether they need not be remembered beside a new access of the running thread. That is so if the new
    /// access covers them and comes after them, which is FastTrack's rule, or if no later access can conflict
    /// with them.
    fn is_over(&self, new: Epoch) -> bool {
        let over = |old: Epoch| {
            old.bytes() & !new.bytes() == 0 && knows(new.thread(), old) || old == Epoch::NONE || settled(old)
        };
        over(self.last) && over(self.older)
    }

    /// These accesses together with a new one; `None` if a granule cannot hold them.
    fn join(&self, new: Epoch) -> Option<Both> {
        let bytes = new.bytes();
        let left = |old: Epoch| old.with_bytes(old.bytes() & !bytes);
        if self.last.same(new) {
            return Some(Both { last: new.with_bytes(self.last.bytes() | bytes), older: left(self.older) });
        }
        if self.last.thread() != new.thread() {
            return self.is_over(new).then_some(Both { last: new, older: Epoch::NONE });
        }
        let left = |old: Epoch| Some(left(old)).filter(|&left| left != Epoch::NONE && !settled(left));
        match (left(self.last), left(self.older)) {
            (Some(_), Some(_)) => None,
            (one, other) => Some(Both { last: new, older: one.or(other).unwrap_or(Epoch::NONE) }),
        }
    }
}

/// An access to a granule that has a node, or needs one.
#[cold]
pub fn general(granule: &Granule, new: Epoch, kind: u32, address: usize, pc: usize) {
    if let Some(node) = granule.node() {
        for old in node.accesses().iter().filter(|old| old.get().epoch.thread() != new.thread()) {
            dead_stack::check(address, old.get().epoch.thread(), pc);
        }
    }
    passing(granule, new, kind, address, pc, None);
}

/// As [`general`], for an atomic access; `left` is the clock that it acquires, if it does. Plain accesses
/// before that clock do not race with it. Atomic ones still conflict, because it might have come before them.
pub fn passing(granule: &Granule, new: Epoch, kind: u32, address: usize, pc: usize, left: Option<&Known>) {
    let node = granule.make_node();
    let access = Access::new(new, kind, pc);
    compare(node, &access, address, left);
    let access = remember(node, access);
    if node.exact.get() {
        granule.read.set(Epoch::NONE);
    } else if kind == 0 {
        granule.read.set(access.epoch);
    }
    granule.simplify(node, access);
}

/// Looks for conflicting accesses of other threads. A pair with a plain access counts only if it is a data
/// race. If an atomic operation that is not a scheduling point orders the pair, that operation itself conflicts
/// and becomes a scheduling point; see the rule in `race`. A patched load or store of the standard library may
/// be a plain one; it is therefore compared with atomic accesses only.
fn compare(node: &Node, access: &Access, address: usize, left: Option<&Known>) {
    let me = me();
    let passes = |old: &Access| {
        old.kind() & access.kind() & kind::ATOMIC == 0
            && ((old.kind() | access.kind()) & kind::PATCHED != 0
                || knows_at_all(me, old.epoch)
                || old.kind() & kind::ATOMIC == 0
                    && left.is_some_and(|left| left.all.of(old.epoch.thread()) >= old.epoch.clock()))
    };
    for old in node.accesses() {
        let old = old.get();
        let shared = old.bytes() & access.bytes();
        if shared == 0 || old.epoch.thread() == me || (old.kind() | access.kind()) & kind::WRITE == 0 {
            continue;
        }
        if !knows(me, old.epoch) && !passes(&old) {
            if old.kind() & access.kind() & kind::ATOMIC == 0 {
                node.exact.set(true);
            }
            found::conflict(&old, access, (address & !7) + shared.trailing_zeros() as usize);
        }
    }
}

/// A node always keeps this many accesses.
const FEW: usize = 4;

/// Adds an access, and drops accesses that are no longer needed.
fn remember(node: &Node, mut access: Access) -> Access {
    let me = me();
    let exact = node.exact.get();
    // Finding out which accesses are settled takes longer than comparing a few.
    let long = node.accesses().len() > FEW;
    let mut index = 0;
    while let Some(slot) = node.accesses().get(index) {
        let old = slot.get();
        let mine = old.epoch.thread() == me;
        let same = mine && old.same_place_and_kind(&access);
        let left = if long && !mine && settled(old.epoch) {
            0
        } else if same && old.epoch.same(access.epoch) {
            access.epoch = access.epoch.with_bytes(access.bytes() | old.bytes());
            0
        } else if if exact { same } else { access.covers(&old) && (mine || knows(me, old.epoch)) } {
            old.bytes() & !access.bytes()
        } else {
            old.bytes()
        };
        if left == 0 {
            node.remove(index);
        } else {
            slot.set(old.with_bytes(left));
            index += 1;
        }
    }
    node.push(access);
    access
}
