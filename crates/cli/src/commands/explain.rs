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
use heisen_engine::explain::neighbourhood::Effort;
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
    let closeup = recorder.record(Job::Schedule(schedule))?;
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
    let same = closeup.signature() == schedule.signature;
    let Some(mut finding) = closeup.into_finding(&recorder, 0) else {
        say("the program no longer fails under this schedule, so there is nothing to explain");
        return Ok(exit::CLEAN);
    };
    if !same {
        say(format_args!("it fails, but not as recorded: {}", finding.message));
    }
    let plan = plan_of((runtime, program, config), Job::Schedule(schedule))?;
    finding.explanation = explain(&recorder, &plan, &finding, Effort::COMPLETE)?.map(Box::new);
    let replay = format!("heisen replay {}", quoted(&args.schedule));
    if let Some(path) = &args.json {
        let mut document = document::of_finding(&finding, &replay, &program.path);
        document["finding"] = result_json::finding(&finding, &args.schedule);
        document["explanation"] =
            json!(finding.explanation.as_deref().map(|why| explanation::json(why, true)));
        result_json::write(&document, path)?;
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
        let whole = finding.explanation.take();
        print(&Screen { paint, replay: &replay, time: None }.render(&finding), false);
        match &whole {
            Some(whole) => print(&explanation::complete(whole, paint, columns()), false),
            None => print(
                "\n  no explanation: the execution is too long, or fails in another way each time\n",
                false,
            ),
        }
    }
    Ok(exit::FOUND)
}
