//! Semaphores: which token a wait takes.
//!
//! A semaphore has as many tokens at first as its count says, and each post adds one. A wait that succeeds takes a token
//! that was there before, and no other wait takes it. An attempt fails exactly if each token before it was taken before
//! it. All of this can be said of an execution if each wait takes the oldest token. Conversely, where it holds, the count
//! is never negative, and 0 at each failure.
//!
//! Tokens of posts have a term for each wait that may take them. Those that are there at first are all alike, so they are
//! only counted.

use crate::clauses::{Clauses, List, Subject, before, off, on};
use crate::counters::{AtLeast, AtMost};
use crate::tree::{NodeId, Relation, Tree};
use heisen_solver::{Formula, Term};
use std::collections::BTreeMap;

/// A wait that succeeds.
struct Wait {
    node: NodeId,
    /// Whether it takes a token that was there at first, if there were any.
    first: Option<Term>,
    /// The tokens that it may take.
    list: List,
}

struct Post {
    node: NodeId,
    /// For deadlocks: from this follows that a wait takes the token.
    taken: Option<(Term, List)>,
}

/// A wait that may take the token of a post.
#[derive(Clone, Copy)]
struct Takes {
    post: usize,
    wait: usize,
    /// Whether it does.
    term: Term,
}

/// An attempt that failed, because there was no token.
struct Failure {
    node: NodeId,
    /// The tokens that were there at first, taken by then.
    first: AtLeast,
    /// By number of the post: the token is taken by then.
    posts: Vec<(usize, List)>,
}

struct Semaphore {
    subject: Subject,
    count: usize,
    waits: Vec<Wait>,
    posts: Vec<Post>,
    takes: Vec<Takes>,
    failures: Vec<Failure>,
    /// The waits that take a token that was there at first.
    taken: AtMost,
    /// For deadlocks: from this follows that no token is left at the end of the prefix.
    empty: Option<(Term, AtLeast)>,
    initialised: Vec<NodeId>,
}

/// All semaphores, by address.
#[derive(Default)]
pub struct Semaphores {
    all: BTreeMap<u64, Semaphore>,
    counts: BTreeMap<u64, u64>,
    /// Whether executions have disagreed about the count that a semaphore has at first, or it cannot be told.
    pub contradicted: bool,
    /// Whether a semaphore may be initialised when it was used already.
    pub reused: bool,
}

impl std::fmt::Debug for Semaphores {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Semaphores").field("semaphores", &self.all.len()).finish_non_exhaustive()
    }
}

/// Posts beyond the greatest value of a semaphore fail. No semaphore with fewer tokens than this comes near to it.
const MANY: u64 = 1 << 30;

impl Semaphores {
    /// An execution has found so many tokens at first.
    pub fn learn(&mut self, object: u64, count: u64) {
        let known = *self.counts.entry(object).or_insert(count);
        self.contradicted |= known != count || count >= MANY;
    }

    /// The semaphore, which is used at this node.
    fn used(&mut self, clauses: &mut Clauses, tree: &Tree, object: u64, node: NodeId) -> &mut Semaphore {
        let Semaphores { all, counts, contradicted, reused } = self;
        let semaphore = all.entry(object).or_insert_with(|| {
            let count = counts.get(&object).copied();
            *contradicted |= count.is_none();
            let (waits, posts, takes, failures, initialised) = Default::default();
            let (subject, count) = (clauses.subject(), count.unwrap_or(0) as usize);
            let taken = AtMost::new(count);
            Semaphore { subject, count, waits, posts, takes, failures, taken, empty: None, initialised }
        });
        let after =
            |&init: &NodeId| matches!(tree.relation(init, node), Relation::Before | Relation::Exclusive);
        *reused |= !semaphore.initialised.iter().all(after);
        semaphore
    }

