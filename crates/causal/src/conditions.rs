//! Condition variables: which signal wakes which waiter.
//!
//! A wait is two steps: it releases the mutex and begins to wait; once woken, it acquires the mutex again. A signal wakes
//! exactly one waiter if a thread waits, and none otherwise; a broadcast wakes all that wait.

use crate::clauses::{Clauses, List, Subject, before, off, on};
use crate::tree::{NodeId, Relation, Tree};
use heisen_solver::{Model, Term};
use std::collections::BTreeMap;

/// A pair of a signal and a wait that it may wake.
#[derive(Clone, Copy, Debug)]
struct Wakes {
    signal: usize,
    wait: usize,
    /// Whether it does.
    term: Term,
    /// The alternatives to waking this one: the waiter was woken earlier, or left.
    earlier: List,
}

struct Wait {
    node: NodeId,
    /// The nodes at which the thread goes on, because it was woken.
    woken: Vec<(NodeId, List)>,
    /// The nodes at which the thread goes on without being woken.
    left: Vec<NodeId>,
    /// For deadlocks: from this follows that nothing wakes it.
    asleep: Option<Term>,
    /// For deadlocks: something wakes it.
    awake: Option<List>,
}

struct Signal {
    node: NodeId,
    broadcast: bool,
    /// From this follows that it wakes a waiter.
    wakes: Term,
    list: List,
}

struct Condition {
    subject: Subject,
    waits: Vec<Wait>,
    signals: Vec<Signal>,
    pairs: Vec<Wakes>,
}

/// All condition variables, by address.
#[derive(Default)]
pub struct Conditions(BTreeMap<u64, Condition>);

impl std::fmt::Debug for Conditions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Conditions").field("conditions", &self.0.len()).finish()
    }
}

impl Conditions {
    fn condition(&mut self, clauses: &mut Clauses, object: u64) -> &mut Condition {
        self.0.entry(object).or_insert_with(|| Condition {
            subject: clauses.subject(),
            waits: Vec::new(),
            signals: Vec::new(),
            pairs: Vec::new(),
        })
    }

    /// A thread begins to wait.
    pub fn wait(&mut self, clauses: &mut Clauses, tree: &Tree, node: NodeId, object: u64) {
        let condition = self.condition(clauses, object);
        condition.waits.push(Wait { node, woken: Vec::new(), left: Vec::new(), asleep: None, awake: None });
        for signal in 0..condition.signals.len() {
            condition.pair(clauses, tree, signal, condition.waits.len() - 1);
        }
    }

    /// A signal or a broadcast.
    pub fn signal(&mut self, clauses: &mut Clauses, tree: &Tree, node: NodeId, object: u64, broadcast: bool) {
        let condition = self.condition(clauses, object);
        let wakes = clauses.fresh();
        let list = clauses.list(condition.subject, on(wakes));
        condition.signals.push(Signal { node, broadcast, wakes, list });
        for wait in 0..condition.waits.len() {
            condition.pair(clauses, tree, condition.signals.len() - 1, wait);
        }
    }

    /// The thread that waits since `wait` goes on at `node`, because it was woken.
    pub fn woken(&mut self, clauses: &mut Clauses, tree: &Tree, node: NodeId, object: u64, wait: NodeId) {
        let condition = self.condition(clauses, object);
        let Some(at) = condition.waits.iter().position(|other| other.node == wait) else { return };
        let list = clauses.list(condition.subject, on(tree[node].active));
        for pair in condition.pairs.iter().filter(|pair| pair.wait == at) {
            let signal = &condition.signals[pair.signal];
            goes_on_later(clauses, tree, pair.term, signal.node, node);
            clauses.extend(list, on(pair.term));
        }
        condition.waits[at].woken.push((node, list));
    }

    /// The thread that waits since `wait` goes on at `node`, although nothing woke it.
    pub fn left(&mut self, clauses: &mut Clauses, tree: &Tree, node: NodeId, object: u64, wait: NodeId) {
        let condition = self.condition(clauses, object);
        let Some(at) = condition.waits.iter().position(|other| other.node == wait) else { return };
        for pair in condition.pairs.iter().filter(|pair| pair.wait == at) {
            pair.not_after_leaving(clauses, tree, &condition.signals[pair.signal], node);
        }
        condition.waits[at].left.push(node);
    }

    /// Whether this signal wakes the thread that waits since `wait`.
    pub fn wakes(&self, model: &Model, object: u64, signal: NodeId, wait: NodeId) -> bool {
        self.0.get(&object).is_some_and(|condition| {
            condition.pairs.iter().any(|pair| {
                condition.signals[pair.signal].node == signal
                    && condition.waits[pair.wait].node == wait
                    && model.value(pair.term) == 1
            })
        })
    }

