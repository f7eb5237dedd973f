//! Explains why threads wait, from the log of an execution: which thread holds a lock, and whether a wake-up
//! came before the sleep.

use crate::process::slots::Event;
use heisen_trace::finding::ThreadEnd;
use heisen_trace::{Op, ThreadId};

/// The effect of an event on a lock: `Some(true)` takes it, `Some(false)` releases it.
pub(crate) fn takes(event: &Event) -> Option<bool> {
    match event.op {
        Op::Lock | Op::TryLock | Op::TimedLock | Op::Relock | Op::ReadLock | Op::WriteLock => Some(true),
        Op::Unlock | Op::RwUnlock => Some(false),
        _ => None,
    }
}

/// The threads that hold a lock; there are several if they are readers.
pub(super) fn holders(events: &[Event], lock: u64) -> Vec<ThreadId> {
    let mut holders: Vec<ThreadId> = Vec::new();
    for event in events.iter().filter(|e| e.object == lock && e.ok) {
        match takes(event) {
            Some(true) => holders.push(event.thread),
            Some(false) => {
                if let Some(at) = holders.iter().rposition(|&thread| thread == event.thread) {
                    holders.remove(at);
                }
            }
            None => {}
        }
    }
    holders
}

/// Whether some thread woke the waiters of `object` when there were none, before `thread` went to sleep there
/// for good.
///
/// In doubt it says no: a woken thread counts as a waiter until its next event.
pub(super) fn missed_wakeup(events: &[Event], thread: ThreadId, object: u64) -> bool {
    let mut asleep: Vec<ThreadId> = Vec::new();
    let (mut missed, mut missed_before_sleep) = (false, false);
    for event in events {
        match event.op {
            // A wait on a condition variable releases its mutex.
            Op::Unlock => continue,
            Op::CondSignal | Op::CondBroadcast | Op::FutexWake if event.object == object => {
                missed |= asleep.iter().all(|&t| t == event.thread);
            }
            _ => {}
        }
        asleep.retain(|&t| t != event.thread);
        if event.ok && event.object == object && is_sleep(event.op) {
            asleep.push(event.thread);
            if event.thread == thread {
                missed_before_sleep = missed;
            }
        }
    }
    missed_before_sleep
}

/// Whether a thread sleeps after this operation until another one wakes it.
pub(super) fn is_sleep(op: Op) -> bool {
    matches!(op, Op::CondWait | Op::CondTimedWait | Op::FutexWait)
}

/// Chooses, for each thread, which of the holders it waits for. If some choice makes a cycle, that one is
/// taken.
pub(super) fn settle(threads: &mut [ThreadEnd], holders: &[Vec<ThreadId>]) {
    for (thread, holders) in threads.iter_mut().zip(holders) {
        let itself = holders.iter().find(|&&holder| holder == thread.thread);
        thread.holder = itself.or(holders.first()).copied();
    }
    if threads.iter().any(|t| t.holder == Some(t.thread)) {
        return;
    }
    let place = |id: ThreadId| threads.iter().position(|t| t.thread == id);
    let edges: Vec<Vec<usize>> =
        holders.iter().map(|holders| holders.iter().filter_map(|&id| place(id)).collect()).collect();
    let Some(cycle) = (0..edges.len()).find_map(|start| cycle_through(&edges, start)) else { return };
    for (at, &from) in cycle.iter().enumerate() {
        threads[from].holder = Some(threads[cycle[(at + 1) % cycle.len()]].thread);
    }
}

/// Whether threads wait for each other in a cycle, by the result of [`settle`].
pub(super) fn has_cycle(threads: &[ThreadEnd]) -> bool {
    let next = |id: ThreadId| threads.iter().find(|t| t.thread == id)?.holder;
    threads.iter().any(|t| {
        let followed = std::iter::successors(next(t.thread), |&id| next(id)).take(threads.len());
        followed.into_iter().any(|id| id == t.thread)
    })
}

/// A shortest cycle that begins and ends at `start`.
fn cycle_through(edges: &[Vec<usize>], start: usize) -> Option<Vec<usize>> {
    let mut came_from = vec![None; edges.len()];
    let mut queue = std::collections::VecDeque::from([start]);
    while let Some(at) = queue.pop_front() {
        for &next in &edges[at] {
            if next == start {
                let mut path = vec![at];
                while path.last() != Some(&start) {
                    path.push(came_from[path[path.len() - 1]]?);
                }
                path.reverse();
                return Some(path);
            }
            if came_from[next].is_none() {
                came_from[next] = Some(at);
                queue.push_back(next);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: u64 = 0x100;

    fn events(done: &[(u16, Op)]) -> Vec<Event> {
        let event = |(step, &(thread, op)): (usize, &(u16, Op))| Event {
            step: step as u32,
            thread: ThreadId(thread),
            op,
            ok: true,
            object: LOCK,
            pc: 0,
            access: None,
            ended: 0,
        };
        done.iter().enumerate().map(event).collect()
    }

    #[test]
    fn readers_share_a_lock() {
        let log = events(&[(1, Op::ReadLock), (2, Op::ReadLock), (2, Op::RwUnlock), (3, Op::ReadLock)]);
        assert_eq!(holders(&log, LOCK), [ThreadId(1), ThreadId(3)]);
        assert_eq!(holders(&log, LOCK + 8), []);
    }

    #[test]
    fn a_cycle_is_closed_by_the_reader_that_is_in_it() {
        let edges = [vec![], vec![2, 3], vec![0], vec![1]];
        assert_eq!(cycle_through(&edges, 1), Some(vec![1, 3]));
        assert_eq!(cycle_through(&edges, 2), None);
    }

    #[test]
    fn a_wake_up_is_missed_only_if_it_came_before_the_sleep_and_found_nobody() {
        let missed = |done: &[(u16, Op)]| missed_wakeup(&events(done), ThreadId(1), LOCK);
        assert!(missed(&[(2, Op::CondSignal), (1, Op::CondWait), (1, Op::Unlock)]));
        assert!(!missed(&[(1, Op::CondWait), (1, Op::Unlock), (2, Op::CondSignal)]));
        assert!(!missed(&[(1, Op::FutexWait)]));
        assert!(!missed(&[(3, Op::FutexWait), (2, Op::FutexWake), (1, Op::FutexWait)]));
        assert!(missed(&[(3, Op::FutexWait), (3, Op::End), (2, Op::FutexWake), (1, Op::FutexWait)]));
    }
}
