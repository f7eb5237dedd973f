//! `heisen script`.

mod from;

use crate::args::{OracleName, ScriptArgs};
use crate::check::{check_places, find_program};
use crate::exit;
use crate::paint::{count, print, say};
use heisen_engine::compile::Extent;
use heisen_engine::program::Program;
use heisen_engine::saved::write_whole;
use heisen_engine::system;
use heisen_engine::zygote::Limits;
use heisen_engine::{Error, unpack};
use heisen_script::oracle::Order;
use heisen_script::source::Source;
use heisen_script::test::{Found, Outcome, Target, Test, Told};
use serde_json::json;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

pub fn run(args: &ScriptArgs, stop: Arc<AtomicBool>) -> Result<u8, Error> {
    match (&args.from, &args.script) {
        (Some(schedule), _) => from::run(args, schedule, stop),
        (None, Some(script)) => follow(args, script, stop),
        (None, None) => {
            Err(Error::Input("no script; write: heisen script SCRIPT.rhai -- PROG [ARGS]".into()))
        }
    }
}

/// Runs a script.
fn follow(args: &ScriptArgs, script: &Path, stop: Arc<AtomicBool>) -> Result<u8, Error> {
    let output = args.output.as_deref().unwrap_or(Path::new(".heisen"));
    check_places(output, args.json.as_deref())?;
    let text = std::fs::read_to_string(script)
        .map_err(|e| Error::Input(format!("{} cannot be read: {e}", script.display())))?;
    let source = Source::new(&text);
    let extent = if args.target.no_instrument { Extent::AsItIs } else { Extent::Program };
    let programs = programs(args, output, extent)?;
    let runtime = unpack::runtime()?;
    let mut limits = Limits { steps: args.steps, hang: args.hang, stop: stop.clone(), ..Limits::default() };
    // Which accesses conflict is not the script's business, and atomics of libraries are no events.
    limits.world.accesses.check = false;
    let test = Test {
        source: &source,
        runtime: &runtime,
        target: match programs.as_slice() {
            [(_, system::Source::Start(program))] if !args.system && args.attach.is_empty() => {
                Target::Unit(program)
            }
            programs => Target::System { programs, started: args.attach.is_empty() },
        },
        limits,
        expected: args.expect_exit,
        order: match args.oracle {
            OracleName::Depth => Order::Depth,
            OracleName::Breadth => Order::Breadth,
            OracleName::Few => Order::Few,
            OracleName::Random => Order::Random(args.seed),
        },
        choices: args.choices.clone(),
        reduce: args.reduce,
        executions: args.executions,
        time: args.time,
    };
    let outcome = test.run(&mut |_| !stop.load(Relaxed)).map_err(|error| match error {
        Error::Input(text) => Error::Input(format!("{}: {text}", script.display())),
        error => error,
    })?;
    if !args.quiet && args.json.as_deref() != Some(Path::new("-")) {
        print(&report(args, script, &outcome), false);
    }
    if let Some(path) = &args.json {
        let text = format!("{:#}\n", to_json(&outcome));
        if path == Path::new("-") {
            print(&text, false);
        } else {
            write_whole(path, text.as_bytes())
                .map_err(|e| Error::Input(format!("{} cannot be written: {e}", path.display())))?;
        }
    }
    if stop.load(Relaxed) {
        say("interrupted");
        return Ok(exit::INTERRUPTED);
    }
    let failed = outcome.found.is_some() || matches!(outcome.exists, Some(None));
    Ok(match outcome.executions {
        _ if failed => exit::FOUND,
        0 => exit::DIVERGED,
        _ => exit::CLEAN,
    })
}

/// The programs that a script is run with, by their names.
fn programs(
    args: &ScriptArgs,
    output: &Path,
    extent: Extent,
) -> Result<Vec<(String, system::Source)>, Error> {
    if args.attach.is_empty() {
        let program = find_program(("heisen script SCRIPT.rhai", "run"), &args.target, output, extent)?;
        return Ok(vec![(program.short_name(), system::Source::Start(program))]);
    }
    let mut programs: Vec<(String, system::Source)> = Vec::new();
    for (name, words) in &args.attach {
        if programs.iter().any(|(other, _)| other == name) {
            return Err(Error::Input(format!("--attach {name} is given twice; name programs differently")));
        }
        let source = match words.as_deref() {
            Some([program, arguments @ ..]) => {
                let arguments = arguments.iter().map(OsString::from).collect();
                system::Source::Start(Program::find(OsStr::new(program), arguments)?)
            }
            _ => system::Source::Running,
        };
        programs.push((name.clone(), source));
    }
    Ok(programs)
}

