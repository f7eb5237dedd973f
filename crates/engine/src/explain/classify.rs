//! Classifies a bug by comparing a failing execution with passing ones, and says what would prevent it.
//!
//! An *atomicity violation* is an access of another thread between two accesses of a thread to the same variable, of
//! a kind that no serial order has: read-write-read, write-write-read, write-read-write or read-write-write (Lu, Tucek,
//! Qin, Zhou: AVIO, ASPLOS 2006). An *order violation* is a read that came before the write that it sees in the passing
//! execution, or after a write that comes later there.
//!
//! A class is stated only if a passing execution has the same accesses in another order. Otherwise an ordinary use of a
//! variable would count: main initialises it, a thread sets it, main reads it.

use super::compare::Flow;
use heisen_trace::explanation::{BugClass, Moment, Ordering, Remedy};
use heisen_trace::{Op, ThreadId};
use std::collections::{BTreeSet, HashMap, HashSet};

/// The class of a bug and the operations that show it.
#[derive(Clone, Debug)]
pub(crate) struct Classified {
    pub(crate) class: BugClass,
    pub(crate) object: String,
    pub(crate) story: Vec<Moment>,
    /// Operations of the story that only passing executions have.
    pub(crate) pending: Vec<usize>,
    /// Operations of the story that a thread waits to do in the end.
    pub(crate) waiting: Vec<usize>,
    pub(crate) orderings: Vec<Ordering>,
    pub(crate) remedies: Vec<Remedy>,
}

/// A necessary ordering with its operations.
#[derive(Clone, Debug)]
pub(crate) struct NamedOrder {
    pub(crate) first: Moment,
    pub(crate) second: Moment,
    /// Whether only passing executions have the second operation.
    pub(crate) pending: bool,
}

impl Classified {
    pub(crate) fn new(class: BugClass) -> Classified {
        Classified {
            class,
            object: String::new(),
            story: Vec::new(),
            pending: Vec::new(),
            waiting: Vec::new(),
            orderings: Vec::new(),
            remedies: Vec::new(),
        }
    }

    /// Replaces the orderings by the necessary ones, and adds their operations to the story.
    pub(crate) fn confirm(&mut self, failing: &Flow, orders: &[NamedOrder]) {
        let pairs: Vec<(usize, usize)> = orders
            .iter()
            .map(|order| (self.index(&order.first, false), self.index(&order.second, order.pending)))
            .collect();
        // In the order of the failing execution, then what it did not reach.
        let position = |index: &usize| match self.pending.contains(index) {
            true => usize::MAX,
            false => {
                // What a thread waits for in the end comes last.
                let at = failing.observed.iter().position(|event| event.moment == self.story[*index]);
                at.unwrap_or(usize::MAX - 1)
            }
        };
        let mut order: Vec<usize> = (0..self.story.len()).collect();
        order.sort_by_key(position);
        let now = |old: usize| order.iter().position(|&index| index == old).unwrap_or(old);
        self.orderings = pairs
            .iter()
            .map(|&(first, second)| Ordering { first: now(first), second: now(second) })
            .collect();
        for indices in [&mut self.pending, &mut self.waiting] {
            indices.iter_mut().for_each(|index| *index = now(*index));
        }
        self.story = order.iter().map(|&index| self.story[index].clone()).collect();
    }

    /// The index of an operation of the story; adds it if it is missing.
    fn index(&mut self, moment: &Moment, pending: bool) -> usize {
        // The operations of a deadlock come from the state at its end, without steps.
        let is_same = |known: &Moment| {
            let step = if known.step == 0 { 0 } else { moment.step };
            *known == Moment { step, ..moment.clone() }
        };
        self.story.iter().position(is_same).unwrap_or_else(|| {
            self.story.push(moment.clone());
            let index = self.story.len() - 1;
            self.pending.extend(pending.then_some(index));
            index
        })
    }
}

