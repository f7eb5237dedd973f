//! `heisen explain`: says why the execution of a schedule file fails, by comparing it with one that passes.

use crate::cli::args::ExplainArgs;
use crate::cli::exit;
use crate::commands::prepared::Prepared;
use crate::render::finding::Screen;
use crate::render::html::{self, document};
use crate::render::json as result_json;
use crate::render::paint::{Paint, columns, own_name, print, quoted, say};
use crate::render::progress::Progress;
use crate::render::result_file::{check_files, is_stdout, write};
use crate::render::{chrome_trace, dot, explanation, limits};
use heisen_engine::Error;
use heisen_engine::explain::explanation::explain;
use heisen_engine::explain::minimise::plan_of;
use heisen_engine::explain::neighbourhood::Effort;
use heisen_engine::explain::unexplained::{self, Unexplained};
use heisen_engine::process::slots::Job;
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
    let prepared = Prepared::read(&args.schedule, args.run.hang, stop)?;
    let progress = Progress::of("comparing with executions that pass", args.run.quiet);
    let explained = explained(&prepared, &args.schedule)?;
    drop(progress);
    let failure = match explained {
        Explained::Fails(failure) => *failure,
        Explained::Unfit(why) => {
            say(why);
            return Ok(exit::DIVERGED);
        }
        Explained::Passes(words) => {
            say(words);
            return Ok(exit::CLEAN);
        }
    };
    if let Some(words) = &failure.elsewhere {
        say(words);
    }
    let replay = replay_command(&args.schedule);
    if let Some(path) = &args.json {
        result_json::write(&failure.json(&prepared, &args.schedule, true), path)?;
    }
    if let Some(path) = &args.html {
        let document =
            document::of_finding(&failure.finding, &replay, &prepared.program.path, &failure.notes);
        write(&html::page(&document), path)?;
    }
    if let Some(path) = &args.perfetto {
        write(&format!("{}\n", chrome_trace::document(&failure.finding)), path)?;
    }
    if let Some(path) = &args.dot {
        write(&dot::document(&failure.finding), path)?;
    }
    if !args.run.quiet && !files.iter().any(|(_, path)| path.is_some_and(is_stdout)) {
        print(&failure.report(&replay, Paint::new(args.run.color)), false);
    }
    Ok(exit::FOUND)
}

/// What the execution of a schedule shows.
#[derive(Debug)]
pub enum Explained {
    Fails(Box<Failure>),
    /// It did not follow the schedule, or did not end.
    Unfit(String),
    /// It ended well.
    Passes(String),
}

/// A failure with its explanation.
#[derive(Debug)]
pub struct Failure {
    pub finding: Finding,
    /// The sentence that says that it does not fail as recorded.
    pub elsewhere: Option<String>,
    /// What limits the explanation, and what would add to it.
    pub notes: Vec<String>,
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
    let same = prepared.is_as_recorded(&closeup);
    let then = schedule.outcome.as_ref().map(|(_, message)| message.as_str());
    let Some(mut finding) = closeup.into_finding(&recorder, 0) else {
        return Ok(Explained::Passes(match then {
            Some(then) => format!(
                "the program no longer fails under this schedule, so there is nothing to explain; when the schedule was made: {then}"
            ),
            None => {
                "the program does not fail under this schedule, so there is nothing to explain".to_owned()
            }
        }));
    };
    let plan = plan_of((runtime, program, config), Job::Schedule(schedule))?;
    finding.explanation = explain(&recorder, &plan, &finding, Effort::COMPLETE)?.map(Box::new);
    let calls_only = finding.explanation.clone().filter(|explanation| explanation.calls_only);
    let mut why_not = calls_only.map(|explanation| Unexplained::TooLong(Some(explanation)));
    if finding.explanation.is_none() {
        why_not = Some(unexplained::reason(&recorder, &plan, &finding)?);
        if let Some(Unexplained::TooLong(calls)) = &why_not {
            finding.explanation = calls.clone();
        }
    }
    let elsewhere = (!same).then(|| {
        format!(
            "the program fails in another way than recorded; now: {}; when the schedule was made: {}",
            finding.message,
            then.unwrap_or("it passed")
        )
    });
    let notes = limits::notes(&finding, program, why_not.as_ref());
    Ok(Explained::Fails(Box::new(Failure { finding, elsewhere, notes })))
}

impl Failure {
    /// The failure as JSON. The compared executions may be long, so only the complete form has them.
    pub fn json(&self, prepared: &Prepared, schedule: &Path, complete: bool) -> Value {
        let Failure { finding, notes, .. } = self;
        let mut document =
            document::of_finding(finding, &replay_command(schedule), &prepared.program.path, notes);
        document["finding"] = result_json::finding(finding, schedule);
        document["explanation"] =
            json!(finding.explanation.as_deref().map(|why| explanation::json(why, complete)));
        document
    }

    /// The screen of the finding with the complete explanation.
    pub fn report(&self, replay: &str, paint: Paint) -> String {
        let mut finding = self.finding.clone();
        let whole = finding.explanation.take();
        let mut out = Screen { paint, replay, time: None }.render(&finding);
        if let Some(whole) = &whole {
            out += &explanation::complete(whole, paint, columns());
        }
        if !self.notes.is_empty() {
            out.push('\n');
            out.extend(self.notes.iter().map(|note| format!("  note: {note}\n")));
        }
        out
    }
}

/// The command that replays a schedule file.
pub fn replay_command(schedule: &Path) -> String {
    format!("{} replay {}", own_name(), quoted(schedule))
}
