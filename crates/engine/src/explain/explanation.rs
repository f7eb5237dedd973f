//! Explains a finding: runs executions near the failing one, compares it with those that pass, and says what its class is,
//! which orderings were necessary, and when the failure could no longer be avoided.

use crate::error::Result;
use crate::explain::classify::{Classified, NamedOrder, by_orderings, classify};
use crate::explain::close_up::{Recorder, WatchedAccess};
use crate::explain::compare::{Flow, Observed, comparison};
use crate::explain::difference::{MAX_EVENTS, flow};
use crate::explain::judge::Verdict;
use crate::explain::kinds::by_kind;
use crate::explain::necessary::{Hints, Key, Name, Necessary, necessary};
use crate::explain::neighbourhood::{Effort, Neighbourhood, Runner, neighbourhood};
use crate::explain::no_return::point_of_no_return;
use crate::explain::recheck::missed_recheck;
use crate::process::slots::{Detail, Job};
use heisen_inspect::Symbols;
use heisen_trace::explanation::{BugClass, Evidence, Explanation, Moment, NoReturn};
use heisen_trace::finding::{Switch, SwitchKind};
use heisen_trace::{Finding, FindingKind, Plan, ThreadId};

/// An explanation and, for each necessary ordering, the plan of an execution that passes with only this one reversed.
pub type WithRuns = (Explanation, Vec<Plan>);

/// How many further close-ups are taken for places.
const MAX_FURTHER: usize = 3;

/// Why the execution of this plan fails, if that can be said.
pub fn explain(
    recorder: &Recorder<'_>,
    plan: &Plan,
    finding: &Finding,
    effort: Effort,
) -> Result<Option<Explanation>> {
    Ok(explain_with_runs(recorder, plan, finding, effort)?.map(|(explanation, _)| explanation))
}

/// Like [`explain`], with the runs that confirm it.
pub fn explain_with_runs(
    recorder: &Recorder<'_>,
    plan: &Plan,
    finding: &Finding,
    effort: Effort,
) -> Result<Option<WithRuns>> {
    // Without backtraces many more executions can be run in the same time.
    if let Some(config) = recorder.config.without_backtraces()
        && let Some(explanation) =
            explained(&Recorder { config: &config, accesses: true, ..*recorder }, plan, finding, effort)?
    {
        return Ok(explanation);
    }
    Ok(explained(&Recorder { accesses: true, ..*recorder }, plan, finding, effort)?.flatten())
}

/// `None` if the plan's execution is not that of the finding. Accesses of memory are left out if they are too many, or not
/// to be recorded.
fn explained(
    recorder: &Recorder<'_>,
    plan: &Plan,
    finding: &Finding,
    effort: Effort,
) -> Result<Option<Option<WithRuns>>> {
    let target = (recorder.runtime, recorder.program, recorder.config);
    let mut runner = Runner::start(target, recorder.expect_exit)?;
    // A close-up of very many accesses takes long.
    let accesses = recorder.accesses && runner.count(plan)? <= MAX_EVENTS;
    let recorder = Recorder { trace: true, accesses, ..*recorder };
    let mut symbols = recorder.symbols();
    let failing = recorder.record_with(&mut symbols, Job::Plan(plan), None, None)?;
    let Some(failure) = failing.verdict.clone() else { return Ok(None) };
    let steps = |switches: &[Switch]| switches.iter().map(|switch| switch.step).collect::<Vec<_>>();
    if failing.signature() != finding.signature || steps(&failing.switches) != steps(&finding.switches) {
        return Ok(None);
    }
    if failing.trace.len() > MAX_EVENTS {
        return Ok(Some(None));
    }
    let after = failing.thrown_after.filter(|_| failure.kind == FindingKind::Panic);
    let failing = flow(&failing);
    let detail = if recorder.accesses { Detail::AccessLog } else { Detail::CallLog };
    let Some(near) = neighbourhood(&mut runner, plan, (&failure, after), effort, detail)? else {
        return Ok(Some(None));
    };
    let mut passing = Vec::new();
    for twin in &near.twins {
        let closeup = recorder.record_with(&mut symbols, Job::Plan(twin), None, None)?;
        if closeup.verdict.is_none() && closeup.trace.len() <= MAX_EVENTS {
            passing.push(flow(&closeup));
        }
    }
    let differences =
        |other: &Flow| (0..failing.keys.len()).filter(|&i| failing.flow_differs(i, other)).count();
    passing.sort_by_key(differences);
    let mut record = |plan: &Plan| -> Result<Flow> {
        Ok(flow(&recorder.record_with(&mut symbols, Job::Plan(plan), None, None)?))
    };
    let Some((classified, found)) = classified(finding, &failing, &passing, &near, &mut record)? else {
        let out_of_time = runner.out_of_time();
        let evidence = Evidence { failing: 1 + near.failing_too.len(), passing: 0 };
        let nothing = Explanation { out_of_time, evidence: Some(evidence), ..Explanation::default() };
        return Ok(Some(Some((nothing, Vec::new()))));
    };
    let evidence = found.as_ref().map(|found| Evidence { failing: found.failing, passing: found.passing });
    let reversed_in = found.map_or_else(Vec::new, |found| found.reversed_in);
    let runs = reversed_in.iter().map(|&index| near.passing_plans[index].clone()).collect();
    let Classified { class, object, mut story, orderings, mut remedies, pending, waiting } = classified;
    let point = no_return(&mut runner, plan, &failure, &failing, effort)?;
    let innermost: Vec<String> = story.iter().map(|moment| moment.place.clone()).collect();
    // The point of no return first, as its place is more likely to be missing than those of the story.
    story.splice(0..0, point.as_ref().map(|point| point.moment.clone()));
    places_of_callers(&recorder, &mut symbols, plan, &failing, &mut story)?;
    let no_return = point.map(|point| NoReturn { moment: story.remove(0), ..point });
    for (innermost, moment) in innermost.iter().zip(&story) {
        remedies.iter_mut().for_each(|remedy| remedy.move_place(innermost, &moment.place));
    }
    let mut explanation = Explanation {
        class,
        object,
        story,
        pending,
        waiting,
        orderings,
        evidence,
        remedies,
        no_return,
        out_of_time: runner.out_of_time(),
        calls_only: !recorder.accesses,
        ..Explanation::default()
    };
    if let Some(twin) = passing.first() {
        let compared = comparison(&failing, twin);
        [explanation.reduction, _] = compared.reductions;
        [explanation.failing, explanation.passing] = compared.executions;
        explanation.common = compared.common;
    }
    Ok(Some(Some((explanation, runs))))
}

