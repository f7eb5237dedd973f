//! Lock-order cycles: deadlocks that did not happen.
//!
//! Havelund's Goodlock (SPIN 2000) in the form of Joshi, Park, Sen, Naik: A randomized dynamic program analysis technique
//! for detecting real deadlocks, PLDI 2009. Whoever takes a lock and holds others is an edge. A cycle of edges of different
//! threads is a deadlock, unless two of them are under a common lock, its gate, or one must come before the other by the
//! creation of threads and joins.
//!
//! Threads are led there in two stages. First each comes to the first lock that it is going to hold, so that nobody is in
//! the way of another; then, one after the other, each comes to the one that the next in the cycle holds.
//!
//! A mutex that is taken again after a wait on a condition variable is known to be held, but waiting for it is no edge.

use super::history::{Act, History, Lock};
use heisen_trace::target::MAX_HOLDS;
use heisen_trace::{Deed, Family, Hold, Op, Target};
use std::collections::HashSet;

/// Threads of a cycle at most: for more there are not enough holds.
const LONGEST: usize = 8;
/// Threads that are all waited for in the first stage at most.
const ALL_AWAITED: usize = 6;
/// Edges that are looked at at most when cycles are searched for.
const PATIENCE: usize = 100_000;

/// A lock is waited for with others held.
struct Edge<'a> {
    act: &'a Act,
    shared: bool,
}

impl Edge<'_> {
    fn wants(&self) -> u64 {
        self.act.deed.object
    }

    /// The lock that the edge before waits for, if this thread holds it in its way.
    fn holds(&self, before: &Edge<'_>) -> Option<Lock> {
        let blocks = |lock: &&Lock| lock.object == before.wants() && !(lock.shared && before.shared);
        self.act.held.iter().find(blocks).copied()
    }

    /// Whether both can be there at a time.
    fn goes_with(&self, other: &Edge<'_>) -> bool {
        let common =
            |a: &Lock| other.act.held.iter().any(|b| a.object == b.object && !(a.shared && b.shared));
        self.act.thread() != other.act.thread()
            && !self.act.held.iter().any(common)
            && self.act.is_free_of(other.act)
    }
}

fn edges(history: &History) -> Vec<Edge<'_>> {
    let mut seen = HashSet::new();
    let waits = |act: &&Act| matches!(act.op(), Some(Op::Lock | Op::ReadLock | Op::WriteLock));
    let nested = |act: &&Act| act.took && !act.held.is_empty();
    let edge = |act| Edge { act, shared: act.op() == Some(Op::ReadLock) };
    // The same again tells nothing new, unless it must come after something else.
    let is_new = |edge: &Edge<'_>| {
        let held: Vec<(u64, bool)> = edge.act.held.iter().map(|lock| (lock.object, lock.shared)).collect();
        seen.insert((edge.act.thread(), edge.wants(), edge.shared, held, edge.act.must_clock()))
    };
    history.acts.iter().filter(waits).filter(nested).map(edge).filter(is_new).collect()
}

/// The cycles, shortest first, each from its lowest thread on.
fn cycles<'a>(edges: &'a [Edge<'a>], most: usize) -> Vec<Vec<&'a Edge<'a>>> {
    let mut found = Vec::new();
    let mut patience = PATIENCE;
    for length in 2..=LONGEST {
        let mut paths: Vec<Vec<&Edge<'_>>> = edges.iter().rev().map(|edge| vec![edge]).collect();
        while let Some(path) = paths.pop() {
            if found.len() >= most || patience == 0 {
                return found;
            }
            patience -= 1;
            let (first, last) = (path[0], path[path.len() - 1]);
            if path.len() == length {
                if first.holds(last).is_some() {
                    found.push(path);
                }
                continue;
            }
            let next = edges.iter().rev().filter(|next| {
                next.holds(last).is_some()
                    && next.act.thread() > first.act.thread()
                    && path.iter().all(|edge| edge.goes_with(next))
            });
            paths.extend(next.map(|next| path.iter().copied().chain([next]).collect()));
        }
    }
    found
}

/// The targets of this family: each cycle in one order of its threads, and then all in the other, as a thread may need for a
/// while what another is to hold.
pub fn targets(history: &History, most: usize) -> Vec<Target> {
    let edges = edges(history);
    let cycles = cycles(&edges, most);
    let forward = cycles.iter().map(|cycle| target(history, cycle, cycle));
    let backward = cycles.iter().map(|cycle| {
        let order: Vec<&Edge<'_>> = cycle.iter().rev().copied().collect();
        target(history, cycle, &order)
    });
    forward.chain(backward).collect()
}

fn target(history: &History, cycle: &[&Edge<'_>], order: &[&Edge<'_>]) -> Target {
    let first = |edge: &Edge<'_>| history.acts[edge.act.held[0].since].deed;
    let mut holds = Vec::new();
    // The first thread waits until all others have come to their first locks. Of very many, the last stands for all.
    let others = if order.len() <= ALL_AWAITED { &order[1..] } else { &order[order.len() - 1..] };
    holds.extend(others.iter().map(|other| Hold { at: first(order[0]), until: first(other), past: false }));
    // Each of the others waits for the one before to have come to its last.
    holds.extend(order.windows(2).map(|pair| Hold {
        at: first(pair[1]),
        until: pair[0].act.deed,
        past: false,
    }));
    let (mut deeds, mut likely) = (Vec::new(), true);
    for (index, edge) in cycle.iter().enumerate() {
        let before = cycle[(index + cycle.len() - 1) % cycle.len()];
        let next = cycle[(index + 1) % cycle.len()];
        holds.push(Hold { at: edge.act.deed, until: next.act.deed, past: false });
        let held: Option<Deed> = edge.holds(before).map(|lock| history.acts[lock.since].deed);
        deeds.extend(held);
        deeds.push(edge.act.deed);
        likely &= !cycle.iter().any(|other| edge.act.did_precede(other.act));
    }
    debug_assert!(holds.len() <= MAX_HOLDS && deeds.len() == 2 * cycle.len());
    Target { family: Family::LockOrder, holds, deeds, likely }
}
