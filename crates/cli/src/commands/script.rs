//! `heisen script`: runs a script together with a program.

mod from;

use crate::cli::args::{OracleName, ScriptArgs};
use crate::cli::exit;
use crate::commands::check::{check_places, find_program};
use crate::render::paint::{print, say, write};
use crate::render::result_file::check_files;
use crate::render::script as render;
use heisen_engine::Error;
use heisen_engine::platform::atomic_file;
use heisen_engine::process::run_config::RunConfig;
use heisen_engine::process::system;
use heisen_engine::program::Program;
use heisen_engine::program::compile::Extent;
use heisen_engine::program::embedded;
use heisen_script::oracle::Order;
use heisen_script::remote::Remote;
use heisen_script::script::Script;
use heisen_script::source::Source;
use heisen_script::test::{Target, Test};
use std::ffi::{OsStr, OsString};
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

pub fn run(args: &ScriptArgs, stop: Arc<AtomicBool>) -> Result<u8, Error> {
    match (&args.from, &args.script) {
        (Some(schedule), _) => from::run(args, schedule, stop),
        (None, Some(script)) => {
            let text = std::fs::read_to_string(script)
                .map_err(|e| Error::Input(format!("{} cannot be read: {e}", script.display())))?;
            let source = Source::new(&text);
            follow(args, Script::Text(&source), stop)
        }
        (None, None) if args.remote => {
            let input = BufReader::new(std::io::stdin());
            let remote = Remote::new(input, std::io::stdout(), stop.clone());
            follow(args, Script::Remote(&remote), stop)
        }
        (None, None) => {
            Err(Error::Input("no script; write: heisen script SCRIPT.rhai -- PROG [ARGS]".into()))
        }
    }
}

/// Runs a script and shows the result.
fn follow(args: &ScriptArgs, script: Script<'_>, stop: Arc<AtomicBool>) -> Result<u8, Error> {
    let output = args.output.as_deref().unwrap_or(Path::new(".heisen"));
    check_places(output)?;
    check_files(&[("--json", args.json.as_deref())], true)?;
    let extent = if args.target.no_instrument { Extent::AsItIs } else { Extent::Program };
    let programs = programs(args, output, extent)?;
    let runtime = embedded::runtime()?;
    let mut config =
        RunConfig { steps: args.steps, hang: args.hang, stop: stop.clone(), ..RunConfig::default() };
    // Scripts do not use conflicts between accesses. Atomic instructions of libraries are not events of a
    // script.
    config.world.accesses.check = false;
    let test = Test {
        script,
        runtime: &runtime,
        target: match programs.as_slice() {
            [(_, system::Source::Start(program))] if !args.system && args.attach.is_empty() => {
                Target::Unit(program)
            }
            programs => Target::System { programs, started: args.attach.is_empty() },
        },
        config,
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
    let outcome = test.run(&mut |_| !stop.load(Relaxed)).map_err(|error| match (error, &args.script) {
        (Error::Input(text), Some(file)) => Error::Input(format!("{}: {text}", file.display())),
        (error, _) => error,
    })?;
    if let Script::Remote(remote) = script {
        remote.end();
    }
    if !args.quiet && args.json.as_deref() != Some(Path::new("-")) {
        print(&render::report(args, &script, &outcome), false);
    }
    if let Some(path) = &args.json {
        let text = format!("{:#}\n", render::to_json(&outcome));
        if path == Path::new("-") {
            write(&text, false);
        } else {
            atomic_file::write(path, text.as_bytes())
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

/// The programs that the script controls, with their names.
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
