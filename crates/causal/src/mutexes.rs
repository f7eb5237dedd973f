//! Mutexes and read-write locks: sections that do not overlap (Cortex, section 2.3, "locking constraints").
//!
//! They are events, never memory. A section whose release is not in the prefix is the last one of its lock.

use crate::clauses::{Clauses, List, Subject, before, off, on};
use crate::tree::{NodeId, Relation, Tree};
use heisen_solver::{Formula, Term};
use std::collections::BTreeMap;

struct Section {
    node: NodeId,
    /// Whether other sections of this sort may overlap it.
    shared: bool,
    /// The releases on the paths behind the node.
    releases: Vec<NodeId>,
    /// From this follows that one of the releases is in the prefix.
    ended: Term,
    list: List,
    /// For deadlocks: whether the prefix ends within the section.
    lasts: Option<Term>,
}

/// An attempt that failed, because a section was in progress.
struct Failure {
    node: NodeId,
    /// Whether it was to begin a section of this sort.
    shared: bool,
    list: List,
    /// By number of the section: whether it is that one.
    during: Vec<(usize, Term)>,
}

struct Lock {
    subject: Subject,
    sections: Vec<Section>,
    failures: Vec<Failure>,
    /// For deadlocks: whether the prefix ends within an exclusive section, and within any.
    occupied: [Option<(Term, List)>; 2],
}

/// All locks, by address.
#[derive(Default)]
pub struct Mutexes(BTreeMap<u64, Lock>);

impl std::fmt::Debug for Mutexes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mutexes").field("locks", &self.0.len()).finish()
    }
}

impl Mutexes {
    fn lock(&mut self, clauses: &mut Clauses, object: u64) -> &mut Lock {
        self.0.entry(object).or_insert_with(|| Lock {
            subject: clauses.subject(),
            sections: Vec::new(),
            failures: Vec::new(),
            occupied: [None, None],
        })
    }

    /// A thread acquires the lock.
    pub fn acquire(&mut self, clauses: &mut Clauses, tree: &Tree, node: NodeId, object: u64, shared: bool) {
        let lock = self.lock(clauses, object);
        let ended = clauses.fresh();
        let list = clauses.list(lock.subject, on(ended));
        let section = Section { node, shared, releases: Vec::new(), ended, list, lasts: None };
        for other in lock.sections.iter().filter(|other| !(other.shared && shared)) {
            let relation = tree.relation(other.node, node);
            if relation == Relation::Exclusive {
                continue;
            }
            if relation != Relation::After {
                other.ends_before(clauses, tree, node, relation);
            }
            if relation != Relation::Before {
                section.ends_before(clauses, tree, other.node, opposite(relation));
            }
        }
        lock.sections.push(section);
        let number = lock.sections.len() - 1;
        for failure in &mut lock.failures {
            failure.may_be_during(clauses, tree, number, &lock.sections[number]);
        }
        for (any, occupied) in lock.occupied.iter().enumerate() {
            if let Some((_, list)) = occupied
                && (any == 1 || !shared)
            {
                let lasts = lock.sections[number].lasts(clauses, tree);
                clauses.extend(*list, on(lasts));
            }
        }
    }

    /// The thread that acquired the lock at `by` releases it.
    pub fn release(&mut self, clauses: &mut Clauses, tree: &Tree, node: NodeId, object: u64, by: NodeId) {
        let lock = self.lock(clauses, object);
        let Some(number) = lock.sections.iter().position(|section| section.node == by) else { return };
        lock.sections[number].releases.push(node);
        let section = &lock.sections[number];
        clauses.extend(section.list, on(tree[node].active));
        if let Some(lasts) = section.lasts {
            clauses.clause([off(lasts), off(tree[node].active)]);
        }
        for other in &lock.sections {
            if other.node == by || other.shared && section.shared {
                continue;
            }
            let relation = tree.relation(section.node, other.node);
            if matches!(relation, Relation::Before | Relation::Concurrent) {
                release_before(clauses, tree, node, other.node, section.node, relation);
            }
        }
        for failure in &lock.failures {
            for &(_, during) in failure.during.iter().filter(|(at, _)| *at == number) {
                not_released(clauses, tree, during, node, failure.node);
            }
        }
    }

