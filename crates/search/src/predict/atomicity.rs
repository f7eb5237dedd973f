//! Violations of atomicity: two steps of a thread that belong together, perhaps, and one of another thread between them.
//!
//! Lu, Tucek, Qin, Zhou: AVIO, ASPLOS 2006. Of accesses of memory, those triples count that are not as if the other thread
//! had come before or after: read, write, read; write, write, read; write, read, write; read, write, write. Of a lock, two
//! sections of one thread, one after the other, count with any of another thread in between, as what is accessed under a
//! lock is not seen. Many of them mean no harm, and only what goes wrong is told. Only a thread that reads, and as its next
//! deed writes what another has written meanwhile, is worth a hint.

use super::Patience;
use super::history::{Act, History};
use heisen_trace::{Deed, Family, Hold, Op, Target};
use std::collections::{BTreeMap, HashMap};

/// Triples of each two threads at one object.
const OF_EACH: usize = 8;

/// Two steps of a thread, and the one of another that may come between.
#[derive(Debug)]
pub struct Triple<'a> {
    /// The earlier one,
    pub first: &'a Act,
    /// the other thread's,
    pub between: &'a Act,
    /// and the later one.
    pub second: &'a Act,
}

impl Triple<'_> {
    /// Whether it could happen, and makes a difference.
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

    /// Whether an update may be lost.
    fn loses(&self) -> bool {
        let at_once = self.first.comes_just_before(self.second);
        at_once && self.first.op().is_none() && !self.first.write && self.between.write && self.second.write
    }

    /// How to get there. A thread that waits to do its part holds the locks that this is done under, and so may be in the way
    /// of the other: the one that is interrupted waits before it takes them, unless it had them all the time, and the other
    /// does so in the second of the targets, if there are two.
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

/// The targets of this family: of each two threads at an object the first triples first.
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

/// A deed, and which of all it is.
type Numbered<'a> = (usize, &'a Act);

/// All triples that count and were not seen, at most so many of each two threads at an object.
pub fn triples(history: &History, of_each: usize) -> Vec<Triple<'_>> {
    let mut objects: BTreeMap<u64, BTreeMap<u16, Vec<Numbered<'_>>>> = BTreeMap::new();
    for (index, act) in history.acts.iter().enumerate() {
        if matches!(act.op(), None | Some(Op::Lock)) {
            objects.entry(act.deed.object).or_default().entry(act.thread()).or_default().push((index, act));
        }
    }
    let mut all = Vec::new();
    let mut patience = Patience::default();
    for threads in objects.values() {
        for (thread, own) in threads {
            for (_, others) in threads.iter().filter(|&(other, _)| other != thread) {
                of_two(own, others, of_each, &mut patience, &mut all);
            }
        }
    }
    all
}

/// The triples of two threads at an object, by how early both their parts are.
fn of_two<'a>(
    own: &[Numbered<'a>],
    others: &[Numbered<'a>],
    most: usize,
    patience: &mut Patience,
    all: &mut Vec<Triple<'a>>,
) {
    let mut left = most;
    // Beyond this what is left of the early ones is enough.
    let reach = own.len().max(others.len()).min(4 * most);
    for rank in 0..reach {
        let own_or = |i: usize, j: usize| (own.get(i..i + 2), others.get(j));
        let pairs = (0..=rank).map(|j| (rank, j)).chain((0..rank).map(|i| (i, rank)));
        for (i, j) in pairs {
            let (Some(&[(first_at, first), (second_at, second)]), Some(&(at, between))) = own_or(i, j) else {
                continue;
            };
            if !patience.look() {
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
