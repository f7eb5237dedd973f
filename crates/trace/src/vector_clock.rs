//! Computes the vector clocks of an execution: which events happen before an event in every execution with the same
//! synchronisation (Mattern: Virtual Time and Global States of Distributed Systems, 1988).
//!
//! Events are ordered by: the program order of each thread; the creation, the end and the join of threads; the release
//! of a lock and its next acquisition; a signal and the wait that it ends; semaphores, barriers and `pthread_once`; an
//! atomic write and the atomic reads that see it. Accesses that are not atomic order nothing.
//!
//! The log does not say which of several waiters a signal woke: the first one to continue takes the first signal. Atomic
//! operations order events whatever their memory order, since executions are sequentially consistent.

use crate::op::Op;
use crate::thread::ThreadId;
use std::collections::{HashMap, HashSet};

/// One event of an execution, as far as the order depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The thread.
    pub thread: ThreadId,
    /// The operation.
    pub op: Op,
    /// The address of its object; 0 if it has none.
    pub object: u64,
    /// Whether the operation succeeded.
    pub ok: bool,
    /// For the creation or the join of a thread: that thread.
    pub other: Option<ThreadId>,
}

/// A vector clock. At index `n`: how many events of thread `n` happen before the event, or are the event itself.
/// Threads beyond the end have none.
pub type Clock = Vec<u32>;

/// The clock of each event.
pub fn clocks(events: &[Event]) -> Vec<Clock> {
    let mut order = Order::default();
    events.iter().enumerate().map(|(index, event)| order.step(index, event)).collect()
}

/// Whether an event of thread `thread` with this clock happens before another event, or is that event.
pub fn is_before(clock: &Clock, thread: ThreadId, other: &Clock) -> bool {
    let of = |clock: &Clock| clock.get(usize::from(thread.0)).copied().unwrap_or(0);
    of(clock) <= of(other)
}

fn join(clock: &mut Clock, other: &Clock) {
    if clock.len() < other.len() {
        clock.resize(other.len(), 0);
    }
    for (mine, theirs) in clock.iter_mut().zip(other) {
        *mine = (*mine).max(*theirs);
    }
}

/// A thread that sleeps in a queue, or waits at a barrier.
#[derive(Clone, Debug)]
struct Waiting {
    op: Op,
    object: u64,
    since: usize,
    /// The clocks of the operations that woke all waiters since.
    woken: Clock,
}

/// What is known after some events.
#[derive(Debug, Default)]
struct Order {
    threads: HashMap<ThreadId, Clock>,
    /// By object: the clocks of those who released it. Those who acquire it join them.
    objects: HashMap<u64, Clock>,
    /// By read-write lock: the clocks of the readers who released it. Only a writer joins them.
    readers: HashMap<u64, Clock>,
    reading: HashSet<(ThreadId, u64)>,
    waiting: HashMap<ThreadId, Waiting>,
    /// By condition variable: the signals that no waiter has taken, with their indices.
    signals: HashMap<u64, Vec<(usize, Clock)>>,
}

impl Order {
    /// The clock of the next event.
    fn step(&mut self, index: usize, event: &Event) -> Clock {
        let &Event { thread, op, object, ok, other } = event;
        let mut clock = self.threads.remove(&thread).unwrap_or_default();
        // A wait for a condition variable is logged first, then the release of its mutex.
        if op != Op::Unlock
            && let Some(waiting) = self.waiting.remove(&thread)
        {
            self.wake(&mut clock, waiting, event);
        }
        // A compare-and-exchange that fails has still read.
        if acquires(op) && (ok || op == Op::AtomicCas) {
            self.acquire(&mut clock, thread, op, object);
        }
        if let (Op::Join, true, Some(ended)) = (op, ok, other.and_then(|other| self.threads.get(&other))) {
            join(&mut clock, ended);
        }
        let own = usize::from(thread.0);
        clock.resize(clock.len().max(own + 1), 0);
        clock[own] += 1;
        self.release(index, event, &clock);
        self.threads.insert(thread, clock.clone());
        clock
    }

