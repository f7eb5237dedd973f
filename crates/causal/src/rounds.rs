//! Rounds: how often a thread has done the same without an effect on the others.
//!
//! A loop that waits for another thread has a path for each number of rounds, so their number has no end. The search asks
//! for outcomes within a number of rounds only, and says so. Rounds with an effect do not count: nothing says that the
//! next one leads to nothing new.

use crate::encode::may_fail;
use crate::tree::{Key, NodeId, Outcome, Tree};
use heisen_trace::Op;
use heisen_trace::symbolic::FutexAct;

/// How often the thread has done what it did last, up to this node, since it last had an effect on others: the same read
/// or the same attempt, at the same place. 0 if it has done neither since then.
pub fn rounds(tree: &Tree, node: NodeId) -> u32 {
    let path = std::iter::successors(Some(node), |&node| tree[node].parent);
    // Within a step memory does not change: what a function of the C library reads twice is one round.
    let mut step = 0;
    let mut idle =
        path.take_while(|&node| !has_effect(&tree[node].key, tree[node].outcome)).filter_map(|node| {
            let of = step;
            step += u32::from(tree[node].steps > 0);
            repeated(&tree[node].key, tree[node].outcome).map(|object| (of, (tree[node].pc, object)))
        });
    let Some((mut of, last)) = idle.next() else { return 0 };
    let mut rounds = 1;
    for (step, other) in idle {
        if other == last && step != of {
            rounds += 1;
            of = step;
        }
    }
    rounds
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
