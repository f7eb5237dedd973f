//! `cargo heisen run`, `build` and `replay`: the commands for programs and schedule files.

use super::Failure;
use super::args::{BuildArgs, Cargo, ReplayCommand, RunArgs, Targets};
use super::build::{self, BuildRequest, Executable, Mode, build};
use super::line::{COMMAND, REPLAY};
use super::workspace::Workspace;
use crate::cli::args::Color;
use crate::cli::exit;
use crate::cli::search_options;
use crate::commands::check;
use crate::commands::check::Place;
use crate::commands::{replay as replays, show};
use crate::render::paint::print;
use crate::render::place::from_here;
use crate::render::result_file::check_files;
use heisen_engine::Error;
use heisen_engine::check::session::Session;
use heisen_engine::check::{Kind, Options};
use heisen_engine::program::Program;
use heisen_trace::Schedule;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The beginning of the comment in a schedule file that records how the program was built.
const ORIGIN: &str = "# cargo ";

/// The comment: cargo's command, and its options as a JSON list, so that they may contain any character.
pub fn origin(mode: Mode, words: &[OsString]) -> String {
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    format!("{ORIGIN}{} {}\n", mode.command(), serde_json::json!(words))
}

/// Reads the comment. A schedule file without one, such as those of `heisen check`, belongs to a program
/// rather than a test.
fn read_origin(text: &str) -> (Mode, Vec<OsString>) {
    let line = text.lines().rev().find_map(|line| line.strip_prefix(ORIGIN)).unwrap_or_default();
    let (command, words) = line.split_once(' ').unwrap_or_default();
    let mode = if command == Mode::Tests.command() { Mode::Tests } else { Mode::Programs };
    let words: Vec<String> = serde_json::from_str(words).unwrap_or_default();
    (mode, words.into_iter().map(OsString::from).collect())
}

pub fn run(args: RunArgs, stop: &Arc<AtomicBool>) -> Result<u8, Failure> {
    let workspace = Workspace::find(&args.cargo)?;
    let output = args.output;
    let directory = output.output.unwrap_or_else(|| workspace.schedules());
    check::check_places(&directory)?;
    check_files(&output.results.files(), true)?;
    let options = search_options::options(&args.search, &args.args, stop)?;
    let mut targets = Targets {
        bin: args.bin.into_iter().collect(),
        example: args.example.into_iter().collect(),
        ..Targets::default()
    };
    targets.bins = targets.bin.is_empty() && targets.example.is_empty();
    let words = build::words(args.build.for_search(&args.search).words(), &targets);
    let order = BuildRequest {
        mode: Mode::Programs,
        words: &words,
        cargo: &args.cargo,
        quiet: output.quiet,
        color: output.color,
    };
    let executable = only(build(&workspace, &order)?)?;
    let mut program = Program::find(executable.path.as_os_str(), args.args)?;
    program.at_ready = args.search.at_ready;
    program.environment = executable.environment;
    check_build(&program, &options)?;
    let place = Place {
        directory: &from_here(&directory),
        name: &program.short_name(),
        command: COMMAND,
        replay: REPLAY,
        origin: &origin(Mode::Programs, &words),
        html: None,
    };
    let options = search_options::options_for(&program, &args.search, options);
    let session = Session::new(program, options);
    let finished = check::explore(session, stop.clone(), output.quiet, place.directory)?;
    Ok(check::conclude(&finished, &place, &output.results, output.quiet, output.color)?)
}

/// Whether the program was built as the search needs it. The linker leaves programs as they are that use Rust's standard
/// library as a shared library.
pub fn check_build(program: &Program, options: &Options) -> Result<(), Error> {
    if options.strategy != Kind::Causal || program.symbolic {
        return Ok(());
    }
    Err(Error::Input(format!(
        "{} could not be built symbolically, which --strategy causal needs, because it does not contain Rust's standard \
         library (as tests of procedural macros do not); choose another strategy for it",
        program.path.display()
    )))
}

/// The only program, or the one that `cargo run` would run by default.
fn only(executables: Vec<Executable>) -> Result<Executable, Error> {
    let names: Vec<String> = executables.iter().map(|executable| executable.name.clone()).collect();
    let several = executables.len() > 1;
    let mut meant: Vec<Executable> =
        executables.into_iter().filter(|executable| !several || executable.default_run).collect();
    match (meant.pop(), meant.is_empty()) {
        (Some(executable), true) => Ok(executable),
        _ if several => Err(Error::Input(format!(
            "there are several programs; choose one with --bin: {}",
            names.join(", ")
        ))),
        _ => Err(Error::Input(
            "there is no program here, only libraries; to explore tests: cargo heisen test".into(),
        )),
    }
}

pub fn build_only(args: &BuildArgs) -> Result<u8, Failure> {
    let workspace = Workspace::find(&args.cargo)?;
    let words = build::words(args.build.words(), &args.targets);
    let order = BuildRequest {
        mode: Mode::Programs,
        words: &words,
        cargo: &args.cargo,
        quiet: args.quiet,
        color: args.color,
    };
    let built = build(&workspace, &order)?;
    if !args.quiet {
        let line = |executable: &Executable| format!("{}\n", from_here(&executable.path).display());
        print(&built.iter().map(line).collect::<String>(), false);
    }
    Ok(exit::CLEAN)
}

pub fn replay(args: &ReplayCommand, stop: &Arc<AtomicBool>) -> Result<u8, Failure> {
    let schedule = show::read(&args.replay.schedule)?;
    let (mode, words) = read_origin(&std::fs::read_to_string(&args.replay.schedule).unwrap_or_default());
    let executable = built_again(&args.cargo, mode, &words, &schedule, args.replay.quiet, args.replay.color)?;
    let arguments = schedule.args.iter().map(|word| OsString::from_vec(word.clone())).collect();
    let mut program = Program::find(executable.path.as_os_str(), arguments)?;
    program.directory = (mode == Mode::Tests).then_some(executable.directory);
    program.environment = executable.environment;
    Ok(replays::replay(&args.replay, schedule, program, stop.clone())?)
}

/// Builds the executable of a schedule from the current code. Its file name may differ from the recorded one,
/// because cargo adds a hash that varies between machines.
fn built_again(
    cargo: &Cargo,
    mode: Mode,
    words: &[OsString],
    schedule: &Schedule,
    quiet: bool,
    color: Color,
) -> Result<Executable, Failure> {
    let workspace = Workspace::find(cargo)?;
    let built = build(&workspace, &BuildRequest { mode, words, cargo, quiet, color })?;
    let path = Path::new(OsStr::from_bytes(&schedule.program));
    let stem = Executable::stem(path);
    let exact = built.iter().position(|executable| executable.path == path);
    let named = || built.iter().position(|executable| Executable::stem(&executable.path) == stem);
    match exact.or_else(named) {
        Some(index) => Ok(built[index].clone()),
        None => Err(Error::Input(format!(
            "{} is no longer built by this package; to replay it without building: heisen replay",
            path.display()
        ))
        .into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_tells_how_its_program_was_built() {
        let words: Vec<OsString> = ["--features", "a b\"c", "--release"].map(OsString::from).into();
        for mode in [Mode::Tests, Mode::Programs] {
            let text = format!("heisen schedule 1\nend 0\n{}", origin(mode, &words));
            assert_eq!(read_origin(&text), (mode, words.clone()));
        }
        assert_eq!(read_origin("heisen schedule 1\nend 0\n"), (Mode::Programs, Vec::new()));
    }
}