    /// A thread continues after a wait.
    fn wake(&mut self, clock: &mut Clock, waiting: Waiting, event: &Event) {
        let Waiting { op, object, since, woken } = waiting;
        if op == Op::Barrier {
            join(clock, self.objects.entry(object).or_default());
            return;
        }
        if event.op == Op::Spurious || event.op == op && !event.ok {
            return;
        }
        join(clock, &woken);
        let signals = self.signals.entry(object).or_default();
        if woken.is_empty()
            && let Some(first) = signals.iter().position(|(index, _)| *index > since)
        {
            join(clock, &signals.remove(first).1);
        }
    }

    fn acquire(&mut self, clock: &mut Clock, thread: ThreadId, op: Op, object: u64) {
        join(clock, self.objects.entry(object).or_default());
        match op {
            Op::ReadLock => drop(self.reading.insert((thread, object))),
            Op::WriteLock => join(clock, self.readers.entry(object).or_default()),
            _ => {}
        }
    }

    /// What an event lets others know.
    fn release(&mut self, index: usize, event: &Event, clock: &Clock) {
        let &Event { thread, op, object, ok, other } = event;
        match op {
            Op::RwUnlock if self.reading.remove(&(thread, object)) => {
                join(self.readers.entry(object).or_default(), clock);
            }
            Op::Unlock | Op::RwUnlock | Op::StreamUnlock | Op::SemPost | Op::Once => {
                join(self.objects.entry(object).or_default(), clock);
            }
            // A later read sees this write only, and what happened before it.
            Op::AtomicStore | Op::AtomicRmw | Op::AtomicCas if ok => {
                self.objects.insert(object, clock.clone());
            }
            Op::Create => {
                if let (true, Some(created)) = (ok, other) {
                    join(self.threads.entry(created).or_default(), clock);
                }
            }
            Op::CondSignal if self.waiting.values().any(|waiting| waiting.object == object) => {
                self.signals.entry(object).or_default().push((index, clock.clone()));
            }
            Op::CondBroadcast | Op::FutexWake => {
                for waiting in self.waiting.values_mut().filter(|waiting| waiting.object == object) {
                    join(&mut waiting.woken, clock);
                }
            }
            Op::CondWait | Op::CondTimedWait | Op::FutexWait | Op::Barrier if ok => {
                if op == Op::Barrier {
                    join(self.objects.entry(object).or_default(), clock);
                }
                let waiting = Waiting { op, object, since: index, woken: Clock::new() };
                self.waiting.insert(thread, waiting);
            }
            _ => {}
        }
    }
}

