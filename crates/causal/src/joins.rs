//! Joins: a thread is joined after its end.

use crate::clauses::{Clauses, List, Subject, before, off, on};
use crate::tree::{NodeId, ThreadRoot, Tree};
use heisen_solver::Term;
use std::collections::BTreeMap;

struct Thread {
    subject: Subject,
    ends: Vec<NodeId>,
    joins: Vec<(NodeId, List)>,
    /// Attempts that failed, because the thread had not ended.
    failures: Vec<NodeId>,
    /// For deadlocks: from each follows that the thread has not ended.
    running: Vec<Term>,
}

/// The ends and joins of all threads.
#[derive(Default)]
pub struct Joins(BTreeMap<ThreadRoot, Thread>);

impl std::fmt::Debug for Joins {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Joins").field("threads", &self.0.len()).finish()
    }
}

impl Joins {
    fn thread(&mut self, clauses: &mut Clauses, thread: ThreadRoot) -> &mut Thread {
        self.0.entry(thread).or_insert_with(|| {
            let (ends, joins, failures, running) = Default::default();
            Thread { subject: clauses.subject(), ends, joins, failures, running }
        })
    }

    /// A thread ends.
    pub fn end(&mut self, clauses: &mut Clauses, tree: &Tree, node: NodeId) {
        let thread = self.thread(clauses, tree[node].thread);
        thread.ends.push(node);
        for &(join, list) in &thread.joins {
            after(clauses, tree, node, join, list);
        }
        for &failed in &thread.failures {
            not_before(clauses, tree, node, failed);
        }
        for &running in &thread.running {
            clauses.clause([off(running), off(tree[node].active)]);
        }
    }

    /// A thread is joined.
    pub fn join(&mut self, clauses: &mut Clauses, tree: &Tree, node: NodeId, joined: ThreadRoot) {
        let thread = self.thread(clauses, joined);
        let list = clauses.list(thread.subject, on(tree[node].active));
        for &end in &thread.ends {
            after(clauses, tree, end, node, list);
        }
        thread.joins.push((node, list));
    }

    /// An attempt to join a thread fails.
    pub fn fail(&mut self, clauses: &mut Clauses, tree: &Tree, node: NodeId, joined: ThreadRoot) {
        let thread = self.thread(clauses, joined);
        for &end in &thread.ends {
            not_before(clauses, tree, end, node);
        }
        thread.failures.push(node);
    }

    /// If the term is 1, the thread has not ended.
    pub fn not_ended(&mut self, clauses: &mut Clauses, tree: &Tree, joined: ThreadRoot, term: Term) {
        let thread = self.thread(clauses, joined);
        for &end in &thread.ends {
            clauses.clause([off(term), off(tree[end].active)]);
        }
        thread.running.push(term);
    }
}

fn not_before(clauses: &mut Clauses, tree: &Tree, end: NodeId, failed: NodeId) {
    let order = before(tree[failed].event, tree[end].event);
    clauses.clause([off(tree[end].active), off(tree[failed].active), order]);
}

fn after(clauses: &mut Clauses, tree: &Tree, end: NodeId, join: NodeId, list: List) {
    let ended = clauses.fresh();
    clauses.clause([off(ended), on(tree[end].active)]);
    clauses.clause([off(ended), before(tree[end].event, tree[join].event)]);
    clauses.extend(list, on(ended));
}
