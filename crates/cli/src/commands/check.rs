//! `heisen check`: explores the schedules of a program.

use crate::cli::args::{CheckArgs, Color, Format, ResultArgs, TargetArgs};
use crate::cli::exit;
use crate::cli::search_options::{jobs, options, options_for};
use crate::commands::pages;
use crate::render::check::{report, summary};
use crate::render::junit::{self, Case, CaseResult, Suite};
use crate::render::notice::NoticePrinter;
use crate::render::paint::{self, Paint, own_name, print, quoted, say};
use crate::render::result_file::{check_files, write};
use crate::render::{github, json, sarif};
use heisen_engine::Error;
use heisen_engine::check::session::{Finished, Resumption, Session};
use heisen_engine::check::{Empty, Ended, Kind, Notify, Options};
use heisen_engine::program::Program;
use heisen_engine::program::compile;
use heisen_engine::program::compile::{Extent, Language};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

pub fn run(args: &CheckArgs, stop: Arc<AtomicBool>) -> Result<u8, Error> {
    let printer = NoticePrinter::new(args.quiet);
    let finished = search(args, stop, &mut |notice| printer.show(&notice));
    printer.clear();
    let finished = finished?;
    let covered = args.coverage.as_deref().map_or(Ok(()), |path| finished.write_coverage(path));
    let (name, command) = (finished.program.short_name(), own_name());
    let place = Place {
        directory: &args.output,
        name: &name,
        command: &command,
        replay: &format!("{command} replay"),
        origin: "",
        html: args.html.as_deref(),
    };
    let code = conclude(&finished, &place, &args.results, args.quiet, args.color)?;
    covered?;
    Ok(code)
}

/// Runs the check that the command line asks for. Refuses bad options before anything runs.
pub fn search(args: &CheckArgs, stop: Arc<AtomicBool>, notify: &mut Notify<'_>) -> Result<Finished, Error> {
    check_places(&args.output)?;
    args.search.check_options()?;
    let search_files = [("--save", args.save.as_deref()), ("--coverage", args.coverage.as_deref())];
    check_files(&search_files, false)?;
    check_files(&[&search_files[..], &args.results.files()].concat(), true)?;
    if let Some(directory) = &args.html {
        pages::check_directory(directory)?;
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
    session.run(stop, &args.output, notify)
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
    /// The directory of the pages, if they are wanted.
    pub html: Option<&'a Path>,
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
    results: &ResultArgs,
    quiet: bool,
    color: Color,
) -> Result<u8, Error> {
    let Finished { program, options, outcome, .. } = finished;
    let written = finished.write_schedules(place.directory, place.name, place.origin);
    // Print first, so that an error in writing a file does not hide the findings.
    let schedules = written.as_deref().unwrap_or_default();
    let name = &program.short_name();
    let paint = Paint::new(color);
    match results.format {
        Format::Text if quiet => {}
        Format::Text => print(&report(paint, options, outcome, schedules, place.replay), results.on_stdout()),
        Format::Github => {
            paint::write(&github::findings(name, outcome, schedules, place.replay), results.on_stdout());
            if !quiet {
                print(&summary(paint, options, outcome), results.on_stdout());
            }
        }
    }
    let schedules = written?;
    write_results(finished, place, results, &schedules)?;
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
        false if outcome.empty == Some(Empty::Contradiction) => exit::INPUT,
        false if options.strict && outcome.has_caveats() => exit::CAVEAT,
        false => exit::CLEAN,
    })
}

/// Writes the files of results that the user asked for. `schedules` lists the schedule files of the findings.
pub fn write_results(
    finished: &Finished,
    place: &Place<'_>,
    results: &ResultArgs,
    schedules: &[PathBuf],
) -> Result<(), Error> {
    let Finished { program, options, outcome, .. } = finished;
    let name = &program.short_name();
    if let Some(path) = &results.json {
        json::write(&json::result(program, options, outcome, schedules), path)?;
    }
    if let Some(path) = &results.sarif {
        let run = sarif::run(name, outcome, schedules, place.replay);
        json::write(&sarif::document(&[run]), path)?;
    }
    if let Some(path) = &results.junit {
        let result = CaseResult::of(options, outcome, schedules, place.replay);
        let case = Case { name: name.to_owned(), time: outcome.tally.time, result };
        write(&junit::document("heisen check", &[Suite { name: name.to_owned(), cases: vec![case] }]), path)?;
    }
    if let Some(directory) = place.html {
        pages::write(directory, finished, place, schedules)?;
    }
    Ok(())
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
    let needs_symbolic = match args.search.kind() {
        Kind::Causal => Some("--strategy causal"),
        // Of the portfolio, only the solver chooses inputs.
        _ if args.search.chooses_inputs() => Some("--inputs"),
        _ => None,
    };
    let extent = match (args.target.no_instrument, needs_symbolic) {
        (true, Some(option)) => {
            return Err(Error::Input(format!(
                "{option} needs the expressions of FILE, so --no-instrument does not fit; leave out one of both"
            )));
        }
        (true, None) => Extent::AsItIs,
        (false, Some(_)) => Extent::Symbolic,
        (false, None) if args.with_std => Extent::WithStd,
        (false, None) => Extent::Program,
    };
    // Before anything is compiled: options that do not fit are refused.
    let TargetArgs { source, command, .. } = &args.target;
    let arguments = if source.is_some() { &command[..] } else { command.get(1..).unwrap_or_default() };
    let options = Options { hints: args.hints, ..options(&args.search, arguments, stop)? };
    let mut program = find_program(("heisen check", "check"), &args.target, &args.output, extent)?;
    program.at_ready = args.search.at_ready;
    if let Some(option) = needs_symbolic.filter(|_| !program.symbolic) {
        return Err(Error::Input(format!(
            "{} is not a symbolic build, which {option} needs; build it with heisen cc --symbolic or heisen c++ \
             --symbolic",
            program.path.display()
        )));
    }
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
pub fn check_places(output: &Path) -> Result<(), Error> {
    let there = output.ancestors().find(|path| path.exists());
    if let Some(path) = there.filter(|path| !path.is_dir()) {
        return Err(Error::Input(format!("{} is not a directory; choose another with -o", path.display())));
    }
    Ok(())
}

/// The message that says how to resume a saved search.
pub fn interrupted(command: &str, path: &Path) -> String {
    format!("interrupted; continue with: {command} check --resume {}", quoted(path))
}
