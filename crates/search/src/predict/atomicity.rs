//! Predicts violations of atomicity: a step of one thread between two steps of another that may belong
//! together.
//!
//! Lu, Tucek, Qin, Zhou: AVIO, ASPLOS 2006. For memory accesses, four triples count: read, write, read;
//! write, write, read; write, read, write; read, write, write. They are not equivalent to an order in which
//! the other thread comes before or after. For a lock, two consecutive sections of one thread count with any
//! section of another thread in between, because the accesses under the lock are not recorded.
//!
//! Many triples are harmless, so only executions that fail are reported. Only one pattern is worth a hint: a
//! thread reads, and its next operation writes, while another thread has written in between.

use super::WorkBudget;
use super::history::{Act, History};
use heisen_trace::{Deed, Family, Hold, Op, Target};
use std::collections::{BTreeMap, HashMap};

/// How many triples of each two threads on one object are used.
const OF_EACH: usize = 8;

/// Two steps of one thread, and a step of another thread that may come between them.
#[derive(Debug)]
pub struct Triple<'a> {
    /// The earlier step of the thread.
    pub first: &'a Act,
    /// The step of the other thread.
    pub between: &'a Act,
    /// The later step of the thread.
    pub second: &'a Act,
}

impl Triple<'_> {
    /// Whether the triple is possible, and makes a difference.
    fn counts(&self) -> bool {
        let Triple { first, between, second } = self;
        let differs = matches!(
            (first.write, between.write, second.write),
            (_, true, false) | (true, false, true) | (false, true, true)
        );
        let locks = first.op().is_some();
        (differs || locks)
            && !between.must_precede(first)
            && !second.must_precede(between)
            && !first.is_kept_together(second, between)
    }

    /// Whether the triple may lose an update.
    fn loses(&self) -> bool {
        let at_once = self.first.comes_just_before(self.second);
        at_once && self.first.op().is_none() && !self.first.write && self.between.write && self.second.write
    }

    /// The targets for this triple. A thread that is held before its step holds its locks, and these may
    /// block the other thread. The interrupted thread is therefore held before it takes those locks, unless
    /// it held them at its first step already. If there is a second target, it holds the other thread before
    /// its own outermost lock.
    fn targets(&self, history: &History) -> impl Iterator<Item = Target> {
        let outermost = |act: &Act, since: Option<&Act>| {
            let mut held = act.held.iter();
            let lock = held.find(|lock| since.is_none_or(|since| !since.held.contains(lock)));
            lock.map_or(act.deed, |lock| history.acts[lock.since].deed)
        };
        let (between, second) = (self.between.deed, outermost(self.second, Some(self.first)));
        let outer = outermost(self.between, None);
        [Some(between), Some(outer).filter(|outer| *outer != between)]
            .into_iter()
            .flatten()
            .map(move |other| self.target(other, second))
    }

    fn target(&self, other: Deed, own: Deed) -> Target {
        let (first, between, second) = (self.first.deed, self.between.deed, self.second.deed);
        Target {
            family: Family::Atomicity,
            holds: vec![
                Hold { at: other, until: own, past: false },
                Hold { at: own, until: between, past: true },
            ],
            deeds: vec![first, between, second],
            likely: self.loses()
                && !self.first.did_precede(self.between)
                && !self.between.did_precede(self.first),
        }
    }
}

/// The targets of this family, ordered by rank among the triples of the same threads and object.
pub fn targets(history: &History, most: usize) -> Vec<Target> {
    let mut groups: HashMap<(u16, u16, u64), usize> = HashMap::new();
    let mut ranked = Vec::new();
    for triple in triples(history, OF_EACH) {
        let (first, between) = (triple.first, triple.between);
        let rank = groups.entry((first.thread(), between.thread(), first.deed.object)).or_default();
        for target in triple.targets(history) {
            *rank += 1;
            ranked.push((*rank, first.op().is_some(), target));
        }
    }
    ranked.sort_by_key(|&(rank, locks, _)| (rank, locks));
    ranked.into_iter().map(|(_, _, target)| target).take(most).collect()
}

/// An operation, with its index in the history.
type Numbered<'a> = (usize, &'a Act);

/// All triples that count and were not seen, at most `of_each` of each two threads on an object.
pub fn triples(history: &History, of_each: usize) -> Vec<Triple<'_>> {
    let mut objects: BTreeMap<u64, BTreeMap<u16, Vec<Numbered<'_>>>> = BTreeMap::new();
    for (index, act) in history.acts.iter().enumerate() {
        if matches!(act.op(), None | Some(Op::Lock)) {
            objects.entry(act.deed.object).or_default().entry(act.thread()).or_default().push((index, act));
        }
    }
    let mut all = Vec::new();
    let mut budget = WorkBudget::default();
    for threads in objects.values() {
        for (thread, own) in threads {
            for (_, others) in threads.iter().filter(|&(other, _)| other != thread) {
                of_two(own, others, of_each, &mut budget, &mut all);
            }
        }
    }
    all
}

/// The triples of two threads on an object, the earliest operations of both first.
fn of_two<'a>(
    own: &[Numbered<'a>],
    others: &[Numbered<'a>],
    most: usize,
    budget: &mut WorkBudget,
    all: &mut Vec<Triple<'a>>,
) {
    let mut left = most;
    // A limit on the rank: later triples resemble the earlier ones.
    let reach = own.len().max(others.len()).min(4 * most);
    for rank in 0..reach {
        let own_or = |i: usize, j: usize| (own.get(i..i + 2), others.get(j));
        let pairs = (0..=rank).map(|j| (rank, j)).chain((0..rank).map(|i| (i, rank)));
        for (i, j) in pairs {
            let (Some(&[(first_at, first), (second_at, second)]), Some(&(at, between))) = own_or(i, j) else {
                continue;
            };
            if !budget.spend() {
                return;
            }
            let seen = (first_at..second_at).contains(&at);
            let triple = Triple { first, between, second };
            if !seen && triple.counts() {
                all.push(triple);
                left -= 1;
                if left == 0 {
                    return;
                }
            }
        }
    }
}
