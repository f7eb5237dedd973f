//! Which thread took each step of an execution.
//!
//! A thread may take steps without events: accesses of memory that it alone uses. They count for the next event of the
//! thread. One sort of step belongs to no thread: where a signal finds several waiters, the choice among them takes a step,
//! which depends on other threads. Plans count it where they signal.

use heisen_trace::Op;
use heisen_trace::symbolic::{EventKind, SymbolicTrace};
use std::collections::{BTreeSet, HashMap};

/// Whether an event is one that its thread has done. The end of another thread's wait is not: it depends on that thread.
pub const fn is_of_thread(kind: &EventKind) -> bool {
    !matches!(kind, EventKind::Sync { op: Op::Wake, .. } | EventKind::Pending { .. } | EventKind::Runs)
}

/// For each event, how many steps its thread took since its event before, this step included. 0 if both belong to one
/// step.
pub fn steps(trace: &SymbolicTrace) -> Vec<u32> {
    let mut counter = Counter { choices: choices(trace), at: 0, running: 0, taken: HashMap::new() };
    // How many steps of each thread the events so far account for.
    let mut counted: HashMap<u16, u32> = HashMap::new();
    let mut all = Vec::with_capacity(trace.events.len());
    for event in &trace.events {
        if event.kind == EventKind::Runs {
            counter.advance(event.step.saturating_sub(1));
            counter.running = event.thread;
        }
        if !is_of_thread(&event.kind) {
            all.push(0);
            continue;
        }
        counter.advance(event.step);
        let taken = counter.taken.get(&event.thread).copied().unwrap_or(0);
        let before = counted.insert(event.thread, taken).unwrap_or(0);
        all.push(taken - before);
    }
    all
}

/// Counts the steps of each thread.
struct Counter {
    choices: BTreeSet<u32>,
    /// The last step that was counted.
    at: u32,
    running: u16,
    taken: HashMap<u16, u32>,
}

impl Counter {
    /// Counts the steps up to this one.
    fn advance(&mut self, to: u32) {
        if to > self.at {
            let choices = self.choices.range(self.at + 1..=to).count() as u32;
            *self.taken.entry(self.running).or_default() += to - self.at - choices;
            self.at = to;
        }
    }
}

/// The steps at which one of several waiters was chosen.
fn choices(trace: &SymbolicTrace) -> BTreeSet<u32> {
    let mut waiting: HashMap<u64, u32> = HashMap::new();
    let mut all = BTreeSet::new();
    for event in &trace.events {
        let EventKind::Sync { op, object, ok: true } = event.kind else { continue };
        let waiters = waiting.entry(object).or_default();
        match op {
            Op::CondWait | Op::CondTimedWait => *waiters += 1,
            Op::CondSignal => {
                all.extend((*waiters > 1).then_some(event.step + 1));
                *waiters = waiters.saturating_sub(1);
            }
            Op::CondBroadcast => *waiters = 0,
            _ => {}
        }
    }
    all
}