    /// The semaphore gets its count. All of its uses must come later.
    pub fn initialise(&mut self, clauses: &mut Clauses, tree: &Tree, node: NodeId, object: u64) {
        let semaphore = self.used(clauses, tree, object, node);
        let Semaphore { initialised, waits, posts, failures, .. } = &*semaphore;
        let used = (initialised.iter().copied())
            .chain(waits.iter().map(|wait| wait.node))
            .chain(posts.iter().map(|post| post.node))
            .chain(failures.iter().map(|failure| failure.node));
        let reused = used.into_iter().any(|other| tree.relation(node, other) != Relation::Exclusive);
        semaphore.initialised.push(node);
        self.reused |= reused;
    }

    /// A wait takes a token.
    pub fn wait(&mut self, clauses: &mut Clauses, tree: &Tree, node: NodeId, object: u64) {
        let semaphore = self.used(clauses, tree, object, node);
        let list = clauses.list(semaphore.subject, on(tree[node].active));
        let first = (semaphore.count > 0).then(|| semaphore.takes_first(clauses, tree, node));
        if let Some(first) = first {
            clauses.extend(list, on(first));
        }
        semaphore.waits.push(Wait { node, first, list });
        let number = semaphore.waits.len() - 1;
        for post in 0..semaphore.posts.len() {
            semaphore.pair(clauses, tree, post, number);
        }
        if let Some(first) = first {
            for failure in &mut semaphore.failures {
                if let Some(earlier) = comes_before(clauses, tree, node, failure.node, first) {
                    failure.first.add(clauses, &earlier);
                }
            }
            if let Some((_, drained)) = &mut semaphore.empty {
                drained.add(clauses, &on(first));
            }
        }
    }

    /// A post adds a token.
    pub fn post(&mut self, clauses: &mut Clauses, tree: &Tree, node: NodeId, object: u64) {
        let semaphore = self.used(clauses, tree, object, node);
        semaphore.posts.push(Post { node, taken: None });
        let number = semaphore.posts.len() - 1;
        for wait in 0..semaphore.waits.len() {
            semaphore.pair(clauses, tree, number, wait);
        }
        for failure in 0..semaphore.failures.len() {
            semaphore.taken_by(clauses, tree, number, failure);
        }
        if let Some((empty, _)) = semaphore.empty {
            semaphore.taken_at_end(clauses, tree, number, empty);
        }
    }

    /// An attempt finds no token.
    pub fn fail(&mut self, clauses: &mut Clauses, tree: &Tree, node: NodeId, object: u64) {
        let semaphore = self.used(clauses, tree, object, node);
        let mut first = AtLeast::new(clauses, semaphore.subject, semaphore.count, on(tree[node].active));
        for wait in &semaphore.waits {
            if let Some(takes) = wait.first
                && let Some(earlier) = comes_before(clauses, tree, wait.node, node, takes)
            {
                first.add(clauses, &earlier);
            }
        }
        semaphore.failures.push(Failure { node, first, posts: Vec::new() });
        for post in 0..semaphore.posts.len() {
            semaphore.taken_by(clauses, tree, post, semaphore.failures.len() - 1);
        }
    }

    /// From the result follows that no token is left at the end of the prefix. A thread waits after this node.
    pub fn empty(&mut self, clauses: &mut Clauses, tree: &Tree, node: NodeId, object: u64) -> Term {
        let semaphore = self.used(clauses, tree, object, node);
        if let Some((empty, _)) = semaphore.empty {
            return empty;
        }
        let empty = clauses.fresh();
        let mut drained = AtLeast::new(clauses, semaphore.subject, semaphore.count, on(empty));
        for wait in &semaphore.waits {
            if let Some(first) = wait.first {
                drained.add(clauses, &on(first));
            }
        }
        semaphore.empty = Some((empty, drained));
        for post in 0..semaphore.posts.len() {
            semaphore.taken_at_end(clauses, tree, post, empty);
        }
        empty
    }
}

