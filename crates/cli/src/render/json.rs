//! Renders the result of a check as JSON.
//!
//! The format is a contract with scripts: fields are added, never changed or removed.
//! `docs/reference/json.schema.json` describes it; a test validates results against it.

use crate::render::explanation;
use crate::render::finding::value;
use crate::render::inputs;
use crate::render::race;
use crate::render::result_file;
use heisen_engine::Error;
use heisen_engine::check::{Options, Outcome};
use heisen_engine::program::Program;
use heisen_trace::Finding;
use heisen_trace::cycle::{Cycle, Repeated};
use heisen_trace::finding::{Block, BlockEvent};
use heisen_trace::schedule::InputLine;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The result of a check. `schedules` lists the schedule files in the order of the findings.
pub fn result(program: &Program, options: &Options, outcome: &Outcome, schedules: &[PathBuf]) -> Value {
    let tally = &outcome.tally;
    let verdict = outcome.verdict();
    let claim = (verdict != "bug").then(|| crate::render::claim::claim(options, outcome));
    let races: Vec<Value> =
        outcome.findings().zip(schedules).filter_map(|(finding, path)| race::json(finding, path)).collect();
    let findings: Vec<Value> =
        outcome.findings().zip(schedules).map(|(found, schedule)| finding(found, schedule)).collect();
    json!({
        "heisen": env!("CARGO_PKG_VERSION"),
        "program": program.path.display().to_string(),
        "strategy": options.strategy,
        "seed": options.seed,
        "symmetry": options.symmetry,
        "spurious": options.spurious,
        "faults": options.faults.to_string(),
        "verdict": verdict,
        "claim": claim,
        "complete": outcome.complete(),
        "preemption_bound": outcome.preemption_bound(),
        "rounds": outcome.status.rounds,
        "rounds_completed": outcome.status.rounds_completed,
        "executions": tally.executions,
        "steps": tally.steps,
        "seconds": tally.time.as_secs_f64(),
        "guarantee": outcome.status.guarantee,
        "unseen": outcome.status.unseen,
        "remaining": outcome.status.remaining.filter(|_| !outcome.status.exhausted),
        "unnoted": outcome.status.unnoted,
        "lost": tally.lost,
        "cut": tally.cut,
        "unexamined": tally.unexamined,
        "idle": tally.idle,
        "diverged": outcome.status.diverged,
        "diverged_at": tally.diverged_at.as_ref().filter(|at| !at.is_empty()),
        "findings": findings,
        "races": races,
        "races_suppressed": tally.races.suppressed(),
        "races_unlisted": tally.races.unlisted(),
        "hints": outcome.hints,
        "access_points": tally.points.len(),
        "restarts": tally.restarts,
        "undone": tally.undone,
        "ahead": tally.ahead,
        "skipped": tally.skipped,
        "forked": tally.why_forked(),
        "classes": (!tally.classes.is_empty()).then_some(tally.classes.len()),
        "blocked": outcome.in_vain(),
        "sound": outcome.sound(),
        "scope": options.scope,
        "patch": options.world.patch,
        "not_controlled": crate::render::caveat::sentences(outcome),
    })
}

/// One finding. `schedule` is its schedule file.
pub fn finding(finding: &Finding, schedule: &Path) -> Value {
    json!({
        "kind": finding.kind,
        "message": finding.message,
        "preemptions": finding.preemptions,
        "executions_to_find": finding.executions_to_find,
        "schedule": schedule.display().to_string(),
        "signature": finding.signature,
        "thread": finding.thread.map(|t| t.to_string()),
        "place": finding.stack.place().map(|f| f.place()),
        "choices": choices(finding),
        "cycle": finding.cycle.as_ref().map(cycle),
        "block": finding.block.as_ref().map(block),
        "predicted": finding.predicted,
        "minimised": finding.minimised,
        "globals": finding.globals,
        "inputs": finding.schedule.inputs.iter().map(input).collect::<Vec<_>>(),
        "input_bytes": inputs::large(&finding.schedule.inputs),
        "explanation": finding.explanation.as_deref().map(|why| explanation::json(why, false)),
        "default_schedule": finding.switches.is_empty(),
    })
}

/// An input that the search has chosen.
fn input(input: &InputLine) -> Value {
    let InputLine { path, number, width, value, name } = input;
    json!({ "name": name, "thread": path, "number": number, "bits": width, "value": value })
}

/// The choices that are not about threads, each with its step, thread, place and description.
fn choices(finding: &Finding) -> Vec<Value> {
    let values = finding.switches.iter().filter(|s| s.kind.is_value());
    values
        .map(|s| {
            json!({
                "step": s.step,
                "thread": s.from.to_string(),
                "kind": s.kind.name(),
                "what": value(s.kind, s.options),
                "place": s.stack.place().map(|f| f.place()),
            })
        })
        .collect()
}

/// The steps that an endless execution repeats.
fn cycle(cycle: &Cycle) -> Value {
    let step = |s: &Repeated| {
        json!({
            "thread": s.thread.to_string(),
            "op": s.op.name(),
            "object": s.object,
            "ok": s.ok,
            "times": s.times,
            "place": s.stack.place().map(|f| f.place()),
        })
    };
    let steps: Vec<Value> = cycle.steps.iter().map(step).collect();
    json!({ "order": cycle.order, "length": cycle.length, "of": cycle.of, "steps": steps })
}

/// The heap block of a memory error.
fn block(block: &Block) -> Value {
    let event = |e: &BlockEvent| json!({ "thread": e.thread.to_string(), "place": e.stack.place().map(|f| f.place()) });
    json!({
        "size": block.size,
        "number": block.number,
        "offset": block.offset,
        "allocated": event(&block.allocated),
        "freed": block.freed.as_ref().map(event),
    })
}

/// Writes a JSON value to a file, or to standard output for `-`.
pub fn write(value: &Value, path: &Path) -> Result<(), Error> {
    result_file::write(&format!("{value:#}\n"), path)
}
