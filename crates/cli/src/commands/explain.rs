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
use heisen_engine::explain::unexplained::{self, Unexplained};
use heisen_engine::process::slots::Job;
use heisen_trace::FindingKind;
use serde_json::json;
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
    let Prepared { schedule, program, config, runtime, .. } = &prepared;
    let recorder = prepared.recorder();
    if schedule.outcome.as_ref().is_some_and(|(kind, _)| *kind == FindingKind::DataRace) {
        return Err(Error::Input(format!(
            "{} is a schedule of a data race: heisen replay shows its two accesses; only failures are explained",
            args.schedule.display()
        )));
    }
    let progress = Progress::of("replaying the schedule", args.quiet);
    let closeup = recorder.record(Job::Schedule(schedule))?;
    drop(progress);
    if closeup.too_long {
        say(
            "the program did not end, and was not seen to come back to the same state: there is no failure to explain",
        );
        return Ok(exit::DIVERGED);
    }
    if let Some(divergence) = prepared.divergence(&closeup) {
        say(format_args!("the schedule no longer fits: {divergence}"));
        return Ok(exit::DIVERGED);
    }
    let same = prepared.is_as_recorded(&closeup);
    let Some(mut finding) = closeup.into_finding(&recorder, 0) else {
        say(match &schedule.outcome {
            Some((_, then)) => format!(
                "the program no longer fails under this schedule, so there is nothing to explain; when the schedule was made: {then}"
            ),
            None => {
                "the program does not fail under this schedule, so there is nothing to explain".to_owned()
            }
        });
        return Ok(exit::CLEAN);
    };
    if !same {
        let then = schedule.outcome.as_ref().map_or("it passed", |(_, message)| message);
        say(format_args!(
            "the program fails in another way than recorded; now: {}; when the schedule was made: {then}",
            finding.message
        ));
    }
    let progress = Progress::of("comparing with executions that pass", args.quiet);
    let plan = plan_of((runtime, program, config), Job::Schedule(schedule))?;
    finding.explanation = explain(&recorder, &plan, &finding)?.map(Box::new);
    let mut why_not = None;
    if finding.explanation.is_none() {
        why_not = Some(unexplained::reason(&recorder, &plan, &finding)?);
        if let Some(Unexplained::TooLong(calls)) = &why_not {
            finding.explanation = calls.clone();
        }
    }
    drop(progress);
    let notes = limits::notes(&finding, program, why_not.as_ref());
    let replay = format!("{} replay {}", own_name(), quoted(&args.schedule));
    let of_finding = || document::of_finding(&finding, &replay, &program.path, &notes);
    if let Some(path) = &args.json {
        let mut document = of_finding();
        document["finding"] = result_json::finding(&finding, &args.schedule);
        document["explanation"] =
            json!(finding.explanation.as_deref().map(|why| explanation::json(why, true)));
        result_json::write(&document, path)?;
    }
    if let Some(path) = &args.html {
        write(&html::page(&of_finding()), path)?;
    }
    if let Some(path) = &args.perfetto {
        write(&format!("{}\n", chrome_trace::document(&finding)), path)?;
    }
    if let Some(path) = &args.dot {
        write(&dot::document(&finding), path)?;
    }
    if !args.quiet && !files.iter().any(|(_, path)| path.is_some_and(is_stdout)) {
        let paint = Paint::new(args.color);
        let whole = finding.explanation.take();
        print(&Screen { paint, replay: &replay, time: None }.render(&finding), false);
        if let Some(whole) = &whole {
            print(&explanation::complete(whole, paint, columns()), false);
        }
        if !notes.is_empty() {
            let notes: String = notes.iter().map(|note| format!("  note: {note}\n")).collect();
            print(&format!("\n{notes}"), false);
        }
    }
    Ok(exit::FOUND)
}
