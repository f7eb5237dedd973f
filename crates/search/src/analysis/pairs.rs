//! Finds pairs of places in the code: an operation, and the operation of another thread that it directly
//! followed on the same object.
//!
//! These pairs are the edges between threads of the happens-before graph of an execution, mapped to places in
//! the code. The literature calls them "location pairs" if the object is memory and "synchronisation pairs"
//! otherwise (Bron, Farchi, Magid, Nir, Ur: Applications of Synchronization Coverage, PPoPP 2005; Hong et
//! al.: Testing Concurrent Programs to Achieve High Synchronization Coverage, ISSTA 2012).

use heisen_trace::{Op, Touch, TouchKind};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// The code of an operation, and the address that its call returns to.
type Place = (u8, u64);

/// The earlier and the later operation.
pub type Pair = (Place, Place);

/// The kind of object of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// At least one of the two is a synchronisation operation or a system call.
    Sync,
    /// Both are memory accesses.
    Location,
}

/// The last operations on an object, each with its thread.
#[derive(Debug, Default)]
struct Object {
    written: Option<(u16, Place)>,
    /// The reads since the last write.
    read: Vec<(u16, Place)>,
}

/// The pairs of an execution, each as often as it occurs.
///
/// An operation that only reads its object follows the last operation that changed it. An operation that
/// changes the object follows all reads since the last change or, if there are none, that change.
pub fn pairs(touches: &[Touch]) -> impl Iterator<Item = (Kind, Pair)> {
    let mut objects: HashMap<u64, Object> = HashMap::new();
    let mut place: Option<Place> = None;
    touches.iter().flat_map(move |touch| {
        let from = place.take();
        match (touch.kind, from) {
            (TouchKind::At, _) => {
                place = Some((touch.op, touch.word));
                Vec::new()
            }
            (TouchKind::Read | TouchKind::Write, Some(here)) => {
                let object = objects.entry(touch.word).or_default();
                step(object, touch.kind == TouchKind::Write, touch.thread, here)
            }
            _ => Vec::new(),
        }
    })
}

/// The pairs that end with one operation on an object.
fn step(object: &mut Object, write: bool, thread: u16, here: Place) -> Vec<(Kind, Pair)> {
    let before = if write && !object.read.is_empty() { &object.read[..] } else { object.written.as_slice() };
    let others = before.iter().filter(|(other, _)| *other != thread);
    let found = others.map(|&(_, there)| (kind(there, here), (there, here))).collect();
    if write {
        *object = Object { written: Some((thread, here)), read: Vec::new() };
    } else if !object.read.contains(&(thread, here)) {
        object.read.push((thread, here));
    }
    found
}

fn kind(there: Place, here: Place) -> Kind {
    let accesses = |(op, _): Place| {
        let op = Op::from_code(op);
        matches!(
            op,
            Some(
                Op::AtomicLoad | Op::AtomicStore | Op::AtomicRmw | Op::AtomicCas | Op::MemRead | Op::MemWrite
            )
        )
    };
    if accesses(there) && accesses(here) { Kind::Location } else { Kind::Sync }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An operation of a thread, from a place, on an object.
    fn done(thread: u16, op: Op, pc: u64, write: bool, object: u64) -> [Touch; 2] {
        let touch = |kind, op: u8, word| Touch { step: 0, thread, kind, op, word };
        let kind = if write { TouchKind::Write } else { TouchKind::Read };
        [touch(TouchKind::At, op as u8, pc), touch(kind, 0, object)]
    }

    fn found(touches: &[[Touch; 2]]) -> Vec<(Kind, u64, u64)> {
        pairs(&touches.concat()).map(|(kind, (there, here))| (kind, there.1, here.1)).collect()
    }

    #[test]
    fn a_lock_follows_that_of_another_thread() {
        let lock = |thread, pc, object| done(thread, Op::Lock, pc, true, object);
        let all = [lock(1, 10, 1), lock(1, 11, 1), lock(2, 20, 1), lock(2, 20, 2), lock(1, 10, 1)];
        assert_eq!(found(&all), [(Kind::Sync, 11, 20), (Kind::Sync, 20, 10)]);
    }

    #[test]
    fn reads_follow_a_write_and_a_write_follows_them() {
        let load = |thread, pc| done(thread, Op::AtomicLoad, pc, false, 1);
        let store = |thread, pc| done(thread, Op::AtomicStore, pc, true, 1);
        let all = [store(1, 10), load(2, 20), load(3, 30), load(3, 30), store(2, 21), store(1, 11)];
        let pairs = [(10, 20), (10, 30), (10, 30), (30, 21), (21, 11)];
        assert_eq!(found(&all), pairs.map(|(there, here)| (Kind::Location, there, here)));
    }

    #[test]
    fn what_is_no_operation_is_in_no_pair() {
        let [at, lock] = done(1, Op::Lock, 10, true, 1);
        let release = Touch { step: 1, op: 0, ..lock };
        let [other_at, other] = done(2, Op::Lock, 20, true, 1);
        let all: Vec<_> = pairs(&[at, lock, release, other_at, other]).collect();
        let lock = Op::Lock as u8;
        assert_eq!(all, [(Kind::Sync, ((lock, 10), (lock, 20)))]);
        assert_eq!(pairs(&[release, other]).count(), 0);
    }

    #[test]
    fn a_futex_is_no_location() {
        let all = [done(1, Op::AtomicStore, 10, true, 1), done(2, Op::FutexWait, 20, true, 1)];
        assert_eq!(found(&all), [(Kind::Sync, 10, 20)]);
    }
}
