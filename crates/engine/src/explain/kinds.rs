//! The class of a bug by the kind of its finding: deadlocks, errors in the use of the heap, data races and executions that
//! do not end.

use crate::explain::classify::Classified;
use crate::explain::close_up::circle;
use crate::explain::compare::{Flow, Observed};
use heisen_trace::explanation::{BugClass, Explanation, Moment, Remedy};
use heisen_trace::finding::ThreadEnd;
use heisen_trace::race::Access;
use heisen_trace::{Finding, FindingKind, Op, Stack, ThreadId};

/// The class, if the kind of the finding says it.
pub(crate) fn by_kind(finding: &Finding, failing: &Flow) -> Option<Classified> {
    deadlock(finding, failing).or_else(|| memory(finding, failing))
}

/// What can be said about a finding without another execution: a data race or an endless execution.
pub fn at_once(finding: &Finding) -> Option<Explanation> {
    let classified = race(finding).or_else(|| endless(finding))?;
    let Classified { class, object, story, remedies, .. } = classified;
    Some(Explanation { class, object, story, remedies, ..Explanation::default() })
}

fn place_of(stack: &Stack) -> String {
    stack.place().map_or(String::new(), |frame| frame.place())
}

/// A deadlock: its cycle of locks, or the wake-up that came before the wait.
fn deadlock(finding: &Finding, failing: &Flow) -> Option<Classified> {
    if finding.kind != FindingKind::Deadlock {
        return None;
    }
    let moment = |op: Op, thread: &ThreadEnd, object: &str, place: String| Moment {
        step: 0,
        thread: thread.thread,
        op,
        object: object.to_owned(),
        value: None,
        text: String::new(),
        size: 0,
        place,
    };
    let waits = |thread: &ThreadEnd| moment(thread.op, thread, &thread.object, place_of(&thread.stack));
    if let Some(thread) = finding.threads.iter().find(|thread| thread.blocked && thread.missed_wakeup) {
        let signal = failing.observed.iter().rev().map(|event| &event.moment);
        let signal =
            signal.filter(|m| wakes(m.op) && m.object == thread.object).find(|m| m.thread != thread.thread);
        return Some(Classified {
            object: thread.object.clone(),
            story: signal.cloned().into_iter().chain([waits(thread)]).collect(),
            ..Classified::new(BugClass::LostWakeUp)
        });
    }
    if let Some(stolen) = stolen_signal(finding, failing) {
        let wait = |thread: ThreadId| finding.threads.iter().find(|end| end.thread == thread).map(waits);
        let StolenSignal { signal, again, woken, thread } = stolen;
        let remedy = Remedy::Broadcast {
            condition: signal.object.clone(),
            woken,
            thread,
            place: signal.place.clone(),
        };
        return Some(Classified {
            object: signal.object.clone(),
            story: [signal, again].into_iter().chain(wait(thread)).collect(),
            remedies: vec![remedy],
            ..Classified::new(BugClass::LostWakeUp)
        });
    }
    let mut cycle = circle(&finding.threads);
    if cycle.is_empty() {
        cycle = finding.threads.iter().filter(|end| end.blocked && end.holder.is_some()).collect();
    }
    let mut locks: Vec<String> = cycle.iter().map(|thread| thread.object.clone()).collect();
    locks.dedup();
    let (mut story, mut waiting) = (Vec::new(), Vec::new());
    for thread in &cycle {
        let held = thread.holds.iter().map(|held| moment(Op::Lock, thread, &held.object, held.place.clone()));
        story.extend(held);
        waiting.push(story.len());
        story.push(waits(thread));
    }
    let remedies =
        if locks.len() > 1 { vec![Remedy::LockOrder { locks: locks.clone() }] } else { Vec::new() };
    Some(Classified {
        object: locks.join(", "),
        story,
        waiting,
        remedies,
        ..Classified::new(BugClass::Deadlock)
    })
}

/// A signal that woke a thread that could not go on, although another thread waited, too.
struct StolenSignal {
    signal: Moment,
    /// The wait to which the woken thread went back.
    again: Moment,
    woken: ThreadId,
    /// The thread that waits to the end.
    thread: ThreadId,
}

