//! Which thread took each step of an execution.
//!
//! Events name their step and thread. A step without an event belongs to the thread of the next event, with one
//! exception: where a signal finds several waiters, the choice among them takes a step of its own, which depends on other
//! threads. It ends with an [`Op::Wake`]. Plans count it where they signal; here it belongs to no thread.

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
    // The last step that an event of any thread accounts for, and that of the last event of each thread.
    let mut counted = 0;
    let mut last: HashMap<u16, u32> = HashMap::new();
    let mut all = Vec::with_capacity(trace.events.len());
    for event in &trace.events {
        let steps = match last.get(&event.thread) {
            _ if !is_of_thread(&event.kind) => 0,
            Some(&step) if step == event.step => 0,
            _ => event.step.saturating_sub(counted),
        };
        all.push(steps);
        if !matches!(event.kind, EventKind::Pending { .. }) {
            last.insert(event.thread, event.step);
            counted = counted.max(event.step);
        }
    }
    all
}
