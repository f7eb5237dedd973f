//! `heisen explain`: says why the execution of a schedule file fails, by comparing it with one that passes.

use crate::cli::args::ExplainArgs;
use crate::cli::exit;
use crate::commands::replay::{find_program, run_config};
use crate::commands::show;
use crate::render::explanation;
use crate::render::finding::Screen;
use crate::render::html;
use crate::render::json as result_json;
use crate::render::paint::{Paint, print, quoted, say};
use heisen_engine::Error;
use heisen_engine::explain::close_up::Recorder;
use heisen_engine::explain::explanation::explain;
use heisen_engine::explain::minimise::plan_of;
use heisen_engine::platform::atomic_file;
use heisen_engine::process::run_config::Output;
use heisen_engine::process::slots::Job;
use heisen_engine::process::stdin;
use heisen_engine::program::{Program, embedded};
use heisen_trace::Finding;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub fn run(args: &ExplainArgs, stop: Arc<AtomicBool>) -> Result<u8, Error> {
    let mut schedule = show::read(&args.schedule)?;
    let mut program = find_program(&schedule)?;
    stdin::fetch(&mut schedule.world, &args.schedule)?;
    program.at_ready = schedule.at_ready;
    if program.hash != schedule.binary {
        say(format_args!(
            "warning: {} has changed since the schedule was made; the schedule may no longer fit",
            program.path.display()
        ));
    }
    let config = run_config(&schedule, &args.schedule, args.hang, stop)?;
    let runtime = embedded::runtime()?;
    let recorder = Recorder {
        runtime: &runtime,
        program: &program,
        config: &config,
        expect_exit: schedule.expect_exit,
        output: Output::Captured,
        trace: false,
        accesses: false,
    };
    let closeup = recorder.record(Job::Schedule(&schedule))?;
    if let Some(divergence) = &closeup.run.execution.diverged {
        say(format_args!(
            "the schedule no longer fits: it diverged at step {}; heisen replay shows what it expected there",
            divergence.step
        ));
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
    let plan = plan_of((&runtime, &program, &config), Job::Schedule(&schedule))?;
    finding.explanation = explain(&recorder, &plan, &finding)?.map(Box::new);
    if let Some(path) = &args.json {
        let why = finding.explanation.as_deref().map(|why| explanation::json(why, true));
        result_json::write(&json!({ "explanation": why }), path)?;
    }
    if let Some(path) = &args.html {
        let page =
            html::page(&document(&finding, &format!("heisen replay {}", quoted(&args.schedule)), &program));
        atomic_file::write(path, page.as_bytes())?;
    }
    let replay = format!("heisen replay {}", quoted(&args.schedule));
    if !args.quiet && args.json.as_deref() != Some("-".as_ref()) {
        let paint = Paint::new(args.color);
        let whole = finding.explanation.take();
        print(&Screen { paint, replay: &replay, time: None }.render(&finding), false);
        match &whole {
            Some(whole) => print(&explanation::complete(whole, paint), false),
            None => print(
                "\n  no explanation: the execution is too long, or fails in another way each time\n",
                false,
            ),
        }
    }
    Ok(exit::FOUND)
}

/// What the page shows: the finding, its threads and explanation, and the source files of all places.
fn document(finding: &Finding, replay: &str, program: &Program) -> Value {
    let threads = finding.schedule.threads.iter();
    let threads: Vec<Value> =
        threads.map(|line| json!({ "thread": line.thread.to_string(), "start": line.start })).collect();
    let mut sources = Map::new();
    if let Some(why) = &finding.explanation {
        let compared = why.failing.iter().chain(&why.passing).map(|event| &event.moment);
        for moment in why.story.iter().chain(compared) {
            let Some((file, _)) = moment.place.rsplit_once(':') else { continue };
            if !sources.contains_key(file)
                && let Ok(bytes) = std::fs::read(file)
            {
                let text = String::from_utf8_lossy(&bytes);
                sources.insert(file.to_owned(), text.lines().collect());
            }
        }
    }
    json!({
        "heisen": env!("CARGO_PKG_VERSION"),
        "program": program.path.display().to_string(),
        "replay": replay,
        "finding": {
            "kind": finding.kind,
            "message": finding.message,
            "thread": finding.thread.map(|thread| thread.to_string()),
            "place": finding.stack.place().map(|frame| frame.place()),
            "preemptions": finding.preemptions,
        },
        "threads": threads,
        "explanation": finding.explanation,
        "sources": sources,
    })
}
