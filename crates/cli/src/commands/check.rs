//! `heisen check`: explores the schedules of a program.

use crate::cli::args::{CheckArgs, Color, TargetArgs};
use crate::cli::exit;
use crate::cli::search_options::{jobs, options, options_for};
use crate::render::check::report;
use crate::render::json;
use crate::render::notice::NoticePrinter;
use crate::render::paint::{Paint, print, quoted, say};
use heisen_engine::Error;
use heisen_engine::check::session::{Finished, Resumption, Session};
use heisen_engine::check::{Ended, Options};
use heisen_engine::program::Program;
use heisen_engine::program::compile;
use heisen_engine::program::compile::{Extent, Language};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

pub fn run(args: &CheckArgs, stop: Arc<AtomicBool>) -> Result<u8, Error> {
    check_places(&args.output, args.json.as_deref())?;
    args.search.check_options()?;
    if let Some(path) = &args.save {
        check_file("--save", path)?;
    }
    if let Some(path) = &args.coverage {
        check_file("--coverage", path)?;
    }
    let files = [("--save", &args.save), ("--json", &args.json), ("--coverage", &args.coverage)];
    for (index, (option, file)) in files.iter().enumerate() {
        if let Some((other, _)) = files[..index].iter().find(|(_, other)| file.is_some() && other == file) {
            return Err(Error::Input(format!(
                "{other} and {option} name the same file; choose another for one"
            )));
        }
    }
    // Ctrl-C also reaches the compiler. Its failure is then an interruption, not an error.
    let or_interrupted = |error| if stop.load(Relaxed) { Error::Interrupted } else { error };
    let mut session = session(args, &stop).map_err(or_interrupted)?;
    if let Some(path) = &args.save {
        session.save_to(path.clone());
    }
    if let Some(path) = &args.coverage {
        session.record_coverage(path)?;
    }
    let name = session.program().short_name();
    let place = Place {
        directory: &args.output,
        name: &name,
        command: &own_name(),
        replay: &format!("{} replay", own_name()),
        origin: "",
    };
    let finished = explore(session, stop, args.quiet, &args.output)?;
    let covered = args.coverage.as_deref().map_or(Ok(()), |path| finished.write_coverage(path));
    let code = conclude(&finished, &place, args.json.as_deref(), args.quiet, args.color)?;
    covered?;
    Ok(code)
}

/// Where results are written, and the commands that messages name.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    pub directory: &'a Path,
    /// The prefix of the names of schedule files.
    pub name: &'a str,
    /// The command `heisen` as the user types it, for messages on how to resume a search.
    pub command: &'a str,
    /// The command that replays a schedule file.
    pub replay: &'a str,
    /// A comment at the end of each schedule file, which says how the program was built.
    pub origin: &'a str,
}

/// Runs a check and shows its notices.
pub fn explore(
    session: Session,
    stop: Arc<AtomicBool>,
    quiet: bool,
    directory: &Path,
) -> Result<Finished, Error> {
    let printer = NoticePrinter::new(quiet);
    let finished = session.run(stop, directory, &mut |notice| printer.show(&notice));
    printer.clear();
    finished
}

/// Prints and writes all results of a finished check. Returns the exit code.
pub fn conclude(
    finished: &Finished,
    place: &Place<'_>,
    json: Option<&Path>,
    quiet: bool,
    color: Color,
) -> Result<u8, Error> {
    let Finished { program, options, outcome, .. } = finished;
    let written = finished.write_schedules(place.directory, place.name, place.origin);
    if !quiet {
        // Print first, so that an error in writing a file does not hide the findings.
        let schedules = written.as_deref().unwrap_or_default();
        let json_on_stdout = json == Some(Path::new("-"));
        print(&report(Paint::new(color), options, outcome, schedules, place.replay), json_on_stdout);
    }
    let schedules = written?;
    if let Some(path) = json {
        json::write(&json::result(program, options, outcome, &schedules), path)?;
    }
    if let Some(error) = &outcome.error {
        return Err(error.clone());
    }
    let found = outcome.findings().next().is_some();
    let stopped = outcome.ended == Ended::Interrupted;
    let saved = if stopped || finished.was_saved() { Some(finished.save(place.directory)?) } else { None };
    if let Some(path) = saved.filter(|_| stopped) {
        say(interrupted(place.command, &path));
        return Ok(exit::INTERRUPTED);
    }
    for line in options.suppressions.others(|line| outcome.tally.races.has_used(line)) {
        say(format_args!("note: {line}: this suppression matches no data race of this check"));
    }
    Ok(match found {
        true => exit::FOUND,
        false if options.strict && outcome.has_caveats() => exit::CAVEAT,
        false => exit::CLEAN,
    })
}

