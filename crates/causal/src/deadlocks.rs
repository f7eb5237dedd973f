//! Deadlocks: every thread has ended or stands before an operation that is disabled.
//!
//! "Stands before" closes what a prefix leaves open: the thread takes no further step. A question is whether a deadlock
//! exists in which a thread stands at a certain place.

use crate::clauses::{Clauses, List, Subject, off, on};
use crate::tree::{NodeId, ThreadRoot, Tree};
use heisen_solver::Term;
use std::collections::BTreeMap;

/// All threads, and the places at which they may stand for ever.
pub struct Deadlocks {
    /// Whether the prefix is a deadlock.
    pub deadlock: Term,
    subject: Subject,
    /// By thread: it has ended, or stands at one of these places.
    threads: BTreeMap<ThreadRoot, List>,
    /// By the node after which a thread stands.
    stuck: BTreeMap<NodeId, Term>,
}

impl std::fmt::Debug for Deadlocks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Deadlocks").field("places", &self.stuck.len()).finish_non_exhaustive()
    }
}

impl Deadlocks {
    pub fn new(clauses: &mut Clauses) -> Deadlocks {
        let (threads, stuck) = Default::default();
        Deadlocks { deadlock: clauses.fresh(), subject: clauses.subject(), threads, stuck }
    }

    /// Adds a thread.
    pub fn thread(&mut self, clauses: &mut Clauses, tree: &Tree, thread: ThreadRoot) {
        let exists = clauses.fresh();
        clauses.clause([off(self.deadlock), off(tree[thread].active), on(exists)]);
        self.threads.insert(thread, clauses.list(self.subject, on(exists)));
    }

    /// A thread ends at this node.
    pub fn end(&mut self, clauses: &mut Clauses, tree: &Tree, node: NodeId) {
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

    /// A thread that stands at the parent of a node does not take it.
    pub fn added(&mut self, clauses: &mut Clauses, tree: &Tree, node: NodeId) {
        if let Some(&stuck) = tree[node].parent.and_then(|parent| self.stuck.get(&parent)) {
            clauses.clause([off(stuck), off(tree[node].active)]);
        }
    }

    /// The place of a thread that stands after this node.
    pub fn at(&self, node: NodeId) -> Option<Term> {
        self.stuck.get(&node).copied()
    }

    /// All places, in order.
    pub fn places(&self) -> impl Iterator<Item = NodeId> {
        self.stuck.keys().copied()
    }
}
