//! Deadlocks: every thread has ended or stands before an operation that is disabled.
//!
//! "Stands before" closes what a prefix leaves open: the thread takes no further step. A question is whether a deadlock
//! exists in which a thread stands at a certain place.
//!
//! A thread that has waited in a loop for many rounds may stand there, too. If its last round comes after all that the
//! other threads do, and each of them stands for ever, the next round is like the last one: a livelock.

use crate::clauses::{Clauses, List, Subject, before, off, on};
use crate::rounds::round_ends;
use crate::tree::{NodeId, Relation, ThreadRoot, Tree};
use heisen_solver::{Formula, Term};
use std::collections::{BTreeMap, BTreeSet};

/// All threads, and the places at which they may stand for ever.
pub struct Deadlocks {
    /// Whether the prefix is a deadlock, or a livelock.
    deadlock: Term,
    /// Whether no thread stands in a loop.
    blocked: Term,
    subject: Subject,
    /// By thread: it has ended, or stands at one of these places.
    threads: BTreeMap<ThreadRoot, List>,
    /// By the node after which a thread stands.
    stuck: BTreeMap<NodeId, Term>,
    /// Those of these nodes at which a thread is in a loop.
    loops: BTreeSet<NodeId>,
    /// The nodes at which threads end.
    ends: Vec<NodeId>,
}

impl std::fmt::Debug for Deadlocks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Deadlocks").field("places", &self.stuck.len()).finish_non_exhaustive()
    }
}

impl Deadlocks {
    pub fn new(clauses: &mut Clauses) -> Deadlocks {
        let (threads, stuck, loops, ends) = Default::default();
        let [deadlock, blocked] = [clauses.fresh(), clauses.fresh()];
        Deadlocks { deadlock, blocked, subject: clauses.subject(), threads, stuck, loops, ends }
    }

    /// Adds a thread.
    pub fn thread(&mut self, clauses: &mut Clauses, tree: &Tree, thread: ThreadRoot) {
        let exists = clauses.fresh();
        clauses.clause([off(self.deadlock), off(tree[thread].active), on(exists)]);
        self.threads.insert(thread, clauses.list(self.subject, on(exists)));
    }

    /// A thread ends at this node.
    pub fn end(&mut self, clauses: &mut Clauses, tree: &Tree, node: NodeId) {
        self.ends.push(node);
        if let Some(&list) = self.threads.get(&tree[node].thread) {
            clauses.extend(list, on(tree[node].active));
        }
    }

    /// Whether the thread stands after this node for ever; the second result says whether the place is new. What disables
    /// its next operation is left to the caller.
    pub fn stands(&mut self, clauses: &mut Clauses, tree: &Tree, node: NodeId) -> (Term, bool) {
        if let Some(&stuck) = self.stuck.get(&node) {
            return (stuck, false);
        }
        let stuck = clauses.fresh();
        clauses.clause([off(stuck), on(tree[node].active)]);
        for child in tree.next_of(node) {
            clauses.clause([off(stuck), off(tree[child].active)]);
        }
        if let Some(&list) = self.threads.get(&tree[node].thread) {
            clauses.extend(list, on(stuck));
        }
        self.stuck.insert(node, stuck);
        (stuck, true)
    }

    /// The thread is in a loop at this node, and takes no further round.
    pub fn loops(&mut self, clauses: &mut Clauses, tree: &Tree, node: NodeId) {
        if let (stuck, true) = self.stands(clauses, tree, node) {
            self.loops.insert(node);
            clauses.clause([off(stuck), off(self.blocked)]);
        }
    }

    /// A thread that stands at the parent of a node does not take it.
    pub fn added(&mut self, clauses: &mut Clauses, tree: &Tree, node: NodeId) {
        if let Some(&stuck) = tree[node].parent.and_then(|parent| self.stuck.get(&parent)) {
            clauses.clause([off(stuck), off(tree[node].active)]);
        }
    }

    /// That there is a deadlock in which a thread stands after this node.
    pub fn deadlock(&self, node: NodeId) -> Vec<Formula> {
        let stuck = self.stuck.get(&node).copied().into_iter();
        stuck.chain([self.deadlock, self.blocked]).map(on).collect()
    }

    /// That there is a livelock in which a thread is in a loop at this node.
    pub fn livelock(&self, tree: &Tree, node: NodeId) -> Vec<Formula> {
        let mut all: Vec<Formula> = self.stuck.get(&node).map(|&stuck| on(stuck)).into_iter().collect();
        all.push(on(self.deadlock));
        let Some(&round) = round_ends(tree, node).get(1) else { return all };
        // What other threads do last; in a loop of their own, what they do before its first round ends.
        let stands = |(&at, &stuck): (&NodeId, &Term)| {
            let first = if self.loops.contains(&at) { round_ends(tree, at).last().copied() } else { None };
            (first.unwrap_or(at), stuck)
        };
        let ends = self.ends.iter().map(|&end| (end, tree[end].active));
        let others = ends.chain(self.stuck.iter().map(stands));
        let beside = others.filter(|&(last, _)| tree.relation(last, round) == Relation::Concurrent);
        all.extend(beside.map(|(last, stands)| {
            Formula::Any(vec![off(stands), before(tree[last].event, tree[round].event)])
        }));
        all
    }

    /// All places at which threads may be blocked, in order.
    pub fn places(&self) -> impl Iterator<Item = NodeId> {
        self.stuck.keys().copied().filter(|node| !self.loops.contains(node))
    }
}
