//! The queues of condition variables and futexes: which signal wakes which waiter.
//!
//! A wait is two steps: the thread begins to wait, and goes on once it was woken. A signal wakes exactly one waiter if a
//! thread waits, and none otherwise; a broadcast wakes all that wait. A wake of a futex that wakes at most `n` threads is
//! `n` signals, one right after the other, in one node.

use crate::clauses::{Clauses, List, Subject, before, off, on};
use crate::tree::{NodeId, Relation, Tree};
use heisen_solver::{Model, Op, Term};
use std::collections::BTreeMap;

/// The most waiters that a wake wakes one by one. One that may wake more wakes all.
pub const MOST: u32 = 64;

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
    /// Its number among the signals of its node.
    nth: u32,
    broadcast: bool,
    /// From this follows that it wakes a waiter.
    wakes: Term,
    list: List,
}

/// How many waiters the signals of a node wake, as the value of an unknown.
struct Count {
    node: NodeId,
    unknown: Term,
    /// The sum over the pairs so far.
    sum: Term,
    /// "It is the sum over these pairs, and no later one wakes".
    list: List,
    sums: Vec<Term>,
}

struct Queue {
    subject: Subject,
    waits: Vec<Wait>,
    signals: Vec<Signal>,
    pairs: Vec<Wakes>,
    counts: Vec<Count>,
}

/// All queues, by address.
#[derive(Default)]
pub struct Queues(BTreeMap<u64, Queue>);

impl std::fmt::Debug for Queues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queues").field("queues", &self.0.len()).finish()
    }
}

impl Queues {
    fn queue(&mut self, clauses: &mut Clauses, object: u64) -> &mut Queue {
        self.0.entry(object).or_insert_with(|| Queue {
            subject: clauses.subject(),
            waits: Vec::new(),
            signals: Vec::new(),
            pairs: Vec::new(),
            counts: Vec::new(),
        })
    }

    /// A thread begins to wait.
    pub fn wait(&mut self, clauses: &mut Clauses, tree: &Tree, node: NodeId, object: u64) {
        let queue = self.queue(clauses, object);
        queue.waits.push(Wait { node, woken: Vec::new(), left: Vec::new(), asleep: None, awake: None });
        for signal in 0..queue.signals.len() {
            queue.pair(clauses, tree, signal, queue.waits.len() - 1);
        }
    }

    /// At most so many waiters are woken.
    pub fn wake(&mut self, clauses: &mut Clauses, tree: &Tree, node: NodeId, object: u64, most: u32) {
        let queue = self.queue(clauses, object);
        if most > MOST {
            return queue.signal(clauses, tree, (node, 0), true);
        }
        for nth in 0..most {
            queue.signal(clauses, tree, (node, nth), false);
        }
    }

    /// The unknown is the number of waiters that this node wakes. Must come before the wake.
    pub fn count(&mut self, clauses: &mut Clauses, tree: &Tree, node: NodeId, object: u64, unknown: Term) {
        let queue = self.queue(clauses, object);
        let list = clauses.list(queue.subject, on(tree[node].active));
        let terms = &mut clauses.solver.terms;
        let sum = terms.constant(terms.width(unknown), 0);
        let mut count = Count { node, unknown, sum, list, sums: Vec::new() };
        count.may_be_all(clauses);
        queue.counts.push(count);
    }

    /// The thread that waits since `wait` goes on at `node`, because it was woken.
    pub fn woken(&mut self, clauses: &mut Clauses, tree: &Tree, node: NodeId, object: u64, wait: NodeId) {
        let queue = self.queue(clauses, object);
        let Some(at) = queue.waits.iter().position(|other| other.node == wait) else { return };
        let list = clauses.list(queue.subject, on(tree[node].active));
        for pair in queue.pairs.iter().filter(|pair| pair.wait == at) {
            let signal = &queue.signals[pair.signal];
            goes_on_later(clauses, tree, pair.term, signal.node, node);
            clauses.extend(list, on(pair.term));
        }
        queue.waits[at].woken.push((node, list));
    }

