//! Meetings: two threads are about to do accesses that conflict, which is a data race unless both are atomic.

use crate::encode::Encoding;
use crate::steps::{is_of_thread, steps};
use crate::tree::{Key, NodeId, Outcome, Tree};
use heisen_solver::Formula;
use heisen_trace::symbolic::{EventKind, SymbolicTrace};

/// The first node of a node's step, and how many steps its thread takes up to there.
pub fn step_of(tree: &Tree, node: NodeId) -> (NodeId, u32) {
    let mut at = node;
    while let Some(parent) = tree[at].parent.filter(|_| tree[at].steps == 0) {
        at = parent;
    }
    (at, tree[at].steps)
}

/// What must hold for the thread to take this node within its step.
pub fn decides(encoding: &Encoding, node: NodeId) -> Option<Formula> {
    let tree = &encoding.tree;
    match (&tree[node].key, tree[node].outcome) {
        (&(Key::Branch { condition } | Key::Defined { condition }), Outcome::Is(outcome)) => {
            // Whether a compare-exchange stores depends on what it reads in this very step.
            let before = tree[node].parent.filter(|_| tree[node].steps == 0);
            let reads = before.is_some_and(|parent| matches!(tree[parent].key, Key::Read { .. }));
            let holds = Formula::Holds(condition);
            (!reads).then(|| if outcome == 0 { holds.not() } else { holds })
        }
        (Key::Pin { .. }, Outcome::Is(_)) => encoding.pinned.get(&node).cloned(),
        _ => None,
    }
}

/// An access of a step: place, address, size, and whether it is a write.
type Access = (u64, u64, u64, bool);

/// The places of conflicting accesses of different threads that lie in successive steps.
pub fn meetings(trace: &SymbolicTrace) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    // The thread of the step before and of this one, each with its accesses.
    let mut last: (u16, Vec<Access>) = (0, Vec::new());
    let mut this: (u16, Vec<Access>) = (0, Vec::new());
    for (event, steps) in trace.events.iter().zip(steps(trace)) {
        if !is_of_thread(&event.kind) {
            continue;
        }
        if steps > 0 {
            last = std::mem::replace(&mut this, (event.thread, Vec::new()));
            if steps > 1 {
                // There was a step between them.
                last.1.clear();
            }
        }
        let access: Access = match event.kind {
            // A compare-exchange counts as a write, also if it fails.
            EventKind::Read { address, size, update, .. } => (event.pc, address, size.into(), update),
            EventKind::Write { address, size, .. } => (event.pc, address, size.into(), true),
            _ => continue,
        };
        if last.0 != this.0 {
            let touches = |other: &&Access| other.1 < access.1 + access.2 && access.1 < other.1 + other.2;
            let conflicts = last.1.iter().filter(touches).filter(|other| other.3 || access.3);
            found.extend(conflicts.map(|other| (other.0.min(access.0), other.0.max(access.0))));
        }
        this.1.push(access);
    }
    found
}

/// Whether the last step has an access of one of these places. It may have ended the process before the other one.
pub fn ended_at(trace: &SymbolicTrace, places: [u64; 2]) -> bool {
    let last = trace.events.iter().rfind(|event| is_of_thread(&event.kind)).map(|event| event.step);
    let is_access = |kind: &EventKind| matches!(kind, EventKind::Read { .. } | EventKind::Write { .. });
    let mut accesses = trace.events.iter().filter(|event| Some(event.step) == last && is_access(&event.kind));
    accesses.any(|access| places.contains(&access.pc))
}
