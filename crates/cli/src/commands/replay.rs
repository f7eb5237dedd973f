//! `heisen replay`: runs a schedule file and compares the outcome with the recorded one.

use crate::cli::args::ReplayArgs;
use crate::cli::exit;
use crate::commands::show;
use crate::gdb;
use crate::render::caveat;
use crate::render::finding::{Screen, operation, value};
use crate::render::paint::{Paint, print, say};
use heisen_engine::Error;
use heisen_engine::explain::close_up::{Closeup, Recorder};
use heisen_engine::process::run_config::{Output, RunConfig};
use heisen_engine::process::slots::Job;
use heisen_engine::process::{recorded_input, stdin};
use heisen_engine::program::Program;
use heisen_engine::program::compile;
use heisen_engine::program::compile::Extent;
use heisen_engine::program::embedded;
use heisen_trace::{End, FindingKind, Schedule};
use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

pub fn run(args: &ReplayArgs, stop: Arc<AtomicBool>) -> Result<u8, Error> {
    let schedule = show::read(&args.schedule)?;
    let program = find_program(&schedule)?;
    replay(args, schedule, program, stop)
}

/// Runs the schedule with this program.
pub fn replay(
    args: &ReplayArgs,
    mut schedule: Schedule,
    mut program: Program,
    stop: Arc<AtomicBool>,
) -> Result<u8, Error> {
    stdin::fetch(&mut schedule.world, &args.schedule)?;
    program.at_ready = schedule.at_ready;
    let changed = program.hash != schedule.binary;
    if changed {
        say(format_args!(
            "warning: {} has changed since the schedule was made; the schedule may no longer fit",
            program.path.display()
        ));
    }
    let carrier = args.carrier.into();
    let config = RunConfig { carrier, ..run_config(&schedule, &args.schedule, args.hang, stop)? };
    let runtime = embedded::runtime()?;
    if args.gdb {
        return gdb::run(args, &schedule, &program, &config, &runtime);
    }
    let recorder = Recorder {
        runtime: &runtime,
        program: &program,
        config: &config,
        expect_exit: schedule.expect_exit,
        // Captured, because the report quotes the message of a panic from it. It is printed before the
        // report.
        output: Output::Captured,
        trace: args.trace,
        accesses: false,
    };
    let mut closeup = recorder.record(Job::Schedule(&schedule))?;
    if !args.quiet {
        print(&closeup.output, true);
        if args.trace {
            print(&trace_text(&closeup), false);
        }
    }
    if let Some(divergence) = &closeup.run.execution.diverged {
        let expected = schedule.entries.iter().find(|e| e.step == divergence.step).map_or(
            "what was recorded".to_owned(),
            |e| {
                let then = if e.kind.is_value() { value(e.kind, e.options) } else { e.to.to_string() };
                format!("{} about to {} at {}, then {then}", e.from, operation(e.op, &e.object), e.place)
            },
        );
        let at = if closeup.diverged.is_empty() { String::new() } else { format!(": {}", closeup.diverged) };
        let why =
            caveat::causes(&closeup.run.execution.notes).map_or(String::new(), |why| format!("; {why}"));
        say(format_args!(
            "diverged at step {}: expected {expected}; found {}{at}{why}; check the program again to get a schedule that fits",
            divergence.step, divergence.found
        ));
        return Ok(exit::DIVERGED);
    }
    if closeup.run.execution.end == End::Stuck {
        let place =
            closeup.stack.place().map_or(String::new(), |f| format!(" in {} at {}", f.function, f.place()));
        return Err(Error::Uncontrolled(format!(
            "the program ran for {} s without reaching a scheduling point{place}; if it only takes long, raise --hang",
            args.hang.as_secs_f32()
        )));
    }
    // Look for a race only if the schedule recorded one. An execution with a race may end normally.
    if schedule.outcome.as_ref().is_some_and(|(kind, _)| *kind == FindingKind::DataRace) {
        let same = |closeup: &Closeup| closeup.signature() == schedule.signature;
        if let Some(race) = recorder.race(Job::Schedule(&schedule), &|_| true, &same)? {
            closeup = race;
        }
    }
    conclude(args, &schedule, &recorder, closeup, changed)
}

fn conclude(
    args: &ReplayArgs,
    schedule: &Schedule,
    recorder: &Recorder<'_>,
    closeup: Closeup,
    changed: bool,
) -> Result<u8, Error> {
    let paint = Paint::new(args.color);
    let expected = schedule.outcome.as_ref().map(|(kind, _)| *kind);
    let same = closeup.verdict.as_ref().map(|v| v.kind) == expected
        && (changed || schedule.signature.is_empty() || closeup.signature() == schedule.signature);
    let told = schedule.outcome.as_ref().map_or("a clean end".to_owned(), |(k, m)| format!("{k}: {m}"));
    if closeup.too_long {
        let steps = closeup.run.execution.steps;
        say(format_args!(
            "another outcome: expected {told}; the program did not end within {steps} steps, and was not seen to come back to \
             the same state: it may only take long"
        ));
        return Ok(exit::DIVERGED);
    }
    match closeup.verdict.clone() {
        Some(verdict) => {
            if let (Some(mut finding), false) = (closeup.into_finding(recorder, 0), args.quiet) {
                // `replay` has printed the output already.
                finding.output.clear();
                print(&Screen { paint, replay: "", time: None }.render(&finding), false);
            }
            if same {
                return Ok(exit::FOUND);
            }
            // A failure of the same kind but with another signature is at another place.
            let elsewhere = if Some(verdict.kind) == expected { ", but at another place" } else { "" };
            say(format_args!(
                "another outcome: expected {told}; found {}: {}{elsewhere}",
                verdict.kind, verdict.message
            ));
            Ok(exit::DIVERGED)
        }
        None if same || changed => {
            if !args.quiet {
                let words =
                    if same { "ended well, as recorded" } else { "the recorded failure did not happen" };
                print(&format!("{} {words}\n", paint.good("ok:")), false);
            }
            Ok(exit::CLEAN)
        }
        None => {
            say(format_args!("another outcome: expected {told}; the program ended well"));
            Ok(exit::DIVERGED)
        }
    }
}

/// The configuration of the executions of the check that found the schedule. `path` is the schedule file.
pub fn run_config(
    schedule: &Schedule,
    path: &Path,
    hang: Duration,
    stop: Arc<AtomicBool>,
) -> Result<RunConfig, Error> {
    Ok(RunConfig {
        steps: schedule.steps_limit.max(10),
        hang,
        stop,
        symmetry: schedule.symmetry,
        spurious: schedule.spurious,
        faults: schedule.faults,
        world: schedule.world.clone(),
        input: recorded_input::fetch(schedule, path)?,
        ..RunConfig::default()
    })
}

/// Finds the program of a schedule. Compiles it again if Heisen compiled it and the executable is gone.
pub fn find_program(schedule: &Schedule) -> Result<Program, Error> {
    let args: Vec<OsString> = schedule.args.iter().map(|a| OsString::from_vec(a.clone())).collect();
    let path = Path::new(OsStr::from_bytes(&schedule.program));
    // `compile` puts the executable into DIR/build/HASH.
    match (&schedule.source, path.ancestors().nth(3)) {
        (Some(source), Some(directory)) if !path.exists() => {
            let source = PathBuf::from(OsString::from_vec(source.clone()));
            let extent = match (schedule.instrumented, schedule.with_std) {
                (_, true) => Extent::WithStd,
                (true, false) => Extent::Program,
                (false, false) => Extent::AsItIs,
            };
            compile::compile(&source, args, directory, extent)
        }
        _ => Program::find(path.as_os_str(), args),
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
