//! `heisen explain`: says why the execution of a schedule file fails, by comparing it with one that passes.

use crate::cli::args::ExplainArgs;
use crate::cli::exit;
use crate::commands::prepared::Prepared;
use crate::render::finding::Screen;
use crate::render::html::{self, document};
use crate::render::json as result_json;
use crate::render::paint::{Paint, columns, print, quoted, say};
use crate::render::result_file::{check_files, is_stdout, write};
use crate::render::{chrome_trace, dot, explanation};
use heisen_engine::Error;
use heisen_engine::explain::explanation::explain;
use heisen_engine::explain::minimise::plan_of;
use heisen_engine::process::slots::Job;
use heisen_engine::program::Program;
use heisen_trace::{Finding, FindingKind};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub fn run(args: &ExplainArgs, stop: Arc<AtomicBool>) -> Result<u8, Error> {
    let files = [
        ("--json", args.json.as_deref()),
        ("--html", args.html.as_deref()),
        ("--perfetto", args.perfetto.as_deref()),
        ("--dot", args.dot.as_deref()),
    ];
    check_files(&files, true)?;
    let prepared = Prepared::read(&args.schedule, args.hang, stop)?;
    let (finding, same) = match explained(&prepared, &args.schedule)? {
        Explained::Fails { finding, same } => (finding, same),
        Explained::Unfit(why) => {
            say(why);
            return Ok(exit::DIVERGED);
        }
        Explained::Passes(words) => {
            say(words);
            return Ok(exit::CLEAN);
        }
    };
    let (mut finding, program) = (*finding, &prepared.program);
    if !same {
        say(elsewhere(&finding));
    }
    let replay = replay_command(&args.schedule);
    if let Some(path) = &args.json {
        result_json::write(&json_document(&finding, &args.schedule, program, true), path)?;
    }
    if let Some(path) = &args.html {
        write(&html::page(&document::of_finding(&finding, &replay, &program.path)), path)?;
    }
    if let Some(path) = &args.perfetto {
        write(&format!("{}\n", chrome_trace::document(&finding)), path)?;
    }
    if let Some(path) = &args.dot {
        write(&dot::document(&finding), path)?;
    }
    if !args.quiet && !files.iter().any(|(_, path)| path.is_some_and(is_stdout)) {
        let paint = Paint::new(args.color);
        print(&report(&mut finding, &replay, paint), false);
    }
    Ok(exit::FOUND)
}

/// What the execution of a schedule shows.
pub enum Explained {
    /// It fails. `same` says whether it fails as recorded.
    Fails { finding: Box<Finding>, same: bool },
    /// It did not follow the schedule, or did not end.
    Unfit(String),
    /// It ended well.
    Passes(&'static str),
}

/// Runs a schedule and explains its failure.
pub fn explained(prepared: &Prepared, path: &Path) -> Result<Explained, Error> {
    let Prepared { schedule, program, config, runtime, .. } = prepared;
    let recorder = prepared.recorder();
    if schedule.outcome.as_ref().is_some_and(|(kind, _)| *kind == FindingKind::DataRace) {
        return Err(Error::Input(format!(
            "{} is a schedule of a data race: heisen replay shows its two accesses; only failures are explained",
            path.display()
        )));
    }
    let closeup = recorder.record(Job::Schedule(schedule))?;
    if closeup.too_long {
        return Ok(Explained::Unfit(
            "the program did not end, and was not seen to come back to the same state: there is no failure to explain"
                .into(),
        ));
    }
    if let Some(divergence) = prepared.divergence(&closeup) {
        return Ok(Explained::Unfit(format!("the schedule no longer fits: {divergence}")));
    }
    let same = closeup.signature() == schedule.signature;
    let Some(mut finding) = closeup.into_finding(&recorder, 0) else {
        return Ok(Explained::Passes(
            "the program no longer fails under this schedule, so there is nothing to explain",
        ));
    };
    let plan = plan_of((runtime, program, config), Job::Schedule(schedule))?;
    finding.explanation = explain(&recorder, &plan, &finding)?.map(Box::new);
    Ok(Explained::Fails { finding: Box::new(finding), same })
}

/// The message that a failure is not the recorded one.
pub fn elsewhere(finding: &Finding) -> String {
    format!("it fails, but not as recorded: {}", finding.message)
}

/// An explained finding as JSON. The compared executions may be long, so only the complete form has them.
pub fn json_document(finding: &Finding, schedule: &Path, program: &Program, complete: bool) -> Value {
    let mut document = document::of_finding(finding, &replay_command(schedule), &program.path);
    document["finding"] = result_json::finding(finding, schedule);
    document["explanation"] =
        json!(finding.explanation.as_deref().map(|why| explanation::json(why, complete)));
    document
}

/// The command that replays a schedule file.
pub fn replay_command(schedule: &Path) -> String {
    format!("heisen replay {}", quoted(schedule))
}

/// The screen of the finding with the complete explanation, which it loses.
pub fn report(finding: &mut Finding, replay: &str, paint: Paint) -> String {
    let whole = finding.explanation.take();
    let screen = Screen { paint, replay, time: None }.render(finding);
    let why = match &whole {
        Some(whole) => explanation::complete(whole, paint, columns()),
        None => {
            "\n  no explanation: the execution is too long, or fails in another way each time\n".to_owned()
        }
    };
    screen + why.as_str()
}
