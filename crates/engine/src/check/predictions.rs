//! Describes predictions in words: the one that led to a finding, and as hints those that no execution has
//! confirmed.
//!
//! A prediction names threads, objects and the numbers of their operations, called deeds. To find their
//! places in the program, the execution from which the prediction was made runs once more, with all events
//! logged.

use super::case::Case;
use super::outcome::{Attempt, Tally};
use crate::error::Result;
use crate::explain::close_up::{Closeup, TraceLine};
use crate::process::slots::Job;
use heisen_trace::{
    Deed, Family, FindingKind, Op, Plan, Policy, Predicted, Prediction, Target, ThreadId, touch,
};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The most hints of a check.
const MAX_HINTS: usize = 20;
/// The most predictions that are considered for hints.
const MAX_ATTEMPTS: usize = 4 * MAX_HINTS;

/// Records that an execution was steered to a prediction, and whether it failed.
pub(super) fn note_attempt(tally: &mut Tally, plan: &Plan, failed: bool) {
    let Policy::Directed { to, .. } = &plan.policy else { return };
    if !to.target.likely {
        return;
    }
    let attempts = &mut tally.tried;
    if let Some(known) = attempts.iter_mut().find(|attempt| attempt.predicted == *to) {
        known.failed |= failed;
    } else if attempts.len() < MAX_ATTEMPTS {
        attempts.push(Attempt { predicted: to.clone(), failed });
    }
}

/// The prediction that a plan is steered to, in words; `None` if it can no longer be described.
pub(super) fn prediction(case: &Case<'_>, tally: &Tally, plan: &Plan) -> Result<Option<Prediction>> {
    let Policy::Directed { to, .. } = &plan.policy else { return Ok(None) };
    Ok(describe(&trace(case, tally, &to.policy)?, to))
}

/// Likely predictions that no execution has confirmed, as many as there is time to describe.
pub(super) fn hints(case: &Case<'_>, tally: &Tally) -> Result<Vec<Prediction>> {
    let mut hints = Vec::new();
    match describe_hints(case, tally, &mut hints) {
        Err(error) if !error.is_cut() => Err(error),
        _ => Ok(hints),
    }
}

fn describe_hints(case: &Case<'_>, tally: &Tally, hints: &mut Vec<Prediction>) -> Result<()> {
    let mut seen: Option<(&Policy, Closeup)> = None;
    let mut known = BTreeSet::new();
    for Attempt { predicted, .. } in tally.tried.iter().filter(|attempt| !attempt.failed) {
        if seen.as_ref().is_none_or(|(policy, _)| **policy != predicted.policy) {
            seen = Some((&predicted.policy, trace(case, tally, &predicted.policy)?));
        }
        let Some((_, closeup)) = &seen else { continue };
        let places = places(closeup, &predicted.target);
        if known.contains(&places) || came_true(tally, predicted.target.family, &places) {
            continue;
        }
        if let Some(hint) = describe(closeup, predicted)
            && is_worth_a_hint(case, tally, closeup, predicted)?
        {
            known.insert(places);
            hints.push(hint);
        }
        if hints.len() == MAX_HINTS {
            break;
        }
    }
    Ok(())
}

/// Runs an execution of the search again, with every event logged.
fn trace(case: &Case<'_>, tally: &Tally, policy: &Policy) -> Result<Closeup> {
    let config = case.close_up_config(&tally.points);
    let mut recorder = case.recorder(&config);
    recorder.trace = true;
    recorder.record(Job::Plan(&Plan::new(policy.clone())))
}

