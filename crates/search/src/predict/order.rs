//! Predicts the opposite order of two conflicting accesses, or of two acquisitions of the same lock.
//!
//! Race-directed testing (Sen: Race directed random testing of concurrent programs, PLDI 2008) brings two
//! threads to a conflict and chooses the order at random. Here one order was already seen, so the target is
//! the other order: the first thread is held until the second has done its operation.

use super::WorkBudget;
use super::history::{Act, History};
use heisen_trace::{Family, Hold, Op, Target};
use std::collections::{BTreeMap, HashMap, HashSet};

/// How many pairs of each two threads on one object are used.
const OF_EACH: usize = 4;

/// The targets of this family.
pub fn targets(history: &History, most: usize) -> Vec<Target> {
    let pairs = pairs(history);
    let target = |(first, second): (&Act, &Act)| Target {
        family: Family::Order,
        holds: vec![Hold { at: first.deed, until: second.deed, past: true }],
        deeds: vec![second.deed, first.deed],
        likely: false,
    };
    pairs.into_iter().take(most).map(target).collect()
}

/// Pairs in the order in which they were seen, memory accesses first.
fn pairs(history: &History) -> Vec<(&Act, &Act)> {
    // By object: the last operation of each thread. Of locks, only a thread's first acquisition is used.
    let mut last: HashMap<u64, BTreeMap<u16, &Act>> = HashMap::new();
    let mut first: HashSet<(u16, u64)> = HashSet::new();
    let mut counts: HashMap<(u16, u16, u64), usize> = HashMap::new();
    let (mut accesses, mut locks) = (Vec::new(), Vec::new());
    let mut budget = WorkBudget::default();
    for act in &history.acts {
        let is_lock = match act.op() {
            None => false,
            Some(Op::Lock) if first.insert((act.thread(), act.deed.object)) => true,
            Some(_) => continue,
        };
        let known = last.entry(act.deed.object).or_default();
        for (&thread, &before) in known.iter().take_while(|_| budget.spend()) {
            let conflict = thread != act.thread() && (before.write || act.write);
            let count = counts.entry((thread, act.thread(), act.deed.object)).or_default();
            if conflict && before.is_unordered_with(act) && *count < OF_EACH {
                *count += 1;
                if is_lock { &mut locks } else { &mut accesses }.push((before, act));
            }
        }
        known.insert(act.thread(), act);
    }
    accesses.extend(locks);
    accesses
}
