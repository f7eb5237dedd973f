//! Which thread took each step of an execution.
//!
//! Events name their step and thread. A step without an event belongs to the thread of the next event, with one
//! exception: where a signal finds several waiters, the choice among them takes a step of its own, which depends on other
//! threads. Plans count it where they signal; here it belongs to no thread.

use heisen_trace::Op;
use heisen_trace::symbolic::{EventKind, SymbolicTrace};
use std::collections::HashMap;

/// Whether an event is one that its thread has done. The end of another thread's wait is not: it depends on that thread.
pub const fn is_of_thread(kind: &EventKind) -> bool {
    !matches!(kind, EventKind::Sync { op: Op::Wake, .. } | EventKind::Pending { .. })
}

/// For each event, how many steps its thread took since its event before, this step included. 0 if both belong to one
/// step.
pub fn steps(trace: &SymbolicTrace) -> Vec<u32> {
    let mut waiting: HashMap<u64, u32> = HashMap::new();
    // The last step that an event of any thread accounts for, and that of the last event of each thread.
    let mut counted = 0;
    let mut last: HashMap<u16, u32> = HashMap::new();
    let mut all = Vec::with_capacity(trace.events.len());
    for event in &trace.events {
        if !is_of_thread(&event.kind) {
            if !matches!(event.kind, EventKind::Pending { .. }) {
                counted = counted.max(event.step);
            }
            all.push(0);
            continue;
        }
        let steps = match last.insert(event.thread, event.step) {
            Some(step) if step == event.step => 0,
            _ => event.step.saturating_sub(counted),
        };
        all.push(steps);
        counted = counted.max(event.step);
        let EventKind::Sync { op, object, ok: true } = event.kind else { continue };
        let waiters = waiting.entry(object).or_default();
        match op {
            Op::CondWait | Op::CondTimedWait => *waiters += 1,
            Op::CondSignal => {
                counted += u32::from(*waiters > 1);
                *waiters = waiters.saturating_sub(1);
            }
            Op::CondBroadcast => *waiters = 0,
            _ => {}
        }
    }
    all
}
