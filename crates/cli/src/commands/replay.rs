//! `heisen replay`: runs a schedule file and compares the outcome with the recorded one.

use crate::cli::args::ReplayArgs;
use crate::cli::exit;
use crate::commands::prepared::{Prepared, find_program};
use crate::commands::show;
use crate::gdb;
use crate::render::finding::{Screen, operation};
use crate::render::paint::{Paint, print, say, write};
use heisen_engine::Error;
use heisen_engine::explain::close_up::{Closeup, Recorder};
use heisen_engine::process::slots::Job;
use heisen_engine::program::Program;
use heisen_trace::{FindingKind, Schedule};
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub fn run(args: &ReplayArgs, stop: Arc<AtomicBool>) -> Result<u8, Error> {
    let schedule = show::read(&args.schedule)?;
    let program = find_program(&schedule)?;
    replay(args, schedule, program, stop)
}

/// Runs the schedule with this program.
pub fn replay(
    args: &ReplayArgs,
    schedule: Schedule,
    program: Program,
    stop: Arc<AtomicBool>,
) -> Result<u8, Error> {
    let mut prepared = Prepared::of(&args.schedule, schedule, program, args.hang, stop)?;
    prepared.config.carrier = args.carrier.into();
    if args.gdb {
        let Prepared { schedule, program, config, runtime, .. } = &prepared;
        return gdb::run(args, schedule, program, config, runtime);
    }
    let recorder = Recorder { trace: args.trace, ..prepared.recorder() };
    let closeup = recorder.record(Job::Schedule(&prepared.schedule))?;
    if !args.quiet {
        // The output is printed before the report, which quotes the message of a panic from it.
        write(&closeup.output, true);
        if args.trace {
            print(&trace_text(&closeup), false);
        }
    }
    match settled(&prepared, &recorder, closeup)? {
        Settled::Diverged(divergence) => {
            say(divergence);
            Ok(exit::DIVERGED)
        }
        Settled::Ended(closeup) => conclude(args, &prepared, &recorder, *closeup),
    }
}

/// How the execution of a schedule ended.
pub enum Settled {
    /// It did not follow the schedule. The text says where.
    Diverged(String),
    /// It ended.
    Ended(Box<Closeup>),
}

/// Judges the execution of a schedule. If the schedule recorded a data race, looks for the race.
pub fn settled(prepared: &Prepared, recorder: &Recorder<'_>, closeup: Closeup) -> Result<Settled, Error> {
    prepared.check_inputs(&closeup)?;
    if let Some(divergence) = prepared.divergence(&closeup) {
        return Ok(Settled::Diverged(divergence));
    }
    prepared.check_progress(&closeup)?;
    let schedule = &prepared.schedule;
    // Look for a race only if the schedule recorded one. An execution with a race may end normally.
    if schedule.outcome.as_ref().is_some_and(|(kind, _)| *kind == FindingKind::DataRace) {
        let same = |closeup: &Closeup| closeup.signature() == schedule.signature;
        if let Some(race) = recorder.race(Job::Schedule(schedule), &|_| true, &same)? {
            return Ok(Settled::Ended(Box::new(race)));
        }
    }
    Ok(Settled::Ended(Box::new(closeup)))
}

/// The sentence that compares an execution with its record, and whether it ended as recorded.
pub fn compared(prepared: &Prepared, closeup: &Closeup) -> (String, bool) {
    let expected = prepared.schedule.outcome.as_ref().map(|(kind, _)| *kind);
    let (same, told) = (prepared.is_as_recorded(closeup), prepared.recorded());
    if closeup.too_long {
        let steps = closeup.run.execution.steps;
        let words = format!(
            "another outcome: expected {told}; the program did not end within {steps} steps, and was not seen to come back to \
             the same state: it may only take long"
        );
        return (words, false);
    }
    let words = match &closeup.verdict {
        Some(verdict) if same => format!("it failed, as recorded: {}", verdict.message),
        Some(verdict) => {
            // A failure of the same kind but with another signature is at another place.
            let elsewhere = if Some(verdict.kind) == expected { ", but at another place" } else { "" };
            format!(
                "another outcome: expected {told}; found {}: {}{elsewhere}",
                verdict.kind, verdict.message
            )
        }
        None if same => "ended well, as recorded".to_owned(),
        None if prepared.changed => "the recorded failure did not happen".to_owned(),
        None => format!("another outcome: expected {told}; the program ended well"),
    };
    (words, same)
}

fn conclude(
    args: &ReplayArgs,
    prepared: &Prepared,
    recorder: &Recorder<'_>,
    closeup: Closeup,
) -> Result<u8, Error> {
    let paint = Paint::new(args.color);
    let (words, same) = compared(prepared, &closeup);
    let ended_well = closeup.verdict.is_none() && !closeup.too_long;
    if !closeup.too_long
        && let (Some(mut finding), false) = (closeup.into_finding(recorder, 0), args.quiet)
    {
        // `replay` has printed the output already.
        finding.output.clear();
        print(&Screen { paint, replay: "", time: None }.render(&finding), false);
    }
    match (same, ended_well) {
        (true, false) => Ok(exit::FOUND),
        (_, true) if same || prepared.changed => {
            if !args.quiet {
                print(&format!("{} {words}\n", paint.good("ok:")), false);
            }
            Ok(exit::CLEAN)
        }
        _ => {
            say(words);
            Ok(exit::DIVERGED)
        }
    }
}

fn trace_text(closeup: &Closeup) -> String {
    let mut out = String::new();
    for line in &closeup.trace {
        let failed = if line.event.ok { "" } else { " (not done)" };
        let op = operation(line.event.op, &line.object);
        let _ = writeln!(
            out,
            "{:>7}  {:<4} {op}{failed}  {}",
            line.event.step,
            line.event.thread.to_string(),
            line.place
        );
    }
    out
}