/// The last signal of a condition variable on which a thread waits in the end, if that thread waited already, and the
/// signal woke another one that only waited again.
fn stolen_signal(finding: &Finding, failing: &Flow) -> Option<StolenSignal> {
    let events: Vec<&Moment> = failing.observed.iter().map(|event| &event.moment).collect();
    finding.threads.iter().filter(|end| end.blocked && end.op == Op::CondWait).find_map(|end| {
        let on_it = |moment: &Moment| moment.object == end.object;
        let at = events.iter().rposition(|m| m.op == Op::CondSignal && on_it(m) && m.thread != end.thread)?;
        // A wait releases the mutex after it has begun.
        let waits = |events: &[&Moment], thread: ThreadId| {
            let own = events.iter().rev().filter(|m| m.thread == thread);
            let last = own.copied().find(|m| m.op != Op::Unlock)?;
            (last.op == Op::CondWait && on_it(last)).then_some(last.step)
        };
        waits(&events, end.thread).filter(|step| waits(&events[..at], end.thread) == Some(*step))?;
        // The thread that the signal woke: the only one that left its wait after it.
        let left = |m: &&&Moment| waits(&events[..at], m.thread).is_some();
        let mut woken: Vec<ThreadId> = events[at + 1..].iter().filter(left).map(|m| m.thread).collect();
        woken.sort_unstable();
        woken.dedup();
        let [woken] = woken[..] else { return None };
        let own: Vec<&&Moment> = events[at + 1..].iter().filter(|m| m.thread == woken).collect();
        let again = own.iter().position(|m| m.op == Op::CondWait)?;
        let quiet = own[..again].iter().all(|m| !m.writes() && !wakes(m.op));
        (quiet && on_it(own[again])).then(|| StolenSignal {
            signal: events[at].clone(),
            again: (*own[again]).clone(),
            woken,
            thread: end.thread,
        })
    })
}

/// Whether an operation wakes threads that wait.
fn wakes(op: Op) -> bool {
    matches!(op, Op::CondSignal | Op::CondBroadcast | Op::FutexWake | Op::Wake)
}

/// An error in the use of the heap: the free, and the use that was the last operation.
fn memory(finding: &Finding, failing: &Flow) -> Option<Classified> {
    if !matches!(finding.kind, FindingKind::UseAfterFree | FindingKind::DoubleFree) {
        return None;
    }
    let shown = || {
        let block = finding.block.as_ref()?;
        let (last, before) = failing.observed.split_last()?;
        let start = last.address.wrapping_sub(block.offset as u64);
        let is_free = |event: &&Observed| event.moment.op == Op::Free && event.address == start;
        let free = before.iter().rev().find(is_free)?;
        (Some(last.moment.thread) == finding.thread).then(|| vec![free.moment.clone(), last.moment.clone()])
    };
    Some(Classified { story: shown().unwrap_or_default(), ..Classified::new(BugClass::UseAfterFree) })
}

/// A data race: both accesses, and the lock that only one of them holds.
fn race(finding: &Finding) -> Option<Classified> {
    let race = finding.race.as_ref()?;
    let locks = |access: &Access| access.holds.iter().map(|held| held.object.clone()).collect::<Vec<_>>();
    let (first, second) = (locks(&race.first), locks(&race.second));
    let missing = |lock: &String, access: &Access| Remedy::LockMissing {
        lock: lock.clone(),
        thread: access.thread,
        place: place_of(&access.stack),
    };
    let only_first =
        first.iter().filter(|lock| !second.contains(lock)).map(|lock| missing(lock, &race.second));
    let only_second =
        second.iter().filter(|lock| !first.contains(lock)).map(|lock| missing(lock, &race.first));
    Some(Classified {
        object: race.object.clone(),
        remedies: only_first.chain(only_second).collect(),
        ..Classified::new(BugClass::DataRace)
    })
}

/// An execution that does not end: the steps that it repeats.
fn endless(finding: &Finding) -> Option<Classified> {
    let cycle = finding.cycle.as_ref().filter(|_| finding.kind == FindingKind::Livelock)?;
    let mut objects: Vec<String> = Vec::new();
    for step in cycle.steps.iter().filter(|step| !step.object.is_empty()) {
        if !objects.contains(&step.object) {
            objects.push(step.object.clone());
        }
    }
    Some(Classified { object: objects.join(", "), ..Classified::new(BugClass::Livelock) })
}
