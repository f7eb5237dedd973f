//! `heisen check`.

use crate::cli::args::{CheckArgs, Color, TargetArgs};
use crate::cli::exit;
use crate::cli::search_options::{jobs, options, options_for};
use crate::render::check::{progress_line, report};
use crate::render::json;
use crate::render::paint::{Paint, print, quoted, say};
use heisen_engine::Error;
use heisen_engine::check::access_point_file;
use heisen_engine::check::changed::Changed;
use heisen_engine::check::coverage::{Coverage, Record};
use heisen_engine::check::saved::{Keeper, Saved, beside, write_whole};
use heisen_engine::check::{Check, Ended, Options, Outcome, Progress, Tally};
use heisen_engine::process::deadline::Deadline;
use heisen_engine::process::stdin;
use heisen_engine::program::Program;
use heisen_engine::program::compile;
use heisen_engine::program::compile::{Extent, Language};
use heisen_engine::program::embedded;
use heisen_search::Search;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

/// Changed functions that are named.
const MOST_NAMES: usize = 5;

pub fn run(args: &CheckArgs, stop: Arc<AtomicBool>) -> Result<u8, Error> {
    check_places(&args.output, args.json.as_deref())?;
    args.search.fit_together()?;
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
    // A compiler that was interrupted along with us has not failed.
    let or_interrupted = |error| if stop.load(Relaxed) { Error::Interrupted } else { error };
    let mut prepared = prepare(args, &stop).map_err(or_interrupted)?;
    prepared.cover(args)?;
    let name = prepared.program.short_name();
    let place = Place {
        directory: &args.output,
        name: &name,
        command: &own_name(),
        replay: &format!("{} replay", own_name()),
        origin: "",
    };
    let explored = prepared.explore(stop, !args.quiet, &args.output)?;
    let covered = explored.write_coverage(args.coverage.as_deref());
    let code = explored.conclude(&place, args.json.as_deref(), args.quiet, args.color)?;
    covered?;
    Ok(code)
}

/// A program, and how far its search is.
#[derive(Debug)]
pub struct Prepared {
    pub program: Program,
    pub options: Options,
    search: Search,
    tally: Tally,
    /// Where the search is saved while it runs.
    keep: Option<PathBuf>,
}

/// Where results go, and what is said of them.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    pub directory: &'a Path,
    /// What the names of schedule files begin with.
    pub name: &'a str,
    /// The command `heisen`, for going on with a search.
    pub command: &'a str,
    /// The command that replays them.
    pub replay: &'a str,
    /// A comment at the end of each, which tells how the program was built.
    pub origin: &'a str,
}

/// A search that has ended.
#[derive(Debug)]
pub struct Explored {
    pub program: Program,
    pub options: Options,
    pub outcome: Outcome,
    /// Where the search was saved while it ran.
    keep: Option<PathBuf>,
}

impl Prepared {
    pub fn new(program: Program, options: Options) -> Prepared {
        Prepared { search: options.search(&program), program, options, tally: Tally::default(), keep: None }
    }

    /// Has what is covered counted, if that is to be written.
    fn cover(&mut self, args: &CheckArgs) -> Result<(), Error> {
        let Some(path) = &args.coverage else { return Ok(()) };
        if args.resume.is_none() {
            self.tally.coverage = Some(Coverage::default());
        } else if self.tally.coverage.is_none() {
            return Err(Error::Input(format!(
                "--coverage {}: the search was begun without it, so what it has covered is not known; start the check \
                 anew",
                path.display()
            )));
        }
        Ok(())
    }

    /// Searches, with a line of progress on a terminal. What is kept from check to check is below `directory`.
    pub fn explore(
        self,
        stop: Arc<AtomicBool>,
        show_progress: bool,
        directory: &Path,
    ) -> Result<Explored, Error> {
        let Prepared { program, mut options, mut search, mut tally, keep } = self;
        let mut limits = options.limits(stop);
        // From the first start of the program on: what was compiled before does not count.
        let time = options.time.map(|limit| limit.saturating_sub(tally.time));
        limits.deadline = time.and_then(|time| Deadline::after(Instant::now(), time));
        let runtime = embedded::runtime()?;
        limits.scope = options.scope.resolve(&runtime, &program, &limits)?;
        if let Some(revision) = options.changed_since.clone().filter(|_| tally.executions == 0) {
            options.changed = Changed::since(&revision, &runtime, &program, &limits)?;
            search = options.search(&program);
            if show_progress {
                say(changes(&revision, &program, &options.changed));
            }
        }
        let check = Check::new(runtime, &program, &options, limits);

        let kept = access_point_file::path(directory, &program);
        recall_points(&check, &kept, &mut tally)?;
        let points_before = tally.points.len();

        let live = show_progress && std::io::stderr().is_terminal();
        let mut tell = |progress: &Progress<'_>| {
            if live {
                let _ = write!(std::io::stderr(), "\r\x1b[K{}", progress_line(&options, progress));
            }
        };
        let unsaved = |error: &Error| say(format_args!("note: {error}; the check goes on, not saved"));
        let keeper = keep.as_ref().map(|path| Keeper::new(path, &program, &options, unsaved)).transpose()?;
        let result = check.run(search, tally, directory, keeper, &mut tell);
        if live {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
        let outcome = result?;
        if points_before < outcome.tally.points.len() && outcome.ended != Ended::Interrupted {
            keep_points(&check, &kept, &outcome.tally);
        }
        Ok(Explored { program, options, outcome, keep })
    }
}