/// Whether a thread that has done this operation comes after those who released the object.
fn acquires(op: Op) -> bool {
    matches!(
        op,
        Op::Lock
            | Op::TryLock
            | Op::TimedLock
            | Op::Relock
            | Op::ReadLock
            | Op::WriteLock
            | Op::StreamLock
            | Op::SemWait
            | Op::SemTryWait
            | Op::SemTimedWait
            | Op::Once
            | Op::AtomicLoad
            | Op::AtomicRmw
            | Op::AtomicCas
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const M: u64 = 0x10;
    const C: u64 = 0x20;

    fn event(thread: u16, op: Op, object: u64) -> Event {
        Event { thread: ThreadId(thread), op, object, ok: true, other: None }
    }

    fn about(thread: u16, op: Op, other: u16) -> Event {
        Event { other: Some(ThreadId(other)), ..event(thread, op, 0) }
    }

    fn failed(thread: u16, op: Op, object: u64) -> Event {
        Event { ok: false, ..event(thread, op, object) }
    }

    #[track_caller]
    fn assert_clocks(events: &[Event], expected: &[&[u32]]) {
        assert_eq!(clocks(events), expected);
    }

    #[test]
    fn threads_are_ordered_by_their_creation_and_join() {
        assert_clocks(
            &[
                about(0, Op::Create, 1),
                event(0, Op::MemWrite, M),
                event(1, Op::Start, 0),
                event(1, Op::MemWrite, M),
                about(0, Op::Join, 1),
            ],
            &[&[1], &[2], &[1, 1], &[1, 2], &[3, 2]],
        );
        // A join that timed out orders nothing.
        let timed_out = Event { ok: false, ..about(0, Op::Join, 1) };
        assert_clocks(&[event(1, Op::Start, 0), timed_out], &[&[0, 1], &[1]]);
    }

    #[test]
    fn a_lock_orders_its_release_before_the_next_acquisition() {
        assert_clocks(
            &[
                event(0, Op::Lock, M),
                event(0, Op::MemWrite, C),
                failed(1, Op::TryLock, M),
                event(0, Op::Unlock, M),
                event(0, Op::MemWrite, C),
                event(1, Op::Lock, M),
                event(2, Op::Lock, C),
            ],
            &[&[1], &[2], &[0, 1], &[3], &[4], &[3, 2], &[0, 0, 1]],
        );
    }

    #[test]
    fn readers_are_ordered_after_writers_only() {
        assert_clocks(
            &[
                event(0, Op::WriteLock, M),
                event(0, Op::RwUnlock, M),
                event(1, Op::ReadLock, M),
                event(1, Op::RwUnlock, M),
                event(2, Op::ReadLock, M),
                event(2, Op::RwUnlock, M),
                event(0, Op::WriteLock, M),
            ],
            &[&[1], &[2], &[2, 1], &[2, 2], &[2, 0, 1], &[2, 0, 2], &[3, 2, 2]],
        );
    }

    #[test]
    fn a_signal_is_before_the_end_of_the_wait() {
        let wait =
            |thread| [event(thread, Op::CondWait, C), event(thread, Op::Unlock, M + u64::from(thread))];
        let mut events = vec![event(0, Op::CondSignal, C)];
        events.extend(wait(1));
        events.extend([event(0, Op::CondSignal, C), event(1, Op::Relock, M + 1)]);
        // The first signal came too early and woke no thread.
        assert_clocks(&events, &[&[1], &[0, 1], &[0, 2], &[2], &[2, 3]]);
        assert_clocks(&events[1..4], &[&[0, 1], &[0, 2], &[1]]);

        // Two signals wake two threads, each one of them.
        let mut events = [wait(1), wait(2)].concat();
        events.extend([
            event(0, Op::CondSignal, C),
            event(0, Op::CondSignal, C),
            event(2, Op::Relock, M + 2),
            event(1, Op::Relock, M + 1),
        ]);
        assert_eq!(clocks(&events)[6..], [vec![1, 0, 3], vec![2, 3]]);

        // A broadcast wakes both.
        let mut events = [wait(1), wait(2)].concat();
        events.extend([
            event(0, Op::CondBroadcast, C),
            event(1, Op::Relock, M + 1),
            event(2, Op::Relock, M + 2),
        ]);
        assert_eq!(clocks(&events)[5..], [vec![1, 3], vec![1, 0, 3]]);

        // A wait that ends by itself is not ordered after the signal.
        let mut events = wait(1).to_vec();
        events.extend([event(0, Op::CondSignal, C), event(1, Op::Spurious, C)]);
        assert_eq!(clocks(&events)[3], [0, 3]);
    }

    #[test]
    fn an_atomic_write_is_before_the_reads_that_see_it() {
        assert_clocks(
            &[
                event(0, Op::AtomicStore, M),
                event(1, Op::AtomicLoad, M),
                event(2, Op::AtomicStore, M),
                event(1, Op::AtomicLoad, M),
                event(0, Op::AtomicRmw, M),
                event(2, Op::AtomicLoad, M),
            ],
            &[&[1], &[1, 1], &[0, 0, 1], &[1, 2, 1], &[2, 0, 1], &[2, 0, 2]],
        );
    }

    #[test]
    fn barriers_and_semaphores() {
        assert_clocks(
            &[
                event(0, Op::Barrier, M),
                event(1, Op::Barrier, M),
                event(1, Op::SemPost, C),
                event(0, Op::MemRead, C),
                event(2, Op::SemWait, C),
            ],
            &[&[1], &[0, 1], &[1, 2], &[2, 1], &[1, 2, 1]],
        );
    }

    #[test]
    fn clocks_tell_what_happens_before() {
        let clocks = clocks(&[event(0, Op::Unlock, M), event(1, Op::Lock, M), event(0, Op::MemWrite, C)]);
        assert!(is_before(&clocks[0], ThreadId(0), &clocks[1]));
        assert!(!is_before(&clocks[1], ThreadId(1), &clocks[0]));
        assert!(!is_before(&clocks[1], ThreadId(1), &clocks[2]));
        assert!(!is_before(&clocks[2], ThreadId(0), &clocks[1]));
    }
}