fn lines(trail: &[Told]) -> String {
    let line = |(line, what): &Told| match line {
        Some(line) => format!("  line {line:>3}: {what}\n"),
        None => format!("            {what}\n"),
    };
    trail.iter().map(line).collect()
}

/// Steps of a script that are shown, from its end.
const SHOWN: usize = 20;

fn report(args: &ScriptArgs, script: &Path, outcome: &Outcome) -> String {
    let mut out = String::new();
    let schedules = count(outcome.executions, "schedule");
    match (&outcome.found, &outcome.exists) {
        (Some(found), _) => out.push_str(&report_found(script, found, outcome)),
        (None, Some(Some(trail))) => {
            out.push_str(&format!(
                "exists: the script was followed to its end, in schedule {}\n",
                outcome.executions
            ));
            out.push_str(&lines(trail));
        }
        (None, Some(None)) => out.push_str("no schedule follows the script to its end\n"),
        (None, None) if outcome.executions == 0 => {
            out.push_str("no schedule follows the script to its end, so nothing was tested\n");
        }
        (None, None) if outcome.complete => {
            out.push_str(&format!("ok: no bug in all {schedules} of the script\n"))
        }
        (None, None) => out.push_str(&format!("nothing found: no bug in {schedules} of the script\n")),
    }
    if outcome.infeasible > 0 {
        let ran = count(outcome.infeasible, "execution");
        out.push_str(&format!("{ran} could not follow the script"));
        if let Some((why, line)) = &outcome.why {
            let line = line.map_or(String::new(), |line| format!("line {line}: "));
            out.push_str(&format!("; the last: {line}{why}"));
        }
        out.push('\n');
    }
    if outcome.covered > 0 {
        let ran = count(outcome.covered, "execution");
        out.push_str(&format!("{ran} cut, as what follows was explored by others\n"));
    }
    if outcome.assumed > 0 {
        let ran = count(outcome.assumed, "execution");
        out.push_str(&format!("{ran} left out by what the script assumes\n"));
    }
    if outcome.diverged > 0 {
        let choices = count(outcome.diverged, "choice");
        let why =
            if args.choices.is_some() { "there are not so many" } else { "something is not controlled" };
        out.push_str(&format!("{choices} could not be taken: {why}\n"));
    }
    let events = count(outcome.events, "event");
    out.push_str(&format!("{events}, {:.2} s\n", outcome.time.as_secs_f64()));
    out
}

fn report_found(script: &Path, found: &Found, outcome: &Outcome) -> String {
    let mut out = format!("{}: {}\n", found.verdict.kind, found.verdict.message);
    let place = match found.line {
        Some(line) => format!("while the script was in line {line}"),
        None => "after the end of the script".to_owned(),
    };
    out.push_str(&format!("in schedule {} of the script, {place}\n", outcome.executions));
    if found.trail.len() > SHOWN {
        out.push_str(&format!("  ({} before)\n", count((found.trail.len() - SHOWN) as u64, "step")));
    }
    out.push_str(&lines(&found.trail[found.trail.len().saturating_sub(SHOWN)..]));
    let choices: Vec<String> = found.choices.iter().map(usize::to_string).collect();
    let again = if choices.is_empty() {
        "every run of the script".to_owned()
    } else {
        format!("heisen script --choices {} {} …", choices.join(","), script.display())
    };
    if found.repeats {
        out.push_str(&format!("replays: {again}\n"));
    } else {
        out.push_str("it did not show again with the same choices: something is not controlled\n");
    }
    out
}

fn to_json(outcome: &Outcome) -> serde_json::Value {
    let trail = |trail: &[Told]| -> serde_json::Value {
        trail.iter().map(|(line, what)| json!({ "line": line, "what": what })).collect()
    };
    json!({
        "executions": outcome.executions,
        "infeasible": outcome.infeasible,
        "why": outcome.why.as_ref().map(|(why, line)| json!({ "line": line, "what": why })),
        "assumed": outcome.assumed,
        "covered": outcome.covered,
        "complete": outcome.complete,
        "diverged": outcome.diverged,
        "events": outcome.events,
        "seconds": outcome.time.as_secs_f64(),
        "exists": outcome.exists.as_ref().map(|found| found.as_ref().map(|t| trail(t))),
        "found": outcome.found.as_ref().map(|found| json!({
            "kind": found.verdict.kind.to_string(),
            "message": found.verdict.message,
            "line": found.line,
            "choices": found.choices,
            "repeats": found.repeats,
            "trail": trail(&found.trail),
        })),
    })
}
