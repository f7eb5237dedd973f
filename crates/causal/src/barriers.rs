//! Barriers: which arrival ends the wait of which others.
//!
//! A wait is two steps: the thread arrives, and once as many threads as the barrier is for have arrived, it leaves. The last
//! of them ends the wait of all that have arrived before and still wait. These are exactly the others of its round; and
//! fewer than a whole round wait at any time.

use crate::clauses::{Clauses, List, Subject, before, off, on};
use crate::counters::{AtLeast, AtMost};
use crate::tree::{NodeId, Relation, Tree};
use heisen_solver::Term;
use std::collections::BTreeMap;

struct Arrival {
    node: NodeId,
    /// Whether it is the last of its round.
    last: Term,
    /// The others of its round, if it is the last.
    others: (AtLeast, AtMost),
    /// The last of its round, if it is another one, unless the round is not complete.
    completed: List,
    /// For deadlocks: the thread waits for ever.
    stuck: Vec<Term>,
    /// The nodes at which the thread goes on.
    leaves: Vec<(NodeId, List)>,
}

/// Two arrivals of one round, the second of which is the last.
#[derive(Clone, Copy)]
struct Ends {
    first: usize,
    last: usize,
    term: Term,
    /// The alternatives, where the first comes before the last: an earlier one has ended its wait.
    earlier: List,
}

struct Barrier {
    subject: Subject,
    /// How many threads it is for.
    count: usize,
    arrivals: Vec<Arrival>,
    pairs: Vec<Ends>,
    /// The arrivals of a round that is not complete.
    rest: AtMost,
}

/// All barriers, by address.
#[derive(Default)]
pub struct Barriers {
    all: BTreeMap<u64, Barrier>,
    counts: BTreeMap<u64, u64>,
    /// Whether executions have disagreed about the number of threads, or it cannot be told.
    pub contradicted: bool,
}

impl std::fmt::Debug for Barriers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Barriers").field("barriers", &self.all.len()).finish_non_exhaustive()
    }
}

impl Barriers {
    /// An execution has found that a barrier is for so many threads.
    pub fn learn(&mut self, object: u64, count: u64) {
        let known = *self.counts.entry(object).or_insert(count);
        self.contradicted |= known != count;
    }

    fn barrier(&mut self, clauses: &mut Clauses, object: u64) -> &mut Barrier {
        let Barriers { all, counts, contradicted } = self;
        all.entry(object).or_insert_with(|| {
            let count = counts.get(&object).copied().filter(|&count| count > 0);
            *contradicted |= count.is_none();
            let (count, subject) = (count.unwrap_or(1) as usize, clauses.subject());
            let (arrivals, pairs) = Default::default();
            Barrier { subject, count, arrivals, pairs, rest: AtMost::new(count - 1) }
        })
    }

    /// A thread arrives.
    pub fn arrive(&mut self, clauses: &mut Clauses, tree: &Tree, node: NodeId, object: u64) {
        let barrier = self.barrier(clauses, object);
        let (active, others) = (tree[node].active, barrier.count - 1);
        let (last, rest, completed) = (clauses.fresh(), clauses.fresh(), clauses.fresh());
        clauses.clause([off(last), on(active)]);
        clauses.clause([off(active), on(last), on(rest), on(completed)]);
        barrier.rest.add(clauses, rest);
        let enough = AtLeast::new(clauses, barrier.subject, others, on(last));
        let completed = clauses.list(barrier.subject, on(completed));
        let (stuck, leaves) = Default::default();
        let others = (enough, AtMost::new(others));
        barrier.arrivals.push(Arrival { node, last, others, completed, stuck, leaves });
        let number = barrier.arrivals.len() - 1;
        for other in 0..number {
            if tree.relation(barrier.arrivals[other].node, node) == Relation::Concurrent {
                barrier.pair(clauses, tree, other, number);
                barrier.pair(clauses, tree, number, other);
            }
        }
    }