    /// From the result follows that nothing wakes the thread that waits since `wait`.
    pub fn asleep(&mut self, clauses: &mut Clauses, object: u64, wait: NodeId) -> Option<Term> {
        let condition = self.condition(clauses, object);
        let at = condition.waits.iter().position(|other| other.node == wait)?;
        if let Some(asleep) = condition.waits[at].asleep {
            return Some(asleep);
        }
        let asleep = clauses.fresh();
        for pair in condition.pairs.iter().filter(|pair| pair.wait == at) {
            clauses.clause([off(asleep), off(pair.term)]);
        }
        condition.waits[at].asleep = Some(asleep);
        Some(asleep)
    }
}

impl Conditions {
    /// If the term is 1, something wakes the thread that waits since `wait`. This is for one term.
    pub fn awake(&mut self, clauses: &mut Clauses, object: u64, wait: NodeId, term: Term) {
        let condition = self.condition(clauses, object);
        let Some(at) = condition.waits.iter().position(|other| other.node == wait) else { return };
        let list = clauses.list(condition.subject, on(term));
        for pair in condition.pairs.iter().filter(|pair| pair.wait == at) {
            clauses.extend(list, on(pair.term));
        }
        condition.waits[at].awake = Some(list);
    }
}

/// A waiter that this signal wakes goes on later.
fn goes_on_later(clauses: &mut Clauses, tree: &Tree, wakes: Term, signal: NodeId, goes_on: NodeId) {
    let order = before(tree[signal].event, tree[goes_on].event);
    clauses.clause([off(wakes), off(tree[goes_on].active), order]);
}

impl Wakes {
    /// A thread that has left is not woken, and one that was woken does not leave.
    fn not_after_leaving(&self, clauses: &mut Clauses, tree: &Tree, signal: &Signal, left: NodeId) {
        clauses.clause([off(self.term), off(tree[left].active)]);
        let gone = clauses.fresh();
        clauses.clause([off(gone), on(tree[left].active)]);
        clauses.clause([off(gone), before(tree[left].event, tree[signal.node].event)]);
        clauses.extend(self.earlier, on(gone));
    }
}

impl Condition {
    /// Adds the pair of a signal and a wait, unless they cannot meet.
    fn pair(&mut self, clauses: &mut Clauses, tree: &Tree, signal: usize, wait: usize) {
        let (signals, waits) = (&self.signals[signal], &self.waits[wait]);
        // A thread that signals has been woken from its earlier waits, and has not begun its later ones.
        if tree.relation(signals.node, waits.node) != Relation::Concurrent {
            return;
        }
        let (sent, waiting) = (&tree[signals.node], &tree[waits.node]);
        let term = clauses.fresh();
        clauses.clause([off(term), on(sent.active)]);
        clauses.clause([off(term), on(waiting.active)]);
        clauses.clause([off(term), before(waiting.event, sent.event)]);
        if let Some(asleep) = waits.asleep {
            clauses.clause([off(asleep), off(term)]);
        }
        // Where the thread waits when the signal comes, it wakes this one or another, or this one was woken earlier.
        let must = clauses.fresh();
        let earlier = clauses.list(self.subject, on(must));
        let mut clause = vec![off(sent.active), off(waiting.active), before(sent.event, waiting.event)];
        clause.extend([on(must), on(if signals.broadcast { term } else { signals.wakes })]);
        clauses.clause(clause);
        let new = Wakes { signal, wait, term, earlier };
        for other in &self.pairs {
            let same_signal = other.signal == signal && !signals.broadcast;
            if same_signal || other.wait == wait {
                clauses.clause([off(term), off(other.term)]);
            }
            if other.wait == wait {
                self.earlier(clauses, tree, *other, new);
                self.earlier(clauses, tree, new, *other);
            }
        }
        clauses.extend(signals.list, on(term));
        if let Some(awake) = waits.awake {
            clauses.extend(awake, on(term));
        }
        for &(node, list) in &waits.woken {
            goes_on_later(clauses, tree, term, signals.node, node);
            clauses.extend(list, on(term));
        }
        for &left in &waits.left {
            new.not_after_leaving(clauses, tree, signals, left);
        }
        self.pairs.push(new);
    }

    /// An alternative to the second pair: the first one wakes the waiter before.
    fn earlier(&self, clauses: &mut Clauses, tree: &Tree, first: Wakes, second: Wakes) {
        let (earlier, later) = (self.signals[first.signal].node, self.signals[second.signal].node);
        let was = clauses.fresh();
        clauses.clause([off(was), on(first.term)]);
        clauses.clause([off(was), before(tree[earlier].event, tree[later].event)]);
        clauses.extend(second.earlier, on(was));
    }
}