/// The formula that this happens at the first node, and that the first node comes before the second, if it can.
fn comes_before(
    clauses: &mut Clauses,
    tree: &Tree,
    first: NodeId,
    second: NodeId,
    happens: Term,
) -> Option<Formula> {
    match tree.relation(first, second) {
        Relation::Before => Some(on(happens)),
        Relation::After | Relation::Exclusive => None,
        Relation::Concurrent => {
            let both = clauses.fresh();
            clauses.clause([off(both), on(happens)]);
            clauses.clause([off(both), before(tree[first].event, tree[second].event)]);
            Some(on(both))
        }
    }
}

impl Semaphore {
    /// Whether a new wait takes a token that was there at first. No more do than there are.
    fn takes_first(&mut self, clauses: &mut Clauses, tree: &Tree, node: NodeId) -> Term {
        let first = clauses.fresh();
        clauses.clause([off(first), on(tree[node].active)]);
        self.taken.add(clauses, first);
        first
    }

    /// Adds the pair of a post and a wait, unless the wait cannot take the token.
    fn pair(&mut self, clauses: &mut Clauses, tree: &Tree, post: usize, wait: usize) {
        let (posted, waits) = (self.posts[post].node, &self.waits[wait]);
        let relation = tree.relation(posted, waits.node);
        if !matches!(relation, Relation::Before | Relation::Concurrent) {
            return;
        }
        let term = clauses.fresh();
        clauses.clause([off(term), on(tree[waits.node].active)]);
        if relation == Relation::Concurrent {
            clauses.clause([off(term), on(tree[posted].active)]);
            clauses.clause([off(term), before(tree[posted].event, tree[waits.node].event)]);
        }
        if let Some(first) = waits.first {
            clauses.clause([off(term), off(first)]);
        }
        for other in &self.takes {
            if other.wait == wait || other.post == post {
                clauses.clause([off(term), off(other.term)]);
            }
        }
        clauses.extend(waits.list, on(term));
        for failure in &self.failures {
            if let Some(&(_, list)) = failure.posts.iter().find(|(number, _)| *number == post)
                && let Some(earlier) = comes_before(clauses, tree, waits.node, failure.node, term)
            {
                clauses.extend(list, earlier);
            }
        }
        if let Some((_, list)) = self.posts[post].taken {
            clauses.extend(list, on(term));
        }
        self.takes.push(Takes { post, wait, term });
    }

    /// If the post comes before an attempt that fails, its token was taken by then.
    fn taken_by(&mut self, clauses: &mut Clauses, tree: &Tree, post: usize, failure: usize) {
        let (posted, failed) = (self.posts[post].node, self.failures[failure].node);
        let premise = match tree.relation(posted, failed) {
            Relation::Before => on(tree[failed].active),
            Relation::After | Relation::Exclusive => return,
            Relation::Concurrent => {
                let earlier = clauses.fresh();
                let later = before(tree[failed].event, tree[posted].event);
                clauses.clause([off(tree[posted].active), off(tree[failed].active), later, on(earlier)]);
                on(earlier)
            }
        };
        let list = clauses.list(self.subject, premise);
        for takes in self.takes.iter().filter(|takes| takes.post == post) {
            let wait = self.waits[takes.wait].node;
            if let Some(earlier) = comes_before(clauses, tree, wait, failed, takes.term) {
                clauses.extend(list, earlier);
            }
        }
        self.failures[failure].posts.push((post, list));
    }

    /// If no token is left, that of this post is taken.
    fn taken_at_end(&mut self, clauses: &mut Clauses, tree: &Tree, post: usize, empty: Term) {
        let taken = clauses.fresh();
        clauses.clause([off(empty), off(tree[self.posts[post].node].active), on(taken)]);
        let list = clauses.list(self.subject, on(taken));
        for takes in self.takes.iter().filter(|takes| takes.post == post) {
            clauses.extend(list, on(takes.term));
        }
        self.posts[post].taken = Some((taken, list));
    }
}