    /// The thread that has arrived before this node leaves.
    pub fn leave(&mut self, clauses: &mut Clauses, tree: &Tree, node: NodeId, object: u64) {
        let barrier = self.barrier(clauses, object);
        let Some(number) = barrier.arrival_before(tree, node) else { return };
        let list = clauses.list(barrier.subject, on(tree[node].active));
        clauses.extend(list, on(barrier.arrivals[number].last));
        for pair in barrier.pairs.iter().filter(|pair| pair.first == number) {
            ended_before(clauses, tree, pair.term, barrier.arrivals[pair.last].node, (node, list));
        }
        barrier.arrivals[number].leaves.push((node, list));
    }

    /// Whether the thread that has arrived before this node was the last of its round.
    pub fn was_last(&self, tree: &Tree, node: NodeId, object: u64) -> Option<Term> {
        let barrier = self.all.get(&object)?;
        Some(barrier.arrivals[barrier.arrival_before(tree, node)?].last)
    }

    /// If the term is 1, the thread that has arrived at this node waits for ever.
    pub fn waits(&mut self, clauses: &mut Clauses, tree: &Tree, node: NodeId, object: u64, term: Term) {
        let barrier = self.barrier(clauses, object);
        let Some(number) = barrier.arrival_before(tree, node) else { return };
        clauses.clause([off(term), off(barrier.arrivals[number].last)]);
        for pair in barrier.pairs.iter().filter(|pair| pair.first == number) {
            clauses.clause([off(term), off(pair.term)]);
        }
        barrier.arrivals[number].stuck.push(term);
    }
}

/// The wait of a thread may have ended by this when it goes on.
fn ended_before(clauses: &mut Clauses, tree: &Tree, ends: Term, last: NodeId, leaves: (NodeId, List)) {
    let (node, list) = leaves;
    let order = before(tree[last].event, tree[node].event);
    clauses.clause([off(ends), off(tree[node].active), order]);
    clauses.extend(list, on(ends));
}

impl Barrier {
    /// The last arrival on the path to a node.
    fn arrival_before(&self, tree: &Tree, node: NodeId) -> Option<usize> {
        let path = std::iter::successors(Some(node), |&node| tree[node].parent);
        path.take_while(|&at| tree[at].thread == tree[node].thread)
            .find_map(|at| self.arrivals.iter().position(|arrival| arrival.node == at))
    }

    /// Adds the pair of an arrival and one that may be the last of its round.
    fn pair(&mut self, clauses: &mut Clauses, tree: &Tree, first: usize, last: usize) {
        let (waits, ends) = (&self.arrivals[first], &self.arrivals[last]);
        let (from, to) = (waits.node, ends.node);
        let term = clauses.fresh();
        clauses.clause([off(term), on(tree[from].active)]);
        clauses.clause([off(term), off(waits.last)]);
        clauses.clause([off(term), on(ends.last)]);
        clauses.clause([off(term), before(tree[from].event, tree[to].event)]);
        // The last one ends all waits that have begun, unless one before it has.
        let must = clauses.fresh();
        let earlier = clauses.list(self.subject, on(must));
        let later = before(tree[to].event, tree[from].event);
        clauses.clause([off(tree[from].active), off(ends.last), on(waits.last), later, on(term), on(must)]);
        let new = Ends { first, last, term, earlier };
        for other in self.pairs.iter().filter(|other| other.first == first) {
            clauses.clause([off(term), off(other.term)]);
            self.earlier(clauses, tree, *other, new);
            self.earlier(clauses, tree, new, *other);
        }
        self.pairs.push(new);
        clauses.extend(waits.completed, on(term));
        for &leaves in &waits.leaves {
            ended_before(clauses, tree, term, to, leaves);
        }
        for &stuck in &waits.stuck {
            clauses.clause([off(stuck), off(term)]);
        }
        let (enough, many) = &mut self.arrivals[last].others;
        enough.add(clauses, &on(term));
        many.add(clauses, term);
    }

    /// An alternative to the second pair: the first one ends the wait before.
    fn earlier(&self, clauses: &mut Clauses, tree: &Tree, first: Ends, second: Ends) {
        let [earlier, later] = [first, second].map(|pair| tree[self.arrivals[pair.last].node].event);
        let was = clauses.fresh();
        clauses.clause([off(was), on(first.term)]);
        clauses.clause([off(was), before(earlier, later)]);
        clauses.extend(second.earlier, on(was));
    }
}
