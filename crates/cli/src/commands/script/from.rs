//! `heisen script --from`: writes a script that leads to the failure of a schedule file.

use crate::cli::args::ScriptArgs;
use crate::cli::exit;
use crate::commands::prepared::Prepared;
use crate::render::paint::{count, print, write};
use crate::render::result_file::check_file;
use heisen_engine::Error;
use heisen_engine::platform::atomic_file;
use heisen_engine::process::run_config::RunConfig;
use heisen_engine::process::slots::Job;
use heisen_engine::program::Program;
use heisen_script::generate::{Draft, Naming};
use heisen_script::oracle::Order;
use heisen_script::record::Recording;
use heisen_script::script::Script;
use heisen_script::source::Source;
use heisen_script::test::{Target, Test};
use heisen_trace::{Accesses, FindingKind, World};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A generated script must fail this many times in a row.
const RUNS: usize = 100;
/// A script of at most this many lines, including its comment, is short enough.
const SHORT: usize = 10;
/// A script names a choice that is not about threads by its number among the decisions after the thread's
/// last event. Numbers up to this one are tried.
const DECISIONS: usize = 8;

/// The program with which generated scripts are tried.
struct Subject<'a> {
    runtime: &'a Path,
    program: &'a Program,
    expected: i32,
}

impl Subject<'_> {
    fn test<'s>(&'s self, source: &'s Source, config: RunConfig) -> Test<'s> {
        Test {
            script: Script::Text(source),
            runtime: self.runtime,
            target: Target::Unit(self.program),
            config,
            expected: self.expected,
            order: Order::Depth,
            choices: Some(Vec::new()),
            reduce: false,
            executions: None,
            time: None,
        }
    }
}

/// Writes a script that leads to the bug of a schedule.
pub fn run(args: &ScriptArgs, path: &Path, stop: Arc<AtomicBool>) -> Result<u8, Error> {
    if let Some(file) = &args.output {
        check_file("-o", file)?;
    }
    let prepared = Prepared::read(path, args.hang, stop)?;
    let Prepared { schedule, program, config, runtime, .. } = &prepared;
    let recorder = prepared.recorder();
    if schedule.outcome.as_ref().is_some_and(|(kind, _)| *kind == FindingKind::DataRace) {
        return Err(Error::Input(format!(
            "{} is a schedule of a data race; a script can only lead to a failure",
            path.display()
        )));
    }
    let closeup = recorder.record(Job::Schedule(schedule))?;
    let Some(verdict) = closeup.verdict.filter(|_| closeup.run.execution.diverged.is_none()) else {
        return Err(Error::Input(format!(
            "{} no longer leads to a bug; heisen replay shows where it diverges",
            path.display()
        )));
    };
    let subject = Subject { runtime, program, expected: schedule.expect_exit };
    let none = || {
        Error::Uncontrolled(format!(
            "no script leads to the bug of {}: it depends on more than the order of events that a script can name",
            path.display()
        ))
    };
    let (recording, plain) =
        subject.test(&Source::new(""), config.clone()).record(schedule)?.ok_or_else(none)?;
    // The configuration of `heisen script`, without the access points and options that the schedule recorded.
    let accesses = Accesses { check: false, ..Accesses::default() };
    let config = RunConfig {
        world: World { accesses, ..config.world.clone() },
        symmetry: false,
        spurious: 0,
        faults: RunConfig::default().faults,
        ..config.clone()
    };
    let mut fails =
        |text: &str, times: usize| subject.test(&Source::new(text), config.clone()).fails(times, &plain);
    let text = make(&recording, &mut fails)?.ok_or_else(none)?;
    let text = format!("// {}: {}\n{text}", verdict.kind, verdict.message.lines().next().unwrap_or_default());
    match &args.output {
        None => write(&text, false),
        Some(file) => {
            atomic_file::write(file, text.as_bytes())
                .map_err(|e| Error::Input(format!("{} cannot be written: {e}", file.display())))?;
            if !args.quiet {
                let lines = count(text.lines().count() as u64, "line");
                print(&format!("{}: {lines}; fails in {RUNS} runs of {RUNS}\n", file.display()), false);
            }
        }
    }
    Ok(exit::CLEAN)
}

/// Tries each way to name threads. Returns the first short script, or else the shortest.
fn make(
    recording: &Recording,
    fails: &mut dyn FnMut(&str, usize) -> Result<bool, Error>,
) -> Result<Option<String>, Error> {
    let others = recording.events.iter().map(|event| event.thread).max().unwrap_or(0);
    let decisions = if recording.has_values() { DECISIONS } else { 1 };
    let mut best: Option<String> = None;
    for naming in [Naming::Stops, Naming::Starts(others), Naming::Main] {
        for nth in 1..=decisions {
            let draft = Draft::strengthen(recording, naming, nth).weaken(&mut |text| fails(text, 1))?;
            let Some(text) = draft.map(|draft| draft.text()) else { continue };
            let lines = text.lines().count();
            if best.as_ref().is_none_or(|best| lines < best.lines().count()) && fails(&text, RUNS)? {
                if lines < SHORT {
                    return Ok(Some(text));
                }
                best = Some(text);
            }
        }
    }
    Ok(best)
}