/// The session that the command line asks for.
fn session(args: &CheckArgs, stop: &AtomicBool) -> Result<Session, Error> {
    if let Some(path) = &args.resume {
        let search = &args.search;
        let change = Resumption {
            hints: args.hints,
            strict: search.strict,
            jobs: jobs(search),
            memory: search.memory,
            time: search.time,
            executions: search.executions,
        };
        return Session::resume(path, &change);
    }
    let extent = match (args.target.no_instrument, args.with_std) {
        (true, _) => Extent::AsItIs,
        (false, true) => Extent::WithStd,
        (false, false) => Extent::Program,
    };
    let mut program = find_program(("heisen check", "check"), &args.target, &args.output, extent)?;
    program.at_ready = args.search.at_ready;
    let options = Options { hints: args.hints, ..options(&args.search, stop)? };
    let options = options_for(&program, &args.search, options);
    Ok(Session::new(program, options))
}

/// Finds the program of a command line: compiles a source file, or looks up a command. For error messages,
/// `usage` is the beginning of the command line, and `what` is the verb.
pub fn find_program(
    (usage, what): (&str, &str),
    TargetArgs { source, command, .. }: &TargetArgs,
    output: &Path,
    extent: Extent,
) -> Result<Program, Error> {
    match (source.as_deref(), command.split_first()) {
        (Some(source), _) if Language::of(source).is_some() => {
            compile::compile(source, command.to_vec(), output, extent)
        }
        (Some(other), _) => {
            let shown = other.display();
            // Without a slash, a program is looked up in PATH.
            let here = if other.components().count() == 1 && other.exists() { "./" } else { "" };
            Err(Error::Input(format!(
                "{shown} is not a .c, .cc, .cpp or .rs file; to {what} an executable write: {usage} -- {here}{shown} \
                 [ARGS]"
            )))
        }
        (None, Some((program, arguments))) => Program::find(program, arguments.to_vec()),
        (None, None) => {
            Err(Error::Input(format!("nothing to {what}; write: {usage} -- PROG [ARGS], or {usage} FILE.c")))
        }
    }
}

/// Refuses places where results cannot be written, before a search that may take long.
pub fn check_places(output: &Path, json: Option<&Path>) -> Result<(), Error> {
    let there = output.ancestors().find(|path| path.exists());
    if let Some(path) = there.filter(|path| !path.is_dir()) {
        return Err(Error::Input(format!("{} is not a directory; choose another with -o", path.display())));
    }
    match json.filter(|path| *path != Path::new("-")) {
        Some(path) => check_file("--json", path),
        None => Ok(()),
    }
}

/// Refuses a file that cannot be written.
pub fn check_file(option: &str, path: &Path) -> Result<(), Error> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(directory) = directory.filter(|directory| !directory.is_dir()) {
        let (path, directory) = (path.display(), directory.display());
        return Err(Error::Input(format!(
            "{path} cannot be written: {directory} is not a directory; create it"
        )));
    }
    if path.is_dir() {
        return Err(Error::Input(format!("{} is a directory; name a file for {option}", path.display())));
    }
    Ok(())
}

/// The message that says how to resume a saved search.
pub fn interrupted(command: &str, path: &Path) -> String {
    format!("interrupted; continue with: {command} check --resume {}", quoted(path))
}

/// The command by which the user called this executable. The user can type commands that begin with it.
fn own_name() -> String {
    let name = std::env::args_os().next().unwrap_or_default();
    quoted(Path::new(&name))
}
