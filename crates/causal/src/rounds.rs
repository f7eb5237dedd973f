//! Rounds: how often a thread has done the same without an effect on the others.
//!
//! A loop that waits for another thread has a path for each number of rounds, so their number has no end. The search asks
//! for outcomes within a number of rounds only, and says so. Rounds with an effect do not count: nothing says that the
//! next one leads to nothing new.

use crate::encode::may_fail;
use crate::tree::{Key, NodeId, Outcome, Tree};
use heisen_solver::term::{Node, Terms};
use heisen_solver::{Op as ValueOp, Term};
use heisen_trace::Op;
use heisen_trace::symbolic::FutexAct;

/// How often the thread has done what it did last, up to this node, since it last had an effect on others: the same read
/// or the same attempt, at the same place. 0 if it has done neither since then.
pub fn rounds(tree: &Tree, node: NodeId) -> u32 {
    round_ends(tree, node).len() as u32
}

/// These rounds: the nodes at which the thread did the same, the last one first.
pub fn round_ends(tree: &Tree, node: NodeId) -> Vec<NodeId> {
    let path = std::iter::successors(Some(node), |&node| tree[node].parent);
    // Within a step memory does not change: what a function of the C library reads twice is one round.
    let mut step = 0;
    // What the branches behind a node say of the values before it.
    let mut known = Vec::new();
    let mut idle = path
        .take_while(|&node| {
            known.extend(tree[node].known);
            !has_effect(&tree[node].key, tree[node].outcome) || writes_back(tree, node, &known)
        })
        .filter_map(|node| {
            let of = step;
            step += u32::from(tree[node].steps > 0);
            repeated(&tree[node].key, tree[node].outcome).map(|object| (node, of, (tree[node].pc, object)))
        });
    let Some((node, mut of, last)) = idle.next() else { return Vec::new() };
    let mut ends = vec![node];
    for (node, step, other) in idle {
        if other == last && step != of {
            ends.push(node);
            of = step;
        }
    }
    ends
}

/// Whether a write has the value that its thread has read there last, as the branches on the way say. Loops that take
/// what is in a mailbox write "empty" again and again.
fn writes_back(tree: &Tree, node: NodeId, known: &[(Term, Term)]) -> bool {
    let Key::Write { address, size, value } = tree[node].key else { return false };
    let path = std::iter::successors(tree[node].parent, |&node| tree[node].parent);
    let overlaps = |at: u64, length: u8| at < address + u64::from(size) && address < at + u64::from(length);
    for before in path {
        match tree[before].key {
            Key::Read { address: at, size: length, .. } if (at, length) == (address, size) => {
                return tree[before].unknown.is_some_and(|read| known.contains(&(read, value)));
            }
            Key::Read { address: at, size: length, .. } | Key::Write { address: at, size: length, .. }
                if overlaps(at, length) =>
            {
                return false;
            }
            _ => {}
        }
    }
    false
}

/// What a branch says of the value of an unknown: if it is compared with a constant, and equal.
pub fn known_value(terms: &Terms, key: &Key, outcome: Outcome) -> Option<(Term, Term)> {
    let (mut condition, mut holds) = match (key, outcome) {
        (Key::Branch { condition }, Outcome::Is(outcome)) => (*condition, outcome == 1),
        _ => return None,
    };
    loop {
        let Node::Apply { op, operands, .. } = terms.node(condition) else { return None };
        match (op, &operands[..]) {
            (ValueOp::Not, &[inner]) => (condition, holds) = (inner, !holds),
            (ValueOp::Eq, &[a, b]) if holds => {
                let is_unknown = |term| matches!(terms.node(term), Node::Unknown { .. });
                let (unknown, value) = if is_unknown(a) { (a, b) } else { (b, a) };
                return (is_unknown(unknown) && terms.value_of(value).is_some()).then_some((unknown, value));
            }
            _ => return None,
        }
    }
}

/// Whether other threads may see that the thread was there.
fn has_effect(key: &Key, outcome: Outcome) -> bool {
    match key {
        key if may_fail(key) && outcome == Outcome::Is(0) => false,
        Key::Read { .. } | Key::Branch { .. } | Key::Defined { .. } | Key::Pin { .. } => false,
        Key::Assume { .. } | Key::Unknown | Key::Futex { .. } => false,
        // What a section of a lock is for are the accesses within.
        Key::Sync { op, .. } => !is_lock(*op) && !is_pause(*op),
        Key::Begin | Key::Write { .. } | Key::Input { .. } | Key::Join { .. } | Key::FutexWake { .. } => true,
    }
}

const fn is_lock(op: Op) -> bool {
    matches!(
        op,
        Op::Lock
            | Op::TryLock
            | Op::TimedLock
            | Op::Unlock
            | Op::ReadLock
            | Op::WriteLock
            | Op::TryReadLock
            | Op::TryWriteLock
            | Op::RwUnlock
            | Op::Once
            | Op::OnceEnd
    )
}

const fn is_pause(op: Op) -> bool {
    matches!(op, Op::Yield | Op::Sleep)
}

/// Whether a loop that waits for others may repeat this node.
pub fn may_repeat(tree: &Tree, node: NodeId) -> bool {
    repeated(&tree[node].key, tree[node].outcome).is_some()
}

/// What a loop repeats that waits for others: a read of this memory, or an attempt at this object that failed.
fn repeated(key: &Key, outcome: Outcome) -> Option<u64> {
    match *key {
        Key::Read { address, .. } => Some(address),
        Key::Futex { word, act: FutexAct::TimedOut } => Some(word),
        Key::Sync { op, object } if is_pause(op) || outcome == Outcome::Is(0) => Some(object),
        Key::Join { thread: Some(thread), .. } if outcome == Outcome::Is(0) => Some(thread.0 as u64),
        _ => None,
    }
}
