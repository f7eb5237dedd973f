//! The class of a bug by the kind of its finding: deadlocks, errors in the use of the heap, data races and executions that
//! do not end.

use crate::explain::classify::Classified;
use crate::explain::compare::{Flow, Observed};
use heisen_trace::explanation::{BugClass, Explanation, Moment, Remedy};
use heisen_trace::finding::ThreadEnd;
use heisen_trace::race::Access;
use heisen_trace::{Finding, FindingKind, Op, Stack};

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
        let wakes = |op: Op| matches!(op, Op::CondSignal | Op::CondBroadcast | Op::FutexWake | Op::Wake);
        let signal = failing.observed.iter().rev().map(|event| &event.moment);
        let signal =
            signal.filter(|m| wakes(m.op) && m.object == thread.object).find(|m| m.thread != thread.thread);
        return Some(Classified {
            object: thread.object.clone(),
            story: signal.cloned().into_iter().chain([waits(thread)]).collect(),
            ..Classified::new(BugClass::LostWakeUp)
        });
    }
    let cycle: Vec<&ThreadEnd> =
        finding.threads.iter().filter(|thread| thread.blocked && thread.holder.is_some()).collect();
    let mut locks: Vec<String> = cycle.iter().map(|thread| thread.object.clone()).collect();
    locks.dedup();
    let story = cycle.iter().flat_map(|thread| {
        let held = thread.holds.iter().map(|held| moment(Op::Lock, thread, &held.object, held.place.clone()));
        held.chain([waits(thread)]).collect::<Vec<_>>()
    });
    let story: Vec<Moment> = story.collect();
    let remedies =
        if locks.len() > 1 { vec![Remedy::LockOrder { locks: locks.clone() }] } else { Vec::new() };
    Some(Classified { object: locks.join(", "), story, remedies, ..Classified::new(BugClass::Deadlock) })
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