impl Explored {
    /// Shows and writes everything; the exit code.
    pub fn conclude(
        self,
        place: &Place<'_>,
        json: Option<&Path>,
        quiet: bool,
        color: Color,
    ) -> Result<u8, Error> {
        let Explored { program, options, outcome, keep } = &self;
        let written = self.write_schedules(place);
        if !quiet {
            // First of all, so that what was found is not lost when something cannot be written.
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
        let saved = if stopped || keep.is_some() { Some(self.save(place)?) } else { None };
        if let Some(path) = saved.filter(|_| stopped) {
            say(interrupted(place.command, &path));
            return Ok(exit::INTERRUPTED);
        }
        for line in options.suppressions.others(|line| outcome.tally.races.has_used(line)) {
            say(format_args!("note: {line}: fits no race of this check"));
        }
        Ok(match found {
            true => exit::FOUND,
            false if options.strict && outcome.has_caveats() => exit::CAVEAT,
            false => exit::CLEAN,
        })
    }

    /// Writes what the search has covered.
    fn write_coverage(&self, path: Option<&Path>) -> Result<(), Error> {
        let record = Record::new(&self.program, &self.options, &self.outcome);
        match (path, record) {
            (Some(path), Some(record)) => record.write(path),
            _ => Ok(()),
        }
    }

    /// Saves the search; the file.
    pub fn save(&self, place: &Place<'_>) -> Result<PathBuf, Error> {
        let Explored { program, options, outcome, keep } = self;
        let path = keep.clone().unwrap_or_else(|| place.directory.join("search.json"));
        create_directory(&beside(&path))?;
        let world = stdin::keep(&options.world, program, &beside(&path))?;
        let options = Options { world, ..options.clone() };
        Saved::new(program, keep.is_some(), &options, &outcome.tally, &outcome.search).write(&path)?;
        Ok(path)
    }

    /// A file for each finding, in their order.
    pub fn write_schedules(&self, place: &Place<'_>) -> Result<Vec<PathBuf>, Error> {
        let Place { directory, name, origin, .. } = place;
        let mut paths = Vec::new();
        if self.outcome.findings().next().is_some() {
            create_directory(directory)?;
            stdin::keep(&self.options.world, &self.program, directory)?;
        }
        for finding in self.outcome.findings() {
            let path = directory.join(format!("{name}-{}.schedule", &finding.signature[..8]));
            if let (Some(input), Some((name, _))) = (&finding.input, &finding.schedule.input) {
                write_whole(&directory.join(name), input)?;
            }
            let text = finding.schedule.to_text() + *origin;
            write_whole(&path, text.as_bytes())?;
            paths.push(path);
        }
        Ok(paths)
    }
}

/// Which code the search begins with.
fn changes(revision: &str, program: &Program, changed: &Changed) -> String {
    let names = &changed.functions;
    let shown = names.iter().take(MOST_NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
    let others = match names.len().saturating_sub(MOST_NAMES) {
        0 => String::new(),
        some => format!(" and {some} more"),
    };
    match names.len() {
        0 => format!(
            "note: no code of {} has changed since {revision}, so none comes first",
            program.path.display()
        ),
        _ => format!("note: changed since {revision}, and tried first: {shown}{others}"),
    }
}

/// Starts with the scheduling points that an earlier check has kept. A file that is no use is as good as none.
fn recall_points(check: &Check<'_>, path: &Path, tally: &mut Tally) -> Result<(), Error> {
    let accesses = &check.options.world.accesses;
    if !accesses.check || accesses.all || !tally.points.is_empty() {
        return Ok(());
    }
    match access_point_file::read(path, check.program) {
        Ok(places) if places.is_empty() => {}
        Ok(places) => tally.points = Arc::new(check.points_at(&places)?),
        Err(error) => {
            say(format_args!("note: no scheduling points are taken from an earlier check: {error}"));
        }
    }
    Ok(())
}

/// Keeps them for the next. If that fails, nothing is lost but time.
fn keep_points(check: &Check<'_>, path: &Path, tally: &Tally) {
    let kept = check
        .places_of(&tally.points)
        .and_then(|places| access_point_file::write(path, check.program, places));
    if let Err(error) = kept {
        say(format_args!("note: the scheduling points are not kept for the next check: {error}"));
    }
}

fn prepare(args: &CheckArgs, stop: &AtomicBool) -> Result<Prepared, Error> {
    if let Some(path) = &args.resume {
        let (Saved { mut options, search, tally, regularly, .. }, program) = Saved::read(path)?;
        stdin::fetch(&mut options.world, path)?;
        options.hints = args.hints;
        options.strict = args.search.strict;
        options.jobs = jobs(&args.search);
        options.memory = args.search.memory.unwrap_or(options.memory);
        // Limits that it was stopped by do not stop it again.
        let time = options.time.filter(|&most| tally.time < most);
        options.time = args.search.time.map(|more| more.saturating_add(tally.time)).or(time);
        let executions = options.executions.filter(|&most| tally.executions < most);
        options.executions =
            args.search.executions.map(|more| more.saturating_add(tally.executions)).or(executions);
        let keep = args.save.clone().or_else(|| regularly.then(|| path.clone()));
        return Ok(Prepared { program, options, search, tally, keep });
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
    Ok(Prepared { keep: args.save.clone(), ..Prepared::new(program, options) })
}

/// The program that a command line means: a source file, which is compiled, or a command. `usage` is how the line begins, and `what` is
/// done with the program.
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

/// Refuses, before a search that may take long, places where its results cannot be written.
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

fn create_directory(directory: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(directory).map_err(|e| Error::Input(format!("{}: {e}", directory.display())))
}

/// How to go on with a search that was saved.
pub fn interrupted(command: &str, path: &Path) -> String {
    format!("interrupted; continue with: {command} check --resume {}", quoted(path))
}

/// How this very executable was called, so that a command shown can be typed.
fn own_name() -> String {
    let name = std::env::args_os().next().unwrap_or_default();
    quoted(Path::new(&name))
}