    /// The thread that waits since `wait` goes on at `node`, although nothing woke it.
    pub fn left(&mut self, clauses: &mut Clauses, tree: &Tree, node: NodeId, object: u64, wait: NodeId) {
        let queue = self.queue(clauses, object);
        let Some(at) = queue.waits.iter().position(|other| other.node == wait) else { return };
        for pair in queue.pairs.iter().filter(|pair| pair.wait == at) {
            pair.not_after_leaving(clauses, tree, &queue.signals[pair.signal], node);
        }
        queue.waits[at].left.push(node);
    }

    /// Whether this signal wakes the thread that waits since `wait`.
    pub fn wakes(&self, model: &Model, object: u64, signal: NodeId, wait: NodeId) -> bool {
        self.0.get(&object).is_some_and(|queue| {
            queue.pairs.iter().any(|pair| {
                queue.signals[pair.signal].node == signal
                    && queue.waits[pair.wait].node == wait
                    && model.value(pair.term) == 1
            })
        })
    }

    /// From the result follows that nothing wakes the thread that waits since `wait`.
    pub fn asleep(&mut self, clauses: &mut Clauses, object: u64, wait: NodeId) -> Option<Term> {
        let queue = self.queue(clauses, object);
        let at = queue.waits.iter().position(|other| other.node == wait)?;
        if let Some(asleep) = queue.waits[at].asleep {
            return Some(asleep);
        }
        let asleep = clauses.fresh();
        for pair in queue.pairs.iter().filter(|pair| pair.wait == at) {
            clauses.clause([off(asleep), off(pair.term)]);
        }
        queue.waits[at].asleep = Some(asleep);
        Some(asleep)
    }
}

impl Queues {
    /// If the term is 1, something wakes the thread that waits since `wait`. This is for one term.
    pub fn awake(&mut self, clauses: &mut Clauses, object: u64, wait: NodeId, term: Term) {
        let queue = self.queue(clauses, object);
        let Some(at) = queue.waits.iter().position(|other| other.node == wait) else { return };
        let list = clauses.list(queue.subject, on(term));
        for pair in queue.pairs.iter().filter(|pair| pair.wait == at) {
            clauses.extend(list, on(pair.term));
        }
        queue.waits[at].awake = Some(list);
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

impl Count {
    /// Another pair may count.
    fn add(&mut self, clauses: &mut Clauses, pair: Term) {
        for &sum in &self.sums {
            clauses.clause([off(sum), off(pair)]);
        }
        let terms = &mut clauses.solver.terms;
        let one = terms.resize(Op::ZExt, terms.width(self.unknown), pair);
        self.sum = terms.apply(Op::Add, &[self.sum, one]);
        self.may_be_all(clauses);
    }

    /// The pairs so far may be all that wake.
    fn may_be_all(&mut self, clauses: &mut Clauses) {
        let equal = clauses.solver.terms.apply(Op::Eq, &[self.unknown, self.sum]);
        let all = clauses.fresh();
        clauses.clause([off(all), on(equal)]);
        clauses.extend(self.list, on(all));
        self.sums.push(all);
    }
}

impl Queue {
    /// Adds a signal.
    fn signal(&mut self, clauses: &mut Clauses, tree: &Tree, (node, nth): (NodeId, u32), broadcast: bool) {
        let wakes = clauses.fresh();
        let list = clauses.list(self.subject, on(wakes));
        self.signals.push(Signal { node, nth, broadcast, wakes, list });
        for wait in 0..self.waits.len() {
            self.pair(clauses, tree, self.signals.len() - 1, wait);
        }
    }

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
        if let Some(count) = self.counts.iter_mut().find(|count| count.node == signals.node) {
            count.add(clauses, term);
        }
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
        let (earlier, later) = (&self.signals[first.signal], &self.signals[second.signal]);
        let same_node = earlier.node == later.node;
        if same_node && earlier.nth > later.nth {
            return;
        }
        let was = clauses.fresh();
        clauses.clause([off(was), on(first.term)]);
        if !same_node {
            clauses.clause([off(was), before(tree[earlier.node].event, tree[later.node].event)]);
        }
        clauses.extend(second.earlier, on(was));
    }
}
