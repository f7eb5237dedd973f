//! Predicts deadlocks from lock-order cycles.
//!
//! Havelund's Goodlock (SPIN 2000) in the form of Joshi, Park, Sen, Naik: A randomized dynamic program
//! analysis technique for detecting real deadlocks, PLDI 2009. A thread that acquires a lock while it holds
//! others is an edge. A cycle of edges of different threads is a deadlock, with two exceptions: two of the
//! threads hold a common lock (a gate), or thread creation or a join orders two of the edges.
//!
//! A target steers the threads in two stages. First each thread comes to the first lock that it is going to
//! hold, so that no thread blocks another. Then, one after the other, each comes to the lock that the next
//! thread of the cycle holds.
//!
//! A mutex that a thread acquires again after a wait on a condition variable counts as held, but acquiring it
//! is not an edge.

use super::WorkBudget;
use super::history::{Act, History, Lock};
use heisen_trace::target::MAX_HOLDS;
use heisen_trace::{Deed, Family, Hold, Op, Target};
use std::collections::{HashMap, HashSet};

/// The largest number of threads of a cycle; a target has no room for more holds.
const LONGEST: usize = 8;
/// Up to this many threads, the first thread waits for all others in the first stage.
const ALL_AWAITED: usize = 6;
/// How many edges of one execution are used at most.
const MOST_EDGES: usize = 1 << 14;
/// How many edges are used at most that differ only in the operations that must come before.
const OF_EACH: usize = 8;

/// An acquisition of a lock while the thread holds others.
struct Edge<'a> {
    act: &'a Act,
    shared: bool,
}

impl Edge<'_> {
    fn wants(&self) -> u64 {
        self.act.deed.object
    }

    /// The lock that the edge `before` waits for, if this thread holds it in a mode that blocks it.
    fn holds(&self, before: &Edge<'_>) -> Option<Lock> {
        let blocks = |lock: &&Lock| lock.object == before.wants() && !(lock.shared && before.shared);
        self.act.held.iter().find(blocks).copied()
    }

    /// Whether both threads can be at their edges at the same time.
    fn goes_with(&self, other: &Edge<'_>) -> bool {
        let common =
            |a: &Lock| other.act.held.iter().any(|b| a.object == b.object && !(a.shared && b.shared));
        self.act.thread() != other.act.thread()
            && !self.act.held.iter().any(common)
            && self.act.is_unordered_with(other.act)
    }
}

fn edges(history: &History) -> Vec<Edge<'_>> {
    let mut seen = HashSet::new();
    let waits = |act: &&Act| matches!(act.op(), Some(Op::Lock | Op::ReadLock | Op::WriteLock));
    let nested = |act: &&Act| act.took && !act.held.is_empty();
    let edge = |act| Edge { act, shared: act.op() == Some(Op::ReadLock) };
    let mut instances: HashMap<_, usize> = HashMap::new();
    // An edge of the same kind is new only if other operations must come before it.
    let is_new = |edge: &Edge<'_>| {
        let held: Vec<(u64, bool)> = edge.act.held.iter().map(|lock| (lock.object, lock.shared)).collect();
        let kind = (edge.act.thread(), edge.wants(), edge.shared, held);
        let new = seen.insert((kind.clone(), edge.act.must_clock()));
        let count = instances.entry(kind).or_default();
        *count += usize::from(new);
        new && *count <= OF_EACH
    };
    let mut all: Vec<_> =
        history.acts.iter().filter(waits).filter(nested).map(edge).filter(is_new).take(MOST_EDGES).collect();
    trim(&mut all);
    all
}

/// Removes edges that are in no cycle, because no thread holds the lock they wait for, or no thread waits for
/// a lock they hold. If all threads acquire locks in one order, no edge is left.
fn trim(edges: &mut Vec<Edge<'_>>) {
    loop {
        let wanted: HashSet<u64> = edges.iter().map(Edge::wants).collect();
        let held: HashSet<u64> =
            edges.iter().flat_map(|edge| edge.act.held.iter().map(|lock| lock.object)).collect();
        let before = edges.len();
        edges.retain(|edge| {
            held.contains(&edge.wants()) && edge.act.held.iter().any(|lock| wanted.contains(&lock.object))
        });
        if edges.len() == before {
            return;
        }
    }
}

