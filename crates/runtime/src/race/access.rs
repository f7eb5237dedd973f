//! The comparison of an access with those before it. The idea of epochs is FastTrack's (PLDI'09).

use super::order::{self, knows, settled};
use super::shadow::{Access, Granule, Node, granule};
use super::{found, now};
use crate::sched::me;
use heisen_wire::kind;

/// The bits of the bytes that an access touches in its first granule.
#[inline(always)]
fn bytes(address: usize, size: usize) -> u64 {
    (((1u64 << size) - 1) << (address & 7)) & 0xff
}

/// An access of at most 8 bytes that begin in one granule, and may end in the next.
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

/// Within one granule.
#[inline(always)]
fn one(granule: &Granule, bytes: u64, write: bool, address: usize, pc: usize) {
    let now = now();
    // Within one epoch, only the first access of a kind matters.
    let last = if write { granule.write.get() } else { granule.read.get() };
    if (last ^ now) & !0xff == 0 && last & bytes == bytes {
        return;
    }
    another(granule, now | bytes, write, address, pc);
}

#[inline(never)]
fn another(granule: &Granule, new: u64, write: bool, address: usize, pc: usize) {
    if granule.node().is_some() {
        return general(granule, new, if write { kind::WRITE } else { 0 }, address, pc);
    }
    let me = me();
    let bytes = new & 0xff;
    let conflicts = |old: u64| old & bytes != 0 && order::thread_of(old) != me && !knows(me, old);
    let (last_write, last_read) = (granule.write.get(), granule.read.get());
    if conflicts(last_write) || write && conflicts(last_read) {
        granule.make_node().exact.set(true);
        return general(granule, new, if write { kind::WRITE } else { 0 }, address, pc);
    }
    // What the new access covers need not be remembered; FastTrack's rule. Nor what nobody can conflict with any more.
    let same = |old: u64| (old ^ new) & !0xff == 0;
    let gone = |old: u64| old == 0 || old & !bytes & 0xff == 0 && knows(me, old) || settled(old);
    let (last, at, at_pc) = if write {
        (last_write, &granule.write, &granule.write_pc)
    } else {
        (last_read, &granule.read, &granule.read_pc)
    };
    if same(last) {
        at.set(last | bytes);
        at_pc.set(pc);
    } else if gone(last) {
        at.set(new);
        at_pc.set(pc);
        if write && !same(last_read) && gone(last_read) {
            granule.read.set(0);
        }
    } else {
        general(granule, new, if write { kind::WRITE } else { 0 }, address, pc);
    }
}

/// An access to a granule that has a node, or needs one.
#[cold]
pub fn general(granule: &Granule, new: u64, kind: u32, address: usize, pc: usize) {
    let node = granule.make_node();
    let access = Access::new(new, kind, pc);
    compare(node, &access, address);
    remember(node, access);
    granule.simplify(node, access);
}

/// Looks for accesses of other threads that conflict.
fn compare(node: &Node, access: &Access, address: usize) {
    let me = me();
    for old in node.accesses() {
        let old = old.get();
        let shared = old.bytes() & access.bytes();
        if shared == 0 || order::thread_of(old.epoch) == me || (old.kind() | access.kind()) & kind::WRITE == 0
        {
            continue;
        }
        if !knows(me, old.epoch) {
            if old.kind() & access.kind() & kind::ATOMIC == 0 {
                node.exact.set(true);
            }
            found::conflict(&old, access, (address & !7) + shared.trailing_zeros() as usize);
        }
    }
}

/// Adds an access, and drops those that are of no use any more.
fn remember(node: &Node, access: Access) {
    let me = me();
    let exact = node.exact.get();
    let covers = |old: &Access| {
        old.bytes() & !access.bytes() == 0
            && (access.kind() | !old.kind()) & kind::WRITE != 0
            && (!access.kind() | old.kind()) & kind::ATOMIC != 0
    };
    let mut index = 0;
    while let Some(old) = node.accesses().get(index) {
        let old = old.get();
        let mine = order::thread_of(old.epoch) == me;
        let useless = if exact {
            mine && old.alike(&access) && old.bytes() & !access.bytes() == 0
        } else {
            covers(&old) && (mine || knows(me, old.epoch))
        };
        if useless || settled(old.epoch) && !mine {
            node.remove(index);
        } else {
            index += 1;
        }
    }
    node.push(access);
}
