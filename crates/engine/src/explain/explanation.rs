//! Explains a finding: takes close-ups of the failing execution and of its twins with every access of memory, compares
//! and classifies them.

use crate::error::Result;
use crate::explain::classify::{Classified, classify};
use crate::explain::close_up::{Recorder, WatchedAccess};
use crate::explain::compare::{Flow, Observed, comparison};
use crate::explain::difference::{MAX_EVENTS, flow};
use crate::explain::twin::twins;
use crate::inspect::Symbols;
use crate::process::slots::Job;
use heisen_trace::explanation::{BugClass, Explanation, Moment, Remedy};
use heisen_trace::finding::{SwitchKind, ThreadEnd};
use heisen_trace::{Finding, FindingKind, Op, Plan, Stack, ThreadId};

/// How many further close-ups are taken for places.
const MAX_FURTHER: usize = 2;

/// Why the execution of this plan fails, if that can be said.
pub fn explain(recorder: &Recorder<'_>, plan: &Plan, finding: &Finding) -> Result<Option<Explanation>> {
    let recorder = Recorder { trace: true, accesses: true, ..*recorder };
    let mut symbols = recorder.symbols();
    let failing = recorder.record_with(&mut symbols, Job::Plan(plan), None, None)?;
    if failing.signature() != finding.signature || failing.trace.len() > MAX_EVENTS {
        return Ok(None);
    }
    let target = (recorder.runtime, recorder.program, recorder.config);
    let mut passing = Vec::new();
    for twin in twins(target, recorder.expect_exit, plan)? {
        let closeup = recorder.record_with(&mut symbols, Job::Plan(&twin), None, None)?;
        if closeup.verdict.is_none() && closeup.trace.len() <= MAX_EVENTS {
            passing.push(flow(&closeup));
        }
    }
    let failing = flow(&failing);
    let differences =
        |other: &Flow| (0..failing.keys.len()).filter(|&i| failing.flow_differs(i, other)).count();
    passing.sort_by_key(differences);
    let by_kind = deadlock(finding, &failing).or_else(|| memory(finding));
    let preempted = finding.switches.iter().filter(|switch| switch.kind == SwitchKind::Preempt);
    let preempted: Vec<(ThreadId, u32)> = preempted.map(|switch| (switch.from, switch.step)).collect();
    let by_difference = || classify(&failing, &passing, finding.thread, &preempted);
    let Some(mut classified) = by_kind.or_else(by_difference).or_else(|| unclassified(&passing)) else {
        return Ok(None);
    };
    places_of_callers(&recorder, &mut symbols, plan, &failing, &mut classified.story)?;
    let Classified { class, object, story, orderings, remedies } = classified;
    let mut explanation = Explanation {
        class,
        object,
        story,
        orderings,
        remedies,
        reduction: Default::default(),
        failing: Vec::new(),
        passing: Vec::new(),
        common: 0,
    };
    if let Some(twin) = passing.first() {
        let compared = comparison(&failing, twin);
        [explanation.reduction, _] = compared.reductions;
        [explanation.failing, explanation.passing] = compared.executions;
        explanation.common = compared.common;
    }
    Ok(Some(explanation))
}

/// Accesses in a library of the language, such as those of atomics in Rust, get the place of their caller in the
/// program. A close-up of a long execution may lack some of these places, so each takes a further close-up, of which
/// there are at most [`MAX_FURTHER`].
fn places_of_callers(
    recorder: &Recorder<'_>,
    symbols: &mut Symbols,
    plan: &Plan,
    failing: &Flow,
    story: &mut [Moment],
) -> Result<()> {
    let recorder = Recorder { trace: false, accesses: false, ..*recorder };
    let mut left = MAX_FURTHER;
    for moment in story {
        let same = |event: &&Observed| event.moment == *moment;
        let Some(at) = failing.observed.iter().position(|event| same(&event)) else { continue };
        let event = &failing.observed[at];
        if event.own || !moment.is_access() || left == 0 {
            continue;
        }
        left -= 1;
        let name = (event.moment.thread, event.address, event.pc);
        let earlier = failing.observed[..=at].iter();
        let nth =
            earlier.filter(|e| e.moment.is_access() && (e.moment.thread, e.address, e.pc) == name).count();
        let (thread, address, pc) = name;
        let access = WatchedAccess { address, pc, thread, nth, stack: None };
        let closeup = recorder.record_with(symbols, Job::Plan(plan), None, Some(access))?;
        if let Some(frame) =
            closeup.access.as_ref().and_then(|stack| stack.place()).filter(|frame| frame.is_program())
        {
            moment.place = frame.place();
        }
    }
    Ok(())
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
            class: BugClass::LostWakeUp,
            object: thread.object.clone(),
            story: signal.cloned().into_iter().chain([waits(thread)]).collect(),
            orderings: Vec::new(),
            remedies: Vec::new(),
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
    Some(Classified {
        class: BugClass::Deadlock,
        object: locks.join(", "),
        story,
        orderings: Vec::new(),
        remedies,
    })
}

/// An error in the use of the heap. The finding itself names the allocation, the free and the use.
fn memory(finding: &Finding) -> Option<Classified> {
    matches!(finding.kind, FindingKind::UseAfterFree | FindingKind::DoubleFree).then(|| Classified {
        class: BugClass::UseAfterFree,
        object: String::new(),
        story: Vec::new(),
        orderings: Vec::new(),
        remedies: Vec::new(),
    })
}

/// The executions differ in no pattern that has a name, but they can be shown.
fn unclassified(passing: &[Flow]) -> Option<Classified> {
    (!passing.is_empty()).then(|| Classified {
        class: BugClass::Unclassified,
        object: String::new(),
        story: Vec::new(),
        orderings: Vec::new(),
        remedies: Vec::new(),
    })
}