/// The class that the necessary orderings alone show. If an operation of another thread must come after one operation of
/// a thread and before a later one, these two should have been one step. A single ordering is an order violation.
pub(crate) fn by_orderings(failing: &Flow, orders: &[NamedOrder]) -> Classified {
    let around = orders.iter().find_map(|before| {
        let after = orders.iter().find(|after| {
            before.first.thread == after.second.thread && before.second.thread == after.first.thread
        })?;
        Some((before, after))
    });
    let mut objects: Vec<&str> = Vec::new();
    let (class, shown) = match (around, orders) {
        (Some((before, after)), _) => (BugClass::AtomicityViolation, vec![&before.first, &after.second]),
        (None, [only]) => (BugClass::OrderViolation, vec![&only.second]),
        _ => (BugClass::Unclassified, orders.iter().map(|order| &order.first).collect()),
    };
    for moment in shown {
        if !moment.object.is_empty() && !objects.contains(&moment.object.as_str()) {
            objects.push(&moment.object);
        }
    }
    let mut classified = Classified { object: objects.join(", "), ..Classified::new(class) };
    classified.confirm(failing, orders);
    classified
}

/// Three accesses of one variable: two of a thread, and one of another thread between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Triple {
    first: usize,
    between: usize,
    second: usize,
}

