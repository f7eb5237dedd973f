//! `heisen check`.

use crate::args::{CheckArgs, Color, SearchArgs};
use crate::paint::{Paint, count, number, print, say};
use crate::report::Screen;
use crate::{args, exit, json};
use heisen_engine::changed::Changed;
use heisen_engine::check::{Check, Ended, Kind, Options, Outcome, Progress, Races, Tally};
use heisen_engine::compile::{self, Extent, Language};
use heisen_engine::coverage::{Coverage, Record};
use heisen_engine::program::Program;
use heisen_engine::saved::{Keeper, Saved, beside, write_whole};
use heisen_engine::scope::Patterns;
use heisen_engine::suppress::Suppressions;
use heisen_engine::{Error, kept, patch, stdin, unpack};
use heisen_search::{Guarantee, Remaining, Search, Unseen};
use heisen_trace::{Accesses, Family, Stdin, World};
use std::fmt::Write as _;
use std::io::{IsTerminal, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// Executions of a sampling search without any other limit.
const SAMPLES: u64 = 10_000;
/// Preemptions of icb, unless told otherwise.
const BOUND: u32 = 2;
/// Depth of the bugs that pct looks for, unless told otherwise.
const DEPTH: u32 = 3;
/// Delays of an execution of delay, unless told otherwise.
const DELAYS: u32 = 3;
/// Changed functions that are named.
const MOST_NAMES: usize = 5;
/// Memory of the search, unless told otherwise.
const MEMORY: usize = 1 << 30;

pub fn run(args: &CheckArgs, stop: Arc<AtomicBool>) -> Result<u8, Error> {
    check_places(&args.output, args.json.as_deref())?;
    args.search.fit_together()?;
    if let Some(path) = &args.save {
        check_file("--save", path)?;
        if args.json.as_ref() == Some(path) {
            return Err(Error::Input("--save and --json name the same file; choose another for one".into()));
        }
    }
    if let Some(path) = &args.coverage {
        check_file("--coverage", path)?;
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
        let runtime = unpack::runtime()?;
        limits.scope = options.scope.resolve(&runtime, &program, &limits)?;
        if let Some(revision) = options.changed_since.clone().filter(|_| tally.executions == 0) {
            options.changed = Changed::since(&revision, &runtime, &program, &limits)?;
            search = options.search(&program);
            if show_progress {
                say(changes(&revision, &program, &options.changed));
            }
        }
        let check = Check { runtime, program: &program, options: &options, limits };

        let kept = kept::path(directory, &program);
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
        if points_before < outcome.tally.points.len() {
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
        Ok(if found { exit::FOUND } else { exit::CLEAN })
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
            let text = finding.schedule.to_text() + origin;
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
    match kept::read(path, check.program) {
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
    let kept = check.places_of(&tally.points).and_then(|places| kept::write(path, check.program, places));
    if let Err(error) = kept {
        say(format_args!("note: the scheduling points are not kept for the next check: {error}"));
    }
}

fn prepare(args: &CheckArgs, stop: &AtomicBool) -> Result<Prepared, Error> {
    if let Some(path) = &args.resume {
        let (Saved { mut options, search, tally, regularly, .. }, program) = Saved::read(path)?;
        stdin::fetch(&mut options.world, path)?;
        options.hints = args.hints;
        options.jobs = jobs(&args.search);
        options.memory = args.search.memory.unwrap_or(options.memory);
        options.time = args.search.time.map(|more| more.saturating_add(tally.time)).or(options.time);
        options.executions =
            args.search.executions.map(|more| more.saturating_add(tally.executions)).or(options.executions);
        let keep = args.save.clone().or_else(|| regularly.then(|| path.clone()));
        return Ok(Prepared { program, options, search, tally, keep });
    }
    let mut program = find_program(args)?;
    program.at_ready = args.search.at_ready;
    let options = Options { hints: args.hints, ..options(&args.search, stop)? };
    Ok(Prepared { keep: args.save.clone(), ..Prepared::new(program, options) })
}

fn jobs(args: &SearchArgs) -> usize {
    args.jobs.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from)
}

/// What the engine is to do.
pub fn options(args: &SearchArgs, stop: &AtomicBool) -> Result<Options, Error> {
    args.fit_together()?;
    let strategy = args.kind();
    if matches!(strategy, Kind::Dpor | Kind::Bpor) {
        fits_dpor(args)?;
    }
    let unlimited = strategy.samples() && args.time.is_none();
    Ok(Options {
        strategy,
        bound: args.bound.unwrap_or(if strategy == Kind::Best { u32::MAX } else { BOUND }),
        changed_since: args.changed_since.clone(),
        changed: Changed::default(),
        depth: args.depth.unwrap_or(DEPTH),
        burst: args.burst,
        delays: args.delays.unwrap_or(DELAYS),
        seed: args.seed,
        executions: args.executions.or_else(|| unlimited.then_some(SAMPLES)),
        time: args.time,
        steps: args.steps,
        hang: args.hang,
        keep_going: args.keep_going,
        expect_exit: args.expect_exit,
        scope: Patterns { no_preempt: args.no_preempt.clone(), focus: args.focus.clone() },
        jobs: jobs(args),
        memory: args.memory.unwrap_or(MEMORY),
        carrier: args.carrier.into(),
        in_process: !args.fork,
        reduce: args.reduce.map(|reduce| reduce == args::Switch::On),
        symmetry: args.symmetry,
        spurious: args.spurious,
        faults: args.faults,
        world: world(args, stop)?,
        warm_up: args.warm_up,
        races: match args.races {
            None => Races::Quiet,
            Some(args::Races::Report) => Races::Report,
            Some(args::Races::Stop) => Races::Stop,
            Some(args::Races::Off) => Races::Off,
        },
        suppressions: args.suppressions.as_deref().map(Suppressions::read).transpose()?.unwrap_or_default(),
        hints: false,
    })
}

/// Refuses what dynamic partial order reduction cannot go with: it stands on every point being a choice, and on executions of the
/// same steps being the same.
fn fits_dpor(args: &SearchArgs) -> Result<(), Error> {
    let refused = [
        (!args.no_preempt.is_empty(), "--no-preempt", "it needs all choices; --strategy icb does not"),
        (!args.focus.is_empty(), "--focus", "it needs all choices; --strategy icb does not"),
        (args.real_time, "--real-time", "real time is not the same twice"),
    ];
    match refused.iter().find(|(given, ..)| *given) {
        Some((_, option, why)) => {
            Err(Error::Input(format!("--strategy dpor does not go with {option}: {why}")))
        }
        None => Ok(()),
    }
}

/// What surrounds the executions.
fn world(args: &SearchArgs, stop: &AtomicBool) -> Result<World, Error> {
    let absolute = |dir: &PathBuf| {
        std::path::absolute(dir).map_err(|e| Error::Input(format!("--dir {}: {e}", dir.display())))
    };
    let dir = args.dir.as_ref().map(absolute).transpose()?;
    // What called an atomic instruction in a library of a language can be found out only where there are frame pointers.
    let scoped = !args.focus.is_empty() || !args.no_preempt.is_empty();
    let patched = match &args.patch {
        Some(modules) => modules,
        None if scoped => patch::INSTRUMENTED,
        None => patch::DEFAULT,
    };
    Ok(World {
        seed: args.seed,
        cpus: args.cpus,
        real_time: args.real_time,
        timeouts: args.timeouts,
        before: args.before.clone(),
        after: args.after.clone(),
        dir: dir.map(|dir| dir.into_os_string().into_vec()),
        stdin: args.stdin.as_deref().map(|path| read_stdin(path, stop)).transpose()?,
        heap: args.heap.map(|heap| heap == args::Switch::On),
        leaks: args.leaks,
        accesses: Accesses {
            check: args.races != Some(args::Races::Off),
            all: args.accesses == args::Accesses::All,
            points: Vec::new(),
        },
        patch: patch::parse(patched).map_err(|why| Error::Input(format!("--patch {patched:?}: {why}")))?,
    })
}

/// Reads what is to be the standard input, which may have to be waited for; aside, so that Ctrl-C ends that.
fn read_stdin(path: &Path, stop: &AtomicBool) -> Result<Stdin, Error> {
    let (send, receive) = mpsc::channel();
    let path = path.to_owned();
    std::thread::spawn(move || send.send(stdin::read(&path)));
    loop {
        match receive.recv_timeout(Duration::from_millis(50)) {
            Ok(read) => return read,
            Err(mpsc::RecvTimeoutError::Timeout) if !stop.load(Relaxed) => {}
            Err(_) => return Err(Error::Interrupted),
        }
    }
}

fn find_program(args: &CheckArgs) -> Result<Program, Error> {
    match (&args.source, args.command.split_first()) {
        (Some(source), _) if Language::of(source).is_some() => {
            let extent = match (args.no_instrument, args.with_std) {
                (true, _) => Extent::AsItIs,
                (false, true) => Extent::WithStd,
                (false, false) => Extent::Program,
            };
            compile::compile(source, args.command.clone(), &args.output, extent)
        }
        (Some(other), _) => {
            let shown = other.display();
            // Without a slash, a program is looked up in PATH.
            let here = if other.components().count() == 1 && other.exists() { "./" } else { "" };
            Err(Error::Input(format!(
                "{shown} is not a .c, .cc, .cpp or .rs file; to check an executable write: heisen check -- {here}{shown} \
                 [ARGS]"
            )))
        }
        (None, Some((program, arguments))) => Program::find(program, arguments.to_vec()),
        (None, None) => Err(Error::Input(
            "nothing to check; write: heisen check -- PROG [ARGS], or heisen check FILE.c".into(),
        )),
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

/// A path as a shell takes it.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:,@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

fn progress_line(options: &Options, progress: &Progress<'_>) -> String {
    let seconds = progress.time.as_secs_f64();
    let rate = (progress.executions as f64 / seconds.max(0.001)) as u64;
    let mut line = String::new();
    if let Some(bound) = progress.status.bound {
        let _ = write!(line, "bound {bound} · ");
    }
    let _ = write!(line, "{} · {}/s · {seconds:.1} s", count(progress.executions, "execution"), number(rate));
    let status = progress.status;
    match options.executions {
        Some(limit) => {
            let left = limit.saturating_sub(progress.executions) as f64 / (rate.max(1) as f64);
            let _ = write!(line, " · of {}, about {left:.0} s left", number(limit));
        }
        None if status.queued + status.deferred > 0 => {
            let _ = match &status.remaining {
                Some(left) => write!(line, " · {}", remaining(left, status.deferred > 0)),
                None => write!(line, " · {} queued", number(status.queued as u64)),
            };
            if status.deferred > 0 {
                let _ = write!(line, ", {} for the next bound", number(status.deferred as u64));
            }
        }
        None => {}
    }
    if progress.findings > 0 {
        let _ = write!(line, " · {}", count(progress.findings as u64, "finding"));
    }
    line
}

/// About how much is left, and what that is worth.
fn remaining(left: &Remaining, of_bound: bool) -> String {
    let of_bound = if of_bound { " of this bound" } else { "" };
    // Rounded up, so that it does not sound better than it is.
    let factor = (left.factor * 10.0).ceil() / 10.0;
    format!("about {} left{of_bound}, within a factor of {factor:.1} of late", number(left.executions))
}

/// The screens of all findings, with the commands that replay those which were written, and the summary.
fn report(paint: Paint, options: &Options, outcome: &Outcome, schedules: &[PathBuf], replay: &str) -> String {
    screens(paint, outcome, schedules, replay) + &summary(paint, options, outcome)
}

/// The screens of all findings.
pub fn screens(paint: Paint, outcome: &Outcome, schedules: &[PathBuf], replay: &str) -> String {
    let mut text = String::new();
    for (index, finding) in outcome.findings().enumerate() {
        let replay = schedules.get(index).map(|path| format!("{replay} {}", quoted(path)));
        let replay = replay.as_deref().unwrap_or_default();
        let screen = Screen { paint, replay, time: Some(outcome.tally.time) };
        text.push_str(&screen.render(finding));
        text.push('\n');
    }
    text
}

/// What the whole check has shown, and what it could not.
fn summary(paint: Paint, options: &Options, outcome: &Outcome) -> String {
    let tally = &outcome.tally;
    let mut out = String::new();
    let findings = outcome.findings().count();
    if findings == 0 {
        let head = if outcome.complete() { paint.good("ok:") } else { paint.strong("nothing found:") };
        let _ = writeln!(out, "{head} {}{}", claim(options, outcome), allowance(options));
    } else if findings > 1 || options.keep_going {
        let _ = writeln!(out, "{} in all", count(findings as u64, "distinct finding"));
    }
    let _ = writeln!(
        out,
        "{}, {}, {:.2} s",
        count(tally.executions, "execution"),
        count(tally.steps, "scheduling point"),
        tally.time.as_secs_f64()
    );
    if outcome.status.unnoted > 0 {
        let _ = writeln!(
            out,
            "the memory for states was full, so --reduce has left out less: {} had no room (--memory)",
            count(outcome.status.unnoted, "state")
        );
    }
    if let Some(estimate) = &outcome.status.unseen
        && findings == 0
    {
        let _ = writeln!(out, "{}", unseen(estimate));
    }
    out.push_str(&about_races(options, outcome));
    out.push_str(&about_hints(options, outcome));
    if !outcome.not_controlled.is_empty() {
        let _ = writeln!(out, "{}", paint.faint("not controlled:"));
    }
    for line in &outcome.not_controlled {
        let _ = writeln!(out, "{}", paint.faint(format!("  {line}")));
    }
    out
}

/// What is to be said of races and accesses besides the findings.
fn about_races(options: &Options, outcome: &Outcome) -> String {
    let races = &outcome.tally.races;
    let mut out = String::new();
    if races.suppressed() > 0 {
        let _ = writeln!(out, "{} suppressed", count(races.suppressed() as u64, "race"));
    }
    if options.races == Races::Quiet && races.any() {
        let what = match races.unlisted() {
            0 => "accesses race".to_owned(),
            1 => "1 pair of accesses races".to_owned(),
            some => format!("{} of accesses race", count(some as u64, "pair")),
        };
        let _ = writeln!(out, "{what} (--races lists them)");
    }
    if outcome.sound {
        let _ = match outcome.tally.points.len() {
            0 => writeln!(out, "no accesses of memory conflict"),
            points => {
                let points = count(points as u64, "place");
                writeln!(out, "all accesses that conflict are scheduling points, at {points} in the code")
            }
        };
    }
    out
}

/// What was predicted and no execution came to.
fn about_hints(options: &Options, outcome: &Outcome) -> String {
    let hints = &outcome.hints;
    if !options.hints && !hints.is_empty() {
        return format!(
            "{} (--hints shows what was predicted and did no harm)\n",
            count(hints.len() as u64, "hint")
        );
    }
    let mut out = String::new();
    for hint in hints {
        let what = match hint.family {
            Family::LockOrder => "no execution came to it",
            _ => "nothing went wrong when it happened",
        };
        let (family, from) = (hint.family.name(), number(hint.execution));
        let _ = writeln!(out, "hint: {family}, predicted from execution {from}; {what}");
        for step in &hint.steps {
            let _ = writeln!(out, "  {step}");
        }
    }
    out
}

/// What besides the choices of threads was allowed to happen.
fn allowance(options: &Options) -> String {
    let mut parts = Vec::new();
    for (most, what) in [(options.spurious, "spurious wake-up"), (options.faults.most, "fault")] {
        if most > 0 {
            parts.push(count(most.into(), what));
        }
    }
    if parts.is_empty() { String::new() } else { format!("; with at most {} a run", parts.join(" and ")) }
}

/// A probability as a person reads it, never rounded up to certainty.
fn probability(p: f64) -> String {
    match p {
        p if p > 0.9999 => "99.99 %".to_owned(),
        p if p >= 0.0001 => format!("{:.2} %", 100.0 * p),
        p => format!("{p:.1e}"),
    }
}

/// What a search that found nothing has earned the right to say.
fn claim(options: &Options, outcome: &Outcome) -> String {
    let status = &outcome.status;
    let executions = number(outcome.tally.executions);
    let within = if outcome.scoped { " within the scope" } else { "" };
    if status.whole && outcome.complete() {
        if let Some(in_vain) = outcome.in_vain() {
            let classes = classes(outcome, in_vain);
            return format!("no bug in any schedule of the threads{classes}");
        }
        return format!("no bug in any schedule{within}; all {executions} executions explored");
    }
    let beyond = if outcome.scoped { ", or one outside the scope" } else { "" };
    match options.strategy {
        Kind::Best if outcome.preemption_bound().is_none() => {
            format!("no bug in {executions} executions, not all schedules explored")
        }
        Kind::Icb | Kind::Best => match (outcome.preemption_bound(), outcome.complete()) {
            (Some(bound), true) => format!(
                "no bug with at most {}, all {executions} executions explored; a remaining bug needs at least {}{beyond}",
                count(bound.into(), "preemption"),
                bound + 1
            ),
            (Some(bound), false) => format!(
                "no bug with at most {}; more were only partly explored ({executions} executions); a remaining bug \
                 needs at least {}{beyond}",
                count(bound.into(), "preemption"),
                bound + 1
            ),
            (None, _) if status.has_gaps() => {
                format!("no bug in {executions} executions, but some could not be followed to their end")
            }
            (None, _) => format!("no bug in {executions} executions; not even bound 0 was explored fully"),
        },
        Kind::Dfs => format!("no bug in {executions} executions, not all schedules explored"),
        Kind::Bpor if outcome.complete() => {
            let bound = options.bound;
            let classes = classes(outcome, outcome.in_vain().unwrap_or_default());
            let preemptions = count(bound.into(), "preemption");
            format!(
                "no bug with at most {preemptions}{classes}; a remaining bug needs at least {}",
                bound + 1
            )
        }
        Kind::Dpor | Kind::Bpor => {
            format!("no bug in {executions} executions, not all happens-before classes explored")
        }
        Kind::Random => format!("no bug in {executions} random executions (seed {})", options.seed),
        kind => {
            let earned = status.guarantee.as_ref().map(|g| guarantee(kind, g, within)).unwrap_or_default();
            format!("no bug in {executions} executions of {} (seed {}){earned}", name(kind), options.seed)
        }
    }
}

/// That every class was explored, how many there are, and in how many executions.
fn classes(outcome: &Outcome, in_vain: u64) -> String {
    let classes = outcome.tally.classes.len() as u64;
    let in_vain = match in_vain {
        0 => String::new(),
        some => format!(" ({} in vain)", number(some)),
    };
    let protected = if outcome.sound { "" } else { ", if what they share is protected" };
    format!(
        "{protected}; every happens-before class explored: {} class{}, {}{in_vain}",
        number(classes),
        if classes == 1 { "" } else { "es" },
        count(outcome.tally.executions, "execution"),
    )
}

/// What executions by priority have earned.
fn guarantee(kind: Kind, g: &Guarantee, within: &str) -> String {
    // Of the portfolio, those of pct alone count.
    let each = if kind == Kind::Pct {
        "each".to_owned()
    } else {
        format!("each of {} by pct", number(g.executions))
    };
    format!(
        "; with {} threads and {} steps, {each} finds a bug{within} of depth {} with probability at least {}, all \
         together {}",
        g.threads,
        g.steps,
        g.depth,
        probability(g.per_execution),
        probability(g.total)
    )
}

/// A strategy as it is named on the command line.
pub fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Icb => "icb",
        Kind::Dfs => "dfs",
        Kind::Best => "best",
        Kind::Dpor | Kind::Bpor => "dpor",
        Kind::Random => "random",
        Kind::Burst => "burst",
        Kind::Pct => "pct",
        Kind::FairPct => "fair-pct",
        Kind::Pos => "pos",
        Kind::Surw => "surw",
        Kind::Delay => "delay",
        Kind::Guided => "guided",
        Kind::Directed => "directed",
        Kind::Portfolio => "portfolio",
    }
}

/// What the executions of a search by chance say of the next.
fn unseen(unseen: &Unseen) -> String {
    let next = match unseen.once {
        0 => format!("less than 1 in {}", number(unseen.executions)),
        _ => format!("about {}", probability(unseen.chance)),
    };
    format!(
        "{} told apart in {}; the chance that the next shows another is {next}",
        count(unseen.kinds, "behaviour"),
        count(unseen.executions, "execution"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use heisen_search::Status;

    fn line(status: &Status) -> String {
        let args = <args::Args as clap::Parser>::parse_from(["heisen", "check", "--", "prog"]);
        let args::Command::Check(args) = args.command else { panic!("another command") };
        let options = options(&args.search, &AtomicBool::new(false)).expect("options");
        let time = Duration::from_secs(2);
        progress_line(&options, &Progress { executions: 3000, time, status, findings: 0 })
    }

    #[test]
    fn the_line_says_what_is_left_only_if_that_is_known() {
        let mut status = Status { bound: Some(1), queued: 40, ..Status::default() };
        assert_eq!(line(&status), "bound 1 · 3 000 executions · 1 500/s · 2.0 s · 40 queued");
        status.deferred = 7;
        status.remaining = Some(Remaining { executions: 12_345, factor: 1.31 });
        assert_eq!(
            line(&status),
            "bound 1 · 3 000 executions · 1 500/s · 2.0 s · about 12 345 left of this bound, within a factor of 1.4 of \
             late, 7 for the next bound"
        );
        (status.bound, status.deferred) = (None, 0);
        let end = " · about 12 345 left, within a factor of 1.4 of late";
        assert!(line(&status).ends_with(end), "{}", line(&status));
    }
}