/// Whether a prediction is worth a hint. For a thread that writes a value it has read, two things must hold:
/// the other thread can come between, and the thread does not check that the value is still the same, as some
/// atomic operations do.
fn is_worth_a_hint(
    case: &Case<'_>,
    tally: &Tally,
    closeup: &Closeup,
    predicted: &Arc<Predicted>,
) -> Result<bool> {
    let target = &predicted.target;
    let Some(last) = target.deeds.last().filter(|_| target.family != Family::LockOrder) else {
        return Ok(true);
    };
    let writes = |line: &TraceLine| matches!(line.event.op, Op::MemWrite | Op::AtomicStore);
    if !find(closeup, last).is_some_and(writes) || !is_of_one_object(closeup, target) {
        return Ok(false);
    }
    let policy = Policy::Directed { seed: 0, length: 0, to: predicted.clone() };
    let steered = trace(case, tally, &policy)?;
    let steps: Option<Vec<u32>> =
        target.deeds.iter().map(|deed| Some(find(&steered, deed)?.event.step)).collect();
    Ok(steps.is_some_and(|steps| steps.is_sorted()) && is_of_one_object(&steered, target))
}

/// Whether a deadlock at these places was found in another way.
fn came_true(tally: &Tally, family: Family, places: &BTreeSet<String>) -> bool {
    let deadlocks = tally.findings.iter().filter(|finding| finding.kind == FindingKind::Deadlock);
    family == Family::LockOrder
        && deadlocks.into_iter().any(|finding| {
            let locks = |op: Op| matches!(op, Op::Lock | Op::ReadLock | Op::WriteLock);
            let waits = finding.threads.iter().filter(|t| t.blocked && locks(t.op));
            waits.filter_map(|t| t.stack.place()).all(|frame| places.contains(&frame.place()))
        })
}

/// The event of a deed.
fn find<'a>(closeup: &'a Closeup, deed: &Deed) -> Option<&'a TraceLine> {
    let is_it = |line: &&TraceLine| {
        let event = &line.event;
        let same = match deed.op {
            0 => is_access(event.op) && event.object & !(touch::WORD - 1) == deed.object,
            op => event.op as u8 == op && event.object == deed.object,
        };
        event.thread.0 == deed.thread && same
    };
    closeup.trace.iter().filter(is_it).nth((deed.nth as usize).checked_sub(1)?)
}

/// Whether all deeds are on one object. Touches distinguish memory only by word, so they may be on two
/// variables.
fn is_of_one_object(closeup: &Closeup, target: &Target) -> bool {
    let objects: BTreeSet<Option<u64>> =
        target.deeds.iter().map(|deed| Some(find(closeup, deed)?.event.object)).collect();
    objects.len() == 1 && !objects.contains(&None)
}

fn is_access(op: Op) -> bool {
    matches!(
        op,
        Op::MemRead | Op::MemWrite | Op::AtomicLoad | Op::AtomicStore | Op::AtomicRmw | Op::AtomicCas
    )
}

/// The places at which the threads would have failed.
fn places(closeup: &Closeup, target: &Target) -> BTreeSet<String> {
    let place = |deed| find(closeup, deed).map(|line| line.place.clone());
    target.deeds.iter().filter_map(place).collect()
}

fn describe(closeup: &Closeup, predicted: &Predicted) -> Option<Prediction> {
    let target = &predicted.target;
    let lines: Vec<(&Deed, &TraceLine)> =
        target.deeds.iter().map(|deed| Some((deed, find(closeup, deed)?))).collect::<Option<_>>()?;
    let who = |deed: &Deed| {
        let id = ThreadId(deed.thread);
        let name = closeup.lines.iter().find(|line| line.thread == id).map(|line| line.start.as_str());
        match name.filter(|name| !name.is_empty()) {
            Some(name) => format!("{id} ({name})"),
            None => id.to_string(),
        }
    };
    let does = |line: &TraceLine| format!("{}({}) at {}", line.event.op.name(), line.object, line.place);
    let steps = match target.family {
        Family::LockOrder => lines
            .chunks_exact(2)
            .map(|pair| {
                let ((deed, held), (_, wants)) = (pair[0], pair[1]);
                format!(
                    "{} waits for {} at {}, holding {} since {}",
                    who(deed),
                    wants.object,
                    wants.place,
                    held.object,
                    held.place
                )
            })
            .collect(),
        _ => lines.iter().map(|(deed, line)| format!("{}: {}", who(deed), does(line))).collect(),
    };
    Some(Prediction { family: target.family, execution: predicted.execution, steps })
}
