//! Predicts lost wake-ups: a signal that could come before the wait it ended.
//!
//! A condition variable has no memory. If only the schedule makes the wait come first, a target makes the
//! signal come first. There are two targets, because programs differ:
//!
//! - The signal comes before the waiting thread acquires the mutex. This does not harm a program that checks
//!   its condition under the mutex.
//! - The signal comes between that check and the wait. This is impossible if the program signals under the
//!   mutex.
//!
//! If the execution hangs, that is a finding. Otherwise nothing is reported.

use super::WorkBudget;
use super::history::{Act, History};
use heisen_trace::{Deed, Family, Hold, Op, Target};
use std::collections::{HashMap, HashSet};

/// The targets of this family.
pub fn targets(history: &History, most: usize) -> Vec<Target> {
    let acts = &history.acts;
    let mut all = Vec::new();
    let mut budget = WorkBudget::default();
    let mut signals: HashMap<u64, Vec<usize>> = HashMap::new();
    let is_signal = |act: &Act| matches!(act.op(), Some(Op::CondSignal | Op::CondBroadcast));
    for (at, signal) in acts.iter().enumerate().filter(|(_, act)| is_signal(act)) {
        signals.entry(signal.deed.object).or_default().push(at);
    }
    for (index, wait) in acts.iter().enumerate() {
        if wait.op() != Some(Op::CondWait) {
            continue;
        }
        // Only the first later signal of each thread: a later one would have to move even further.
        let mut threads = HashSet::new();
        let of_object = signals.get(&wait.deed.object).map_or(&[][..], Vec::as_slice);
        for &at in &of_object[of_object.partition_point(|&at| at <= index)..] {
            if !budget.spend() {
                return all;
            }
            let signal = &acts[at];
            if !signal.is_unordered_with(wait) || !threads.insert(signal.thread()) {
                continue;
            }
            let lock = history.given_up.get(&index).map(|lock| &acts[lock.since]);
            let lock = lock.filter(|lock| lock.op() == Some(Op::Lock) && !signal.must_precede(lock));
            // The next operation of the signalling thread may keep the other thread from waiting.
            let after = acts[at + 1..].iter().find(|act| act.thread() == signal.thread());
            let before = lock.map(|lock| target(&lock.deed, wait, signal, after));
            all.extend(before.into_iter().chain([target(&wait.deed, wait, signal, after)]));
            if all.len() >= most {
                all.truncate(most);
                return all;
            }
        }
    }
    all
}

fn target(at: &Deed, wait: &Act, signal: &Act, after: Option<&Act>) -> Target {
    let stays = after.map(|after| Hold { at: after.deed, until: wait.deed, past: true });
    Target {
        family: Family::LostWakeUp,
        holds: [Hold { at: *at, until: signal.deed, past: true }].into_iter().chain(stays).collect(),
        deeds: vec![signal.deed, wait.deed],
        likely: false,
    }
}