    /// An attempt to acquire the lock fails. Sections of readers do not hinder a reader.
    pub fn fail(&mut self, clauses: &mut Clauses, tree: &Tree, node: NodeId, object: u64, shared: bool) {
        let lock = self.lock(clauses, object);
        let list = clauses.list(lock.subject, on(tree[node].active));
        let mut failure = Failure { node, shared, list, during: Vec::new() };
        for (number, section) in lock.sections.iter().enumerate() {
            failure.may_be_during(clauses, tree, number, section);
        }
        lock.failures.push(failure);
    }

    /// From the result follows that the prefix ends within a section: within any, or within an exclusive one.
    pub fn occupied(&mut self, clauses: &mut Clauses, tree: &Tree, object: u64, any: bool) -> Term {
        let lock = self.lock(clauses, object);
        if let Some((term, _)) = lock.occupied[usize::from(any)] {
            return term;
        }
        let term = clauses.fresh();
        let list = clauses.list(lock.subject, on(term));
        for section in lock.sections.iter_mut().filter(|section| any || !section.shared) {
            let lasts = section.lasts(clauses, tree);
            clauses.extend(list, on(lasts));
        }
        lock.occupied[usize::from(any)] = Some((term, list));
        term
    }
}

fn opposite(relation: Relation) -> Relation {
    match relation {
        Relation::Before => Relation::After,
        Relation::After => Relation::Before,
        other => other,
    }
}

impl Section {
    /// If another section begins later, this one has ended by then. `relation` is that of this section to the other.
    fn ends_before(&self, clauses: &mut Clauses, tree: &Tree, other: NodeId, relation: Relation) {
        if self.releases.iter().any(|&release| tree.is_before(release, other)) {
            return;
        }
        let mut clause = vec![off(tree[self.node].active), off(tree[other].active), on(self.ended)];
        if relation == Relation::Concurrent {
            clause.push(before(tree[other].event, tree[self.node].event));
        }
        clauses.clause(clause);
        for &release in &self.releases {
            release_before(clauses, tree, release, other, self.node, relation);
        }
    }

    /// From the result follows that the prefix ends within the section.
    fn lasts(&mut self, clauses: &mut Clauses, tree: &Tree) -> Term {
        if let Some(lasts) = self.lasts {
            return lasts;
        }
        let lasts = clauses.fresh();
        clauses.clause([off(lasts), on(tree[self.node].active)]);
        for &release in &self.releases {
            clauses.clause([off(lasts), off(tree[release].active)]);
        }
        self.lasts = Some(lasts);
        lasts
    }
}

/// A section that begins later begins after this release.
fn release_before(
    clauses: &mut Clauses,
    tree: &Tree,
    release: NodeId,
    later: NodeId,
    acquired: NodeId,
    relation: Relation,
) {
    if !matches!(tree.relation(release, later), Relation::Concurrent | Relation::After) {
        return;
    }
    let events = [release, later, acquired].map(|node| tree[node].event);
    let mut clause = vec![off(tree[release].active), off(tree[later].active), before(events[0], events[1])];
    if relation == Relation::Concurrent {
        clause.push(before(events[1], events[2]));
    }
    clauses.clause(clause);
}

/// A section during which an attempt failed is not released before the attempt.
fn not_released(clauses: &mut Clauses, tree: &Tree, during: Term, release: NodeId, failed: NodeId) {
    let mut clause: Vec<Formula> = vec![off(during), off(tree[release].active)];
    match tree.relation(release, failed) {
        Relation::Exclusive | Relation::After => return,
        Relation::Before => {}
        Relation::Concurrent => clause.push(before(tree[failed].event, tree[release].event)),
    }
    clauses.clause(clause);
}

impl Failure {
    fn may_be_during(&mut self, clauses: &mut Clauses, tree: &Tree, number: usize, section: &Section) {
        let relation = tree.relation(section.node, self.node);
        let over = section.releases.iter().any(|&release| tree.is_before(release, self.node));
        let hinders = !(self.shared && section.shared);
        if matches!(relation, Relation::Exclusive | Relation::After) || over || !hinders {
            return;
        }
        let during = clauses.fresh();
        clauses.clause([off(during), on(tree[section.node].active)]);
        if relation == Relation::Concurrent {
            clauses.clause([off(during), before(tree[section.node].event, tree[self.node].event)]);
        }
        for &release in &section.releases {
            not_released(clauses, tree, during, release, self.node);
        }
        self.during.push((number, during));
        clauses.extend(self.list, on(during));
    }
}