/// The cycles, shortest first, each starting with its lowest thread.
fn cycles<'a>(edges: &'a [Edge<'a>], most: usize, budget: &mut WorkBudget) -> Vec<Vec<&'a Edge<'a>>> {
    let mut found = Vec::new();
    // By lock: the edges that hold it, the last first.
    let mut holders: HashMap<u64, Vec<&Edge<'_>>> = HashMap::new();
    for edge in edges.iter().rev() {
        for lock in &*edge.act.held {
            let list = holders.entry(lock.object).or_default();
            if !list.last().is_some_and(|last| std::ptr::eq(*last, edge)) {
                list.push(edge);
            }
        }
    }
    for length in 2..=LONGEST {
        let mut paths: Vec<Vec<&Edge<'_>>> = edges.iter().rev().map(|edge| vec![edge]).collect();
        while let Some(path) = paths.pop() {
            if found.len() >= most || !budget.spend() {
                return found;
            }
            let (first, last) = (path[0], path[path.len() - 1]);
            if path.len() == length {
                if first.holds(last).is_some() {
                    found.push(path);
                }
                continue;
            }
            for next in holders.get(&last.wants()).into_iter().flatten() {
                if !budget.spend() {
                    return found;
                }
                if next.act.thread() > first.act.thread()
                    && next.holds(last).is_some()
                    && path.iter().all(|edge| edge.goes_with(next))
                {
                    paths.push(path.iter().copied().chain([*next]).collect());
                }
            }
        }
    }
    found
}

/// The targets of this family: each cycle in one order of its threads, then all cycles in the opposite order.
/// A thread may briefly need a lock that another thread is going to hold.
pub fn targets(history: &History, most: usize) -> Vec<Target> {
    let edges = edges(history);
    let cycles = cycles(&edges, most, &mut WorkBudget::default());
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
    // The first thread waits until all others have reached their first locks. If there are many, only the
    // last one counts.
    let others = if order.len() <= ALL_AWAITED { &order[1..] } else { &order[order.len() - 1..] };
    holds.extend(others.iter().map(|other| Hold { at: first(order[0]), until: first(other), past: false }));
    // Each other thread waits until the one before it has reached its last lock.
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

#[cfg(test)]
mod tests {
    use super::super::model::{Does, Program};
    use super::*;
    use heisen_trace::{Touch, TouchKind};

    fn history(threads: Vec<Vec<Does>>) -> History {
        History::read(&Program::of(threads).default_run().execution)
    }

    fn nested(outer: u64, inner: u64) -> [Does; 4] {
        [Does::Lock(outer), Does::Lock(inner), Does::Unlock(inner), Does::Unlock(outer)]
    }

    #[test]
    fn locks_in_one_order_cost_nothing() {
        let chain = |_| (0..40).flat_map(|lock| nested(lock, lock + 1)).collect();
        let history = history((0..12).map(chain).collect());
        assert!(edges(&history).is_empty());
    }

    /// All threads go around the same ring, so the number of paths explodes.
    #[test]
    fn the_work_is_bounded_and_short_cycles_come_first() {
        let ring = |_| (0..16).flat_map(|lock| nested(lock, (lock + 1) % 16)).collect();
        let mut threads: Vec<Vec<Does>> = (0..12).map(ring).collect();
        threads.push(nested(3, 2).to_vec());
        let history = history(threads);
        let edges = edges(&history);
        assert_eq!(edges.len(), 12 * 16 + 1);
        let mut budget = WorkBudget::default();
        let found = cycles(&edges, usize::MAX, &mut budget);
        assert!(budget.is_spent(), "every edge that was looked at was counted");
        assert_eq!(found.iter().filter(|cycle| cycle.len() == 2).count(), 12);
    }

    /// Each time the thread has joined one more thread, so each edge must come after another operation.
    #[test]
    fn one_kind_of_edge_has_few_instances() {
        const LOCKS: [u64; 2] = [0x1000, 0x1008];
        const HANDLES: u64 = 0x2000;
        let mut execution = Program::of(vec![]).default_run().execution;
        let mut touch = |thread, kind, op, word| {
            let step = execution.touches.len() as u32;
            execution.touches.push(Touch { step, thread, kind, op, word });
        };
        let lock = Op::Lock as u8;
        for other in 1..=3 * OF_EACH as u16 {
            touch(0, TouchKind::Enables, 0, other.into());
            for (thread, [outer, inner]) in [(0, LOCKS), (other, [LOCKS[1], LOCKS[0]])] {
                touch(thread, TouchKind::Write, lock, outer);
                touch(thread, TouchKind::Write, lock, inner);
                touch(thread, TouchKind::Write, 0, inner);
                touch(thread, TouchKind::Write, 0, outer);
            }
            touch(other, TouchKind::Write, 0, HANDLES + 8 * u64::from(other));
            touch(0, TouchKind::Write, Op::Join as u8, HANDLES + 8 * u64::from(other));
        }
        let history = History::read(&execution);
        let of_main = edges(&history).iter().filter(|edge| edge.act.thread() == 0).count();
        assert_eq!(of_main, OF_EACH);
    }
}