/// Classifies by the failing execution and the passing ones, the nearest first. `failed` is the thread that failed,
/// `preempted` are the threads that were preempted, with the steps. `None` if the executions do not differ in a way that
/// has a name.
pub(crate) fn classify(
    failing: &Flow,
    passing: &[Flow],
    failed: Option<ThreadId>,
    preempted: &[(ThreadId, u32)],
) -> Option<Classified> {
    let nearest = passing.first()?;
    let locks: HashSet<u64> =
        failing.observed.iter().filter(|event| event.lock.is_some()).map(|event| event.address).collect();
    // What belongs to a library of the language says little about the program.
    let foreign: HashSet<u64> = failing.foreign().into_iter().collect();
    let differing: Vec<usize> = (0..failing.observed.len())
        .filter(|&i| {
            let address = &failing.observed[i].address;
            failing.flow_differs(i, nearest) && !locks.contains(address) && !foreign.contains(address)
        })
        .collect();
    // What the failing thread read last, and saw differently, is closest to the failure.
    let mut addresses: Vec<u64> = Vec::new();
    let own = differing.iter().rev().filter(|&&i| Some(failing.moment(i).thread) == failed);
    let nearest_first: Vec<usize> = own.chain(differing.iter()).copied().collect();
    for &index in &nearest_first {
        let address = failing.observed[index].address;
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    let triple = addresses.iter().find_map(|&address| triple(failing, nearest, address));
    let interrupted = |both: bool| {
        let classified = preempted.iter().rev().filter_map(|&at| interruption(failing, passing, at, &locks));
        // With one access only, nothing shows that it matters, unless the data flows there differ.
        let differs =
            |found: &Classified| differing.iter().any(|&i| failing.moment(i).object == found.object);
        classified.filter(move |found| {
            let enough = found.class == BugClass::AtomicityViolation || !both && differs(found);
            enough && !found.orderings.is_empty()
        })
    };
    let unfinished = || {
        preempted.iter().rev().find_map(|&(thread, step)| unfinished(failing, passing, thread, step, &locks))
    };
    triple
        .map(|triple| atomicity(failing, passing, triple, failed))
        .or_else(|| interrupted(true).next())
        .or_else(unfinished)
        .or_else(|| order(failing, passing, &nearest_first))
        .or_else(|| interrupted(false).next())
}

/// What happened while a thread was preempted, in terms of variables that it used before and uses after. If there are
/// both, with one or two variables, its two accesses should have been one step. If there is only one of them, its order
/// with an access of another thread matters.
fn interruption(
    failing: &Flow,
    passing: &[Flow],
    (thread, step): (ThreadId, u32),
    locks: &HashSet<u64>,
) -> Option<Classified> {
    let is_own = |index: &usize| failing.moment(*index).thread == thread;
    let all = 0..failing.observed.len();
    let resumed = all.clone().find(|i| is_own(i) && failing.moment(*i).step >= step)?;
    let stopped = (0..resumed).rev().find(|i| is_own(i)).map_or(0, |last| last + 1);
    let between: Vec<usize> = (stopped..resumed).filter(|&i| is_access(failing, i)).collect();
    let conflict = |index: usize| {
        let (own, writes) = (&failing.observed[index], failing.moment(index).writes());
        let with = |&&other: &&usize| {
            failing.observed[other].address == own.address && (writes || failing.moment(other).writes())
        };
        (is_access(failing, index) && !locks.contains(&own.address))
            .then(|| between.iter().find(with))
            .flatten()
    };
    let own = |range: std::ops::Range<usize>| range.filter(|i| is_own(i));
    let before = own(0..stopped).rev().find_map(|i| Some((i, *conflict(i)?)));
    let after = own(resumed..all.end).find_map(|i| Some((i, *conflict(i)?)));
    let name = |index: usize| failing.moment(index).object.clone();
    let (class, object, story) = match (before, after) {
        (Some((first, with_first)), Some((second, with_second))) => {
            let mut inner = vec![with_first, with_second];
            inner.sort_unstable();
            inner.dedup();
            let (one, other) = (name(first), name(second));
            let object = if one == other { one } else { format!("{one}, {other}") };
            let story = [first].into_iter().chain(inner).chain([second]).collect::<Vec<_>>();
            (BugClass::AtomicityViolation, object, story)
        }
        (Some((first, other)), None) => (BugClass::OrderViolation, name(first), vec![first, other]),
        (None, Some((second, other))) => (BugClass::OrderViolation, name(second), vec![other, second]),
        (None, None) => return None,
    };
    let last = story.len() - 1;
    let pairs = [(0, 1), (last - 1, last)];
    let mut orderings: Vec<Ordering> = pairs
        .into_iter()
        .filter(|&(one, other)| is_reversed(passing, failing, story[one], story[other]))
        .map(|(first, second)| Ordering { first, second })
        .collect();
    orderings.dedup();
    Some(Classified {
        object,
        story: story.iter().map(|&i| failing.moment(i).clone()).collect(),
        orderings,
        ..Classified::new(class)
    })
}

/// Like [`interruption`] for a thread that never ran again, because the failure came first: it had used one variable, and
/// was about to write another that it writes in a passing execution. In between another thread used both.
fn unfinished(
    failing: &Flow,
    passing: &[Flow],
    thread: ThreadId,
    step: u32,
    locks: &HashSet<u64>,
) -> Option<Classified> {
    let is_own = |flow: &Flow, index: usize| flow.moment(index).thread == thread;
    let all = 0..failing.observed.len();
    if all.clone().any(|i| is_own(failing, i) && failing.moment(i).step >= step) {
        return None;
    }
    let stopped = all.clone().rev().find(|&i| is_own(failing, i))?;
    let between: Vec<usize> = (stopped + 1..all.end).filter(|&i| is_access(failing, i)).collect();
    let conflict = |flow: &Flow, index: usize| {
        let (own, writes) = (&flow.observed[index], flow.moment(index).writes());
        let with = |&&other: &&usize| {
            failing.observed[other].address == own.address && (writes || failing.moment(other).writes())
        };
        let counts = is_access(flow, index) && !locks.contains(&own.address);
        counts.then(|| between.iter().find(with).copied()).flatten()
    };
    let own = (0..=stopped).rev().filter(|&i| is_own(failing, i));
    let (first, with_first) = own.filter_map(|i| Some((i, conflict(failing, i)?))).next()?;
    passing.iter().find_map(|flow| {
        let missing =
            |&i: &usize| is_own(flow, i) && flow.moment(i).writes() && failing.find(&flow.keys[i]).is_none();
        let (second, with_second) =
            (0..flow.observed.len()).filter(missing).find_map(|i| Some((i, conflict(flow, i)?)))?;
        // The passing execution has these two in the opposite order.
        let there = flow.find(&failing.keys[with_second])?;
        if there < second || with_second < with_first {
            return None;
        }
        let name = |moment: &Moment| moment.object.clone();
        let (one, other) = (name(failing.moment(first)), name(flow.moment(second)));
        let mut story = vec![first, with_first, with_second];
        story.dedup();
        let mut story: Vec<Moment> = story.iter().map(|&i| failing.moment(i).clone()).collect();
        story.push(flow.moment(second).clone());
        let last = story.len() - 1;
        Some(Classified {
            object: if one == other { one } else { format!("{one}, {other}") },
            story,
            pending: vec![last],
            orderings: vec![Ordering { first: last - 1, second: last }],
            ..Classified::new(BugClass::AtomicityViolation)
        })
    })
}

/// Whether a passing execution has two operations of the failing one in the opposite order.
fn is_reversed(passing: &[Flow], failing: &Flow, one: usize, other: usize) -> bool {
    passing.iter().any(|flow| {
        let at = |index: usize| flow.find(&failing.keys[index]);
        matches!((at(one), at(other)), (Some(one), Some(other)) if other < one)
    })
}

/// The first triple on a variable that the passing execution does not have.
fn triple(failing: &Flow, passing: &Flow, address: u64) -> Option<Triple> {
    let accesses: Vec<usize> = (0..failing.observed.len())
        .filter(|&i| is_access(failing, i) && failing.observed[i].address == address)
        .collect();
    let thread = |index: usize| failing.moment(index).thread;
    for (at, &first) in accesses.iter().enumerate() {
        let later = &accesses[at + 1..];
        let Some(distance) = later.iter().position(|&i| thread(i) == thread(first)) else { continue };
        let second = later[distance];
        for &between in &later[..distance] {
            let triple = Triple { first, between, second };
            if is_unserialisable(failing, triple) && is_outside(passing, failing, triple) {
                return Some(triple);
            }
        }
    }
    None
}

fn is_access(flow: &Flow, index: usize) -> bool {
    flow.moment(index).is_access()
}

fn is_unserialisable(flow: &Flow, Triple { first, between, second }: Triple) -> bool {
    let (reads, writes) = (|i: usize| flow.reads(i), |i: usize| flow.moment(i).writes());
    // A remote write between two accesses of which the later one, or the pair, depends on the earlier value.
    let remote_write = writes(between) && (reads(second) || reads(first) && writes(second));
    remote_write || writes(first) && reads(between) && writes(second)
}

/// Whether a passing execution has all accesses of a triple of the failing one, but the other thread's is not between. Or
/// the other thread's write comes first, and what the thread reads then makes it leave out its own write: the thread
/// checks a variable and acts on what it saw.
fn is_outside(passing: &Flow, failing: &Flow, triple: Triple) -> bool {
    let at = |index: usize| passing.find(&failing.keys[index]);
    let acts = || {
        let same = |&index: &usize| {
            let (this, second) = (&failing.observed[index], &failing.observed[triple.second]);
            this.address == second.address
                && this.moment.thread == second.moment.thread
                && failing.moment(index).writes()
        };
        let write = (triple.second..failing.observed.len()).find(same);
        failing.reads(triple.first)
            && failing.moment(triple.between).writes()
            && write.is_some_and(|write| at(write).is_none())
    };
    match (at(triple.first), at(triple.between), at(triple.second)) {
        (Some(first), Some(between), Some(second)) => between < first || second < between,
        (Some(first), Some(between), None) => between < first && acts(),
        _ => false,
    }
}

fn atomicity(failing: &Flow, passing: &[Flow], triple: Triple, failed: Option<ThreadId>) -> Classified {
    let Triple { first, between, second } = triple;
    let address = failing.observed[first].address;
    let mut story: Vec<usize> = vec![first, between, second];
    // What the failing thread saw in the end.
    let symptom = (second + 1..failing.observed.len()).rev().find(|&i| {
        failing.observed[i].address == address && failing.reads(i) && Some(failing.moment(i).thread) == failed
    });
    story.extend(symptom);
    let reversed = |one: usize, other: usize| is_reversed(passing, failing, one, other);
    let mut orderings = Vec::new();
    if reversed(first, between) {
        orderings.push(Ordering { first: 0, second: 1 });
    }
    if reversed(between, second) {
        orderings.push(Ordering { first: 1, second: 2 });
    }
    Classified {
        object: failing.moment(first).object.clone(),
        remedies: lock_remedies(failing, triple)
            .into_iter()
            .chain(same_value_again(failing, address))
            .collect(),
        story: story.iter().map(|&i| failing.moment(i).clone()).collect(),
        orderings,
        ..Classified::new(BugClass::AtomicityViolation)
    }
}

/// The first of these reads that sees a value too early or too late.
fn order(failing: &Flow, passing: &[Flow], differing: &[usize]) -> Option<Classified> {
    let nearest = passing.first()?;
    differing.iter().find_map(|&read| {
        let there = nearest.find(&failing.keys[read])?;
        let thread = failing.moment(read).thread;
        // The write that it sees when the program passes, if that comes later here or not at all.
        let missed = nearest.from[there].filter(|&write| nearest.moment(write).thread != thread);
        let late = missed.map(|write| failing.find(&nearest.keys[write]));
        let story = match (late, failing.from[read]) {
            (Some(Some(write)), _) if write > read => [read, write],
            (_, Some(write)) if failing.moment(write).thread != thread => {
                let early = nearest.find(&failing.keys[write]).is_some_and(|write| write > there);
                early.then_some([write, read])?
            }
            _ => return None,
        };
        Some(Classified {
            object: failing.moment(read).object.clone(),
            story: story.map(|index| failing.moment(index).clone()).to_vec(),
            orderings: vec![Ordering { first: 0, second: 1 }],
            ..Classified::new(BugClass::OrderViolation)
        })
    })
}

/// The ABA problem: a thread reads a value and compares it later; the value is the same, but it was another one meanwhile.
fn same_value_again(flow: &Flow, address: u64) -> Option<Remedy> {
    let accesses: Vec<usize> = (0..flow.observed.len())
        .filter(|&i| is_access(flow, i) && flow.observed[i].address == address)
        .collect();
    accesses.iter().enumerate().find_map(|(at, &compared)| {
        let (event, own) = (flow.moment(compared), |i: usize| flow.moment(i).thread);
        if event.op != Op::AtomicCas {
            return None;
        }
        let before = &accesses[..at];
        let seen = before.iter().rposition(|&i| own(i) == event.thread)?;
        let (value, others) = (flow.moment(before[seen]).value, &before[seen + 1..]);
        let writes: Vec<&Moment> = others.iter().map(|&i| flow.moment(i)).filter(|m| m.writes()).collect();
        let again = writes.last().filter(|last| last.value == value)?;
        writes.iter().any(|write| write.value != value).then(|| Remedy::SameValueAgain {
            variable: event.object.clone(),
            value: again.text.clone(),
            thread: event.thread,
            place: event.place.clone(),
        })
    })
}

/// The locks that a thread holds before each operation of an execution.
fn locks_held(flow: &Flow) -> Vec<BTreeSet<u64>> {
    let mut held: HashMap<ThreadId, BTreeSet<u64>> = HashMap::new();
    flow.observed
        .iter()
        .map(|event| {
            let held = held.entry(event.moment.thread).or_default();
            let before = held.clone();
            match event.lock {
                Some(true) => drop(held.insert(event.address)),
                Some(false) => drop(held.remove(&event.address)),
                None => {}
            }
            before
        })
        .collect()
}

/// What the locks that were held at the three accesses say. A lock that the other thread holds at its access would have
/// kept it out, had the first thread held the lock throughout.
fn lock_remedies(flow: &Flow, Triple { first, between, second }: Triple) -> Vec<Remedy> {
    let held = locks_held(flow);
    let name = |lock: u64| {
        let named = flow.observed.iter().find(|event| event.lock.is_some() && event.address == lock);
        named.map_or(String::new(), |event| event.moment.object.clone())
    };
    let thread = flow.moment(first).thread;
    let remedy = |&lock: &u64| {
        if let Some(at) = [first, second].into_iter().find(|&at| !held[at].contains(&lock)) {
            return Some(Remedy::LockMissing {
                lock: name(lock),
                thread,
                place: flow.moment(at).place.clone(),
            });
        }
        let releases = |&at: &usize| {
            let event = &flow.observed[at];
            event.moment.thread == thread && event.lock == Some(false) && event.address == lock
        };
        let at = (first..second).find(releases)?;
        // A place in a library of the language says nothing about the program.
        let event = &flow.observed[at];
        let place = if event.own { event.moment.place.clone() } else { String::new() };
        Some(Remedy::ReleasedBetween { lock: name(lock), thread, place })
    };
    held[between].iter().filter_map(remedy).collect()
}

#[cfg(test)]
mod tests {
    use super::super::compare::tests::execution;
    use super::*;

    #[test]
    fn a_lost_update_under_a_lock_that_is_released_in_between() {
        let failing = execution(&[
            (1, 'l', "m", 0),
            (1, 'r', "x", 0),
            (1, 'u', "m", 0),
            (2, 'l', "m", 0),
            (2, 'w', "x", 50),
            (2, 'u', "m", 0),
            (1, 'l', "m", 0),
            (1, 'w', "x", 100),
            (1, 'u', "m", 0),
            (0, 'r', "x", 100),
        ]);
        let passing = execution(&[
            (1, 'l', "m", 0),
            (1, 'r', "x", 0),
            (1, 'u', "m", 0),
            (1, 'l', "m", 0),
            (1, 'w', "x", 100),
            (1, 'u', "m", 0),
            (2, 'l', "m", 0),
            (2, 'w', "x", 150),
            (2, 'u', "m", 0),
            (0, 'r', "x", 150),
        ]);
        let found = classify(&failing, &[passing], Some(ThreadId(0)), &[]).expect("a class");
        assert_eq!((found.class, found.object.as_str()), (BugClass::AtomicityViolation, "x"));
        let story: Vec<(u16, u64)> = found.story.iter().map(|m| (m.thread.0, m.value.unwrap())).collect();
        assert_eq!(story, [(1, 0), (2, 50), (1, 100), (0, 100)]);
        // The passing execution shows only that the write may come after both.
        assert_eq!(found.orderings, [Ordering { first: 1, second: 2 }]);
        let released =
            Remedy::ReleasedBetween { lock: "m".into(), thread: ThreadId(1), place: "p.c:3".into() };
        assert_eq!(found.remedies, [released]);
    }

    #[test]
    fn the_access_without_the_lock_is_named() {
        let failing = execution(&[
            (1, 'r', "x", 0),
            (2, 'l', "m", 0),
            (2, 'w', "x", 1),
            (2, 'u', "m", 0),
            (1, 'w', "x", 1),
        ]);
        let passing = execution(&[
            (1, 'r', "x", 0),
            (1, 'w', "x", 1),
            (2, 'l', "m", 0),
            (2, 'w', "x", 2),
            (2, 'u', "m", 0),
            (0, 'r', "x", 2),
        ]);
        let late = execution(&[
            (1, 'r', "x", 0),
            (2, 'l', "m", 0),
            (2, 'w', "x", 1),
            (2, 'u', "m", 0),
            (1, 'w', "x", 1),
            (0, 'r', "x", 1),
        ]);
        assert!(classify(&failing, &[], None, &[]).is_none());
        let found = classify(&late, &[passing], Some(ThreadId(0)), &[]).expect("a class");
        assert_eq!(found.class, BugClass::AtomicityViolation);
        assert!(
            matches!(&found.remedies[0], Remedy::LockMissing { lock, thread: ThreadId(1), .. } if lock == "m")
        );
    }

    #[test]
    fn a_check_on_which_a_thread_acts() {
        let failing = execution(&[(1, 'r', "n", 0), (2, 'w', "n", 1), (1, 'w', "n", 2), (0, 'r', "n", 2)]);
        // It checks after the other's write, and leaves out its own.
        let passing = execution(&[(2, 'w', "n", 1), (1, 'r', "n", 1), (0, 'r', "n", 1)]);
        let found = classify(&failing, std::slice::from_ref(&passing), Some(ThreadId(0)), &[]);
        assert_eq!(found.expect("a class").class, BugClass::AtomicityViolation);
        // A loop that reads until it sees another value does not act.
        let failing = execution(&[(1, 'r', "n", 0), (2, 'w', "n", 1), (1, 'r', "n", 1)]);
        let found = classify(&failing, &[passing], Some(ThreadId(1)), &[]);
        assert_ne!(found.map(|found| found.class), Some(BugClass::AtomicityViolation));
    }

    #[test]
    fn an_ordinary_use_of_a_variable_is_no_violation() {
        // The passing execution does not have the write at all, so nothing shows that it came at a wrong time.
        let failing = execution(&[(0, 'w', "done", 0), (1, 'w', "done", 1), (0, 'r', "done", 1)]);
        let passing = execution(&[(0, 'w', "done", 0), (0, 'r', "done", 0)]);
        assert!(classify(&failing, &[passing], Some(ThreadId(0)), &[]).is_none());
    }

    #[test]
    fn a_lock_that_the_other_thread_does_not_hold_is_no_remedy() {
        let locked = |thread, what, object, value| {
            [(thread, 'l', "m", 0), (thread, what, object, value), (thread, 'u', "m", 0)]
        };
        let first = [locked(1, 'r', "x", 0), locked(1, 'w', "x", 1)];
        let (other, last) = ([(2, 'w', "x", 5)], |value| [(0, 'r', "x", value)]);
        let failing = execution(&[&first[0][..], &other, &first[1], &last(1)].concat());
        let passing = execution(&[&first[0][..], &first[1], &other, &last(5)].concat());
        let found = classify(&failing, &[passing], Some(ThreadId(0)), &[]).expect("a class");
        assert_eq!((found.class, found.remedies), (BugClass::AtomicityViolation, vec![]));
    }

    #[test]
    fn a_read_before_the_write_that_it_needs() {
        let failing = execution(&[(2, 'r', "ready", 0), (1, 'w', "ready", 1)]);
        let passing = execution(&[(1, 'w', "ready", 1), (2, 'r', "ready", 1)]);
        let found = classify(&failing, &[passing], Some(ThreadId(2)), &[]).expect("a class");
        assert_eq!((found.class, found.object.as_str()), (BugClass::OrderViolation, "ready"));
        assert_eq!(found.story.iter().map(|m| m.thread.0).collect::<Vec<_>>(), [2, 1]);
        // The other way round: a value that comes too early.
        let failing = execution(&[(1, 'w', "closed", 1), (2, 'r', "closed", 1)]);
        let passing = execution(&[(2, 'r', "closed", 0), (1, 'w', "closed", 1)]);
        let found = classify(&failing, &[passing], Some(ThreadId(2)), &[]).expect("a class");
        assert_eq!(found.story.iter().map(|m| m.thread.0).collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn two_variables_that_should_be_used_in_one_step() {
        // A check of one variable, and then the use of another that belongs to it.
        let failing =
            execution(&[(1, 'r', "open", 1), (2, 'w', "open", 0), (2, 'w', "data", 0), (1, 'r', "data", 0)]);
        let passing =
            execution(&[(1, 'r', "open", 1), (1, 'r', "data", 7), (2, 'w', "open", 0), (2, 'w', "data", 0)]);
        let found = classify(&failing, &[passing], Some(ThreadId(1)), &[(ThreadId(1), 2)]).expect("a class");
        assert_eq!((found.class, found.object.as_str()), (BugClass::AtomicityViolation, "open, data"));
        assert_eq!(found.story.iter().map(|m| m.step).collect::<Vec<_>>(), [1, 2, 3, 4]);
        assert_eq!(found.orderings, [Ordering { first: 2, second: 3 }]);
    }

    #[test]
    fn a_thread_that_the_failure_stops_between_two_variables() {
        let failing = execution(&[(1, 'w', "ready", 1), (2, 'r', "ready", 1), (2, 'r', "data", 0)]);
        let passing = execution(&[
            (1, 'w', "ready", 1),
            (1, 'w', "data", 7),
            (2, 'r', "ready", 1),
            (2, 'r', "data", 7),
        ]);
        let preempted = [(ThreadId(1), 2)];
        let found = classify(&failing, std::slice::from_ref(&passing), Some(ThreadId(2)), &preempted);
        let found = found.expect("a class");
        assert_eq!((found.class, found.object.as_str()), (BugClass::AtomicityViolation, "ready, data"));
        assert_eq!((found.story.len(), found.pending), (4, vec![3]));
        // Nothing shows that it was to write more.
        let found = classify(&failing, std::slice::from_ref(&failing), Some(ThreadId(2)), &preempted);
        assert!(found.is_none_or(|found| found.class != BugClass::AtomicityViolation));
    }

    #[test]
    fn all_unserialisable_triples_and_no_other() {
        let is = |what: [char; 3]| {
            let events = [(1, what[0], "x", 0), (2, what[1], "x", 0), (1, what[2], "x", 0)];
            is_unserialisable(&execution(&events), Triple { first: 0, between: 1, second: 2 })
        };
        let found: Vec<String> = (0..8)
            .map(|bits| [4, 2, 1].map(|bit| if bits & bit == 0 { 'r' } else { 'w' }))
            .filter(|what| is(*what))
            .map(|what| what.iter().collect())
            .collect();
        assert_eq!(found, ["rwr", "rww", "wrw", "wwr"]);
    }
}