/// The class, with the necessary orderings in its story, and what confirms them. `None` if nothing passes and the kind of
/// the finding says nothing.
fn classified(
    finding: &Finding,
    failing: &Flow,
    passing: &[Flow],
    near: &Neighbourhood,
    record: &mut dyn FnMut(&Plan) -> Result<Flow>,
) -> Result<Option<(Classified, Option<Necessary>)>> {
    let preempted = finding.switches.iter().filter(|switch| switch.kind == SwitchKind::Preempt);
    let preempted: Vec<(ThreadId, u32)> = preempted.map(|switch| (switch.from, switch.step)).collect();
    let by_class = by_kind(finding, failing)
        .or_else(|| missed_recheck(failing, finding.thread))
        .or_else(|| classify(failing, passing, finding.thread, &preempted));
    let preferred = by_class.as_ref().map_or_else(Vec::new, |found| pairs(failing, passing, found));
    // A deadlock is about locks, but why a thread waits may be the value of a variable.
    let by_accesses =
        |found: &&Classified| matches!(found.class, BugClass::AtomicityViolation | BugClass::OrderViolation);
    let of_class = by_class.as_ref().filter(by_accesses).map_or(&[][..], |_| &preferred);
    let objects: Vec<u64> = of_class.iter().map(|((_, _, address), _)| *address).collect();
    let alive: Vec<u16> = finding.threads.iter().map(|thread| thread.thread.0).collect();
    let foreign = failing.foreign();
    let deadlock = finding.kind == FindingKind::Deadlock;
    let hints =
        Hints { preferred: &preferred, alive: &alive, deadlock, objects: &objects, foreign: &foreign };
    let found = necessary(&near.failing, &near.failing_too, &near.passing, &hints);
    let named = named(failing, passing, near, &found, record)?;
    Ok(match (by_class, named) {
        (Some(mut classified), Some(orders)) => {
            // One access may come too early only because it comes between two of another thread.
            let shown = by_orderings(failing, &orders).class;
            if (classified.class, shown) == (BugClass::OrderViolation, BugClass::AtomicityViolation) {
                classified.class = shown;
            }
            classified.confirm(failing, &orders);
            Some((classified, Some(found)))
        }
        (Some(classified), None) => Some((classified, None)),
        (None, Some(orders)) => Some((by_orderings(failing, &orders), Some(found))),
        (None, None) => (!passing.is_empty()).then(|| (Classified::new(BugClass::Unclassified), None)),
    })
}

/// The pairs of operations that a class compares. The operations of a deadlock come from the state at its end, without
/// steps.
fn pairs(failing: &Flow, passing: &[Flow], classified: &Classified) -> Vec<(Name, Name)> {
    let name = |moment: &Moment| {
        let same = |event: &&Observed| Moment { step: moment.step, ..event.moment.clone() } == *moment;
        let flows = [failing].into_iter().chain(passing);
        let event = flows.flat_map(|flow| &flow.observed).find(same)?;
        Some((moment.thread.0, moment.op as u8, event.address))
    };
    let names: Vec<Name> = classified.story.iter().filter_map(name).collect();
    names.iter().flat_map(|&first| names.iter().map(move |&second| (first, second))).collect()
}

/// The necessary orders by their operations. An operation that none of the twins has is named by another execution that
/// passes. `None` if there are no orders.
fn named(
    failing: &Flow,
    passing: &[Flow],
    near: &Neighbourhood,
    found: &Necessary,
    record: &mut dyn FnMut(&Plan) -> Result<Flow>,
) -> Result<Option<Vec<NamedOrder>>> {
    let find = |flow: &Flow, key: &Key| flow.find(key).map(|at| flow.moment(at).clone());
    let mut orders = Vec::new();
    for order in &found.orders {
        let mut second = match order.pending {
            false => find(failing, &order.second),
            true => passing.iter().find_map(|flow| find(flow, &order.second)),
        };
        if second.is_none() {
            let mut others = near.passing.iter().zip(&near.passing_plans);
            if let Some((_, plan)) = others.find(|(log, _)| log.has(&order.second)) {
                second = find(&record(plan)?, &order.second);
            }
        }
        let (Some(first), Some(second)) = (find(failing, &order.first), second) else { return Ok(None) };
        orders.push(NamedOrder { first, second, pending: order.pending });
    }
    Ok((!orders.is_empty()).then_some(orders))
}

/// The point of no return, with the operation that was done there.
fn no_return(
    runner: &mut Runner,
    plan: &Plan,
    failure: &Verdict,
    failing: &Flow,
    effort: Effort,
) -> Result<Option<NoReturn>> {
    let Some(point) = point_of_no_return(runner, plan, failure, effort)? else { return Ok(None) };
    let done = failing.observed.iter().find(|event| event.moment.step >= point.step);
    Ok(done.map(|event| NoReturn { moment: event.moment.clone(), runs: point.runs, proven: point.proven }))
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
