//! `heisen diff`: compares the executions of two schedule files of one program.

use crate::cli::args::DiffArgs;
use crate::cli::exit;
use crate::commands::prepared::Prepared;
use crate::render::difference::{self, Side};
use crate::render::html::{self, document};
use crate::render::json as result_json;
use crate::render::paint::{Paint, columns, print, say};
use crate::render::result_file::check_file;
use heisen_engine::Error;
use heisen_engine::explain::close_up::{Closeup, Recorder};
use heisen_engine::explain::difference::{MAX_EVENTS, difference};
use heisen_engine::platform::atomic_file;
use heisen_engine::process::slots::Job;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub fn run(args: &DiffArgs, stop: Arc<AtomicBool>) -> Result<u8, Error> {
    for (option, file) in [("--html", &args.html), ("--json", &args.json)] {
        if let Some(file) = file.as_deref().filter(|file| *file != Path::new("-")) {
            check_file(option, file)?;
        }
    }
    let one = Prepared::read(&args.one, args.run.hang, stop.clone())?;
    let other = Prepared::read(&args.other, args.run.hang, stop)?;
    check_same_program(args, &one, &other)?;
    let mut closeups = Vec::new();
    for (path, prepared) in [(&args.one, &one), (&args.other, &other)] {
        match record(path, prepared)? {
            Some(closeup) => closeups.push(closeup),
            None => return Ok(exit::DIVERGED),
        }
    }
    let [one_run, other_run] = &closeups[..] else {
        return Err(Error::Internal("two executions were recorded".into()));
    };
    let comparison = difference(one_run, other_run);
    let sides = [side(&args.one, one_run), side(&args.other, other_run)];
    let program = one.program.path.display().to_string();
    if let Some(path) = &args.json {
        result_json::write(&difference::json(&program, &sides, &comparison), path)?;
    }
    if let Some(path) = &args.html {
        let document = document::of_difference(&sides, comparison.clone(), &one.program.path);
        atomic_file::write(path, html::page(&document).as_bytes())?;
    }
    if !args.run.quiet && args.json.as_deref() != Some("-".as_ref()) {
        print(&difference::table(&sides, &comparison, Paint::new(args.run.color), columns()), false);
    }
    Ok(exit::CLEAN)
}

/// Refuses schedules whose executions cannot be compared: events are the same only in the same executable.
fn check_same_program(args: &DiffArgs, one: &Prepared, other: &Prepared) -> Result<(), Error> {
    if one.program.hash == other.program.hash {
        return Ok(());
    }
    let (a, b) = (args.one.display(), args.other.display());
    let same_name = one.program.source.is_some() && one.program.source == other.program.source;
    Err(Error::Input(if same_name {
        format!(
            "{a} and {b} are schedules of different builds of {}; check the program again to get two of the same build",
            one.program.short_name()
        )
    } else {
        format!(
            "{a} and {b} are schedules of different programs, {} and {}; name two schedules of one program",
            one.program.path.display(),
            other.program.path.display()
        )
    }))
}

/// Records the execution of a schedule with every access of memory. `None` if it did not follow the schedule.
fn record(path: &Path, prepared: &Prepared) -> Result<Option<Closeup>, Error> {
    let recorder = Recorder { trace: true, accesses: true, ..prepared.recorder() };
    let closeup = recorder.record(Job::Schedule(&prepared.schedule))?;
    if let Some(divergence) = prepared.divergence(&closeup) {
        say(format_args!("{} no longer fits: {divergence}", path.display()));
        return Ok(None);
    }
    prepared.check_progress(&closeup)?;
    if closeup.trace.len() > MAX_EVENTS {
        return Err(Error::Input(format!(
            "the execution of {} has {} events; heisen diff compares executions with at most {MAX_EVENTS}",
            path.display(),
            closeup.trace.len()
        )));
    }
    if !prepared.is_as_recorded(&closeup) {
        let now = closeup
            .verdict
            .as_ref()
            .map_or("a clean end".to_owned(), |v| format!("{}: {}", v.kind, v.message));
        say(format_args!("note: {} recorded {}, but led to {now}", path.display(), prepared.recorded()));
    }
    Ok(Some(closeup))
}

fn side(path: &Path, closeup: &Closeup) -> Side {
    Side {
        schedule: path.display().to_string(),
        outcome: closeup.verdict.as_ref().map(|verdict| (verdict.kind, verdict.message.clone())),
        threads: closeup.lines.iter().map(|line| (line.thread, line.start.clone())).collect(),
    }
}
