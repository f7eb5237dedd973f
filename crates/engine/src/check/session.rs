//! Offers a check to its caller: begin or resume it, run it, save it and write its files.
//!
//! A session resolves everything that the search needs: its scope, changed code, and the access points that
//! an earlier check stored. Commands only parse, call a session, and render its [`Notice`]s and its
//! [`Finished`] check.

use crate::check::access_point_file;
use crate::check::case::Case;
use crate::check::changed::Changed;
use crate::check::coverage::{Coverage, Record};
use crate::check::notice::{Notice, Notify};
use crate::check::options::Options;
use crate::check::outcome::{Ended, Outcome, Tally};
use crate::check::saved::{Autosave, Saved};
use crate::error::{Error, Result};
use crate::platform::atomic_file::{self, directory_of};
use crate::process::deadline::Deadline;
use crate::process::stdin;
use crate::program::{Program, embedded};
use heisen_search::Search;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// A program with a search that is ready to run, new or saved.
#[derive(Debug)]
pub struct Session {
    program: Program,
    options: Options,
    search: Search,
    tally: Tally,
    /// Whether it goes on with a saved search.
    resumed: bool,
    /// Where the search is saved while it runs.
    save_file: Option<PathBuf>,
}

/// The settings that may differ when a saved search is resumed. All others stay as they were.
#[derive(Clone, Debug)]
pub struct Resumption {
    /// Whether to show hints.
    pub hints: bool,
    /// Whether a verdict with a caveat has its own exit status.
    pub strict: bool,
    /// The number of workers.
    pub jobs: usize,
    /// Memory of the search; `None` for the same as before.
    pub memory: Option<usize>,
    /// More time from now on.
    pub time: Option<Duration>,
    /// More executions from now on.
    pub executions: Option<u64>,
}

impl Session {
    /// A new search.
    pub fn new(program: Program, options: Options) -> Session {
        let search = options.search(&program);
        Session { program, options, search, tally: Tally::default(), resumed: false, save_file: None }
    }

    /// Reads a search that was saved to a file. If it was saved while it ran, it goes on being saved to that
    /// file.
    pub fn resume(path: &Path, change: &Resumption) -> Result<Session> {
        let (Saved { mut options, search, tally, regularly, .. }, program) = Saved::read(path)?;
        stdin::fetch(&mut options.world, path)?;
        options.hints = change.hints;
        options.strict = change.strict;
        options.jobs = change.jobs;
        options.memory = change.memory.unwrap_or(options.memory);
        // A limit that ended the search before does not end it again.
        let time = options.time.filter(|&most| tally.time < most);
        options.time = change.time.map(|more| more.saturating_add(tally.time)).or(time);
        let executions = options.executions.filter(|&most| tally.executions < most);
        options.executions =
            change.executions.map(|more| more.saturating_add(tally.executions)).or(executions);
        let save_file = regularly.then(|| path.to_owned());
        Ok(Session { program, options, search, tally, resumed: true, save_file })
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Saves the search to this file while it runs, and at its end.
    pub fn save_to(&mut self, path: PathBuf) {
        self.save_file = Some(path);
    }

    /// Counts coverage, from the first execution on. `path` is the file that the user named for it.
    pub fn record_coverage(&mut self, path: &Path) -> Result<()> {
        if self.resumed && self.tally.coverage.is_none() {
            return Err(Error::Input(format!(
                "--coverage {}: the search was begun without it, so what it has covered is not known; start the check \
                 again",
                path.display()
            )));
        }
        self.tally.coverage.get_or_insert_with(Coverage::default);
        Ok(())
    }

    /// Runs the search to its end. `directory` holds the files that outlive a check.
    pub fn run(self, stop: Arc<AtomicBool>, directory: &Path, notify: &mut Notify<'_>) -> Result<Finished> {
        let Session { program, mut options, mut search, mut tally, save_file, .. } = self;
        let mut config = options.run_config(stop);
        // The time counts from the first start of the program: a compiler may have run before.
        let time = options.time.map(|limit| limit.saturating_sub(tally.time));
        config.deadline = time.and_then(|time| Deadline::after(Instant::now(), time));
        let runtime = embedded::runtime()?;
        config.scope = options.scope.resolve(&runtime, &program, &config)?;
        if let Some(revision) = options.changed_since.clone().filter(|_| tally.executions == 0) {
            options.changed = Changed::since(&revision, &runtime, &program, &config)?;
            search = options.search(&program);
            let changed = &options.changed;
            notify(Notice::ChangedCode { revision: &revision, program: &program.path, changed });
        }
        let case = Case::new(runtime, &program, &options, config);

        let points_file = access_point_file::path(directory, &program);
        read_access_points(&case, &points_file, &mut tally, notify)?;
        let points_before = tally.points.len();

        let autosave = save_file.as_ref().map(|path| Autosave::new(path, &program, &options)).transpose()?;
        let outcome = super::run(&case, search, tally, directory, autosave, notify)?;
        if points_before < outcome.tally.points.len() && outcome.ended != Ended::Interrupted {
            store_access_points(&case, &points_file, &outcome.tally, notify);
        }
        Ok(Finished { program, options, outcome, save_file })
    }
}

/// Starts with the access points that an earlier check stored. A file that cannot be used counts as missing.
fn read_access_points(
    case: &Case<'_>,
    path: &Path,
    tally: &mut Tally,
    notify: &mut Notify<'_>,
) -> Result<()> {
    let accesses = &case.options.world.accesses;
    if !accesses.check || accesses.all || !tally.points.is_empty() {
        return Ok(());
    }
    match access_point_file::read(path, case.program) {
        Ok(places) if places.is_empty() => {}
        Ok(places) => tally.points = Arc::new(case.points_at(&places)?),
        Err(error) => notify(Notice::AccessPointsNotRead(&error)),
    }
    Ok(())
}

/// Stores the access points for the next check. If that fails, the next check only takes longer.
fn store_access_points(case: &Case<'_>, path: &Path, tally: &Tally, notify: &mut Notify<'_>) {
    let stored =
        case.places_of(&tally.points).and_then(|places| access_point_file::write(path, case.program, places));
    if let Err(error) = stored {
        notify(Notice::AccessPointsNotStored(&error));
    }
}

/// A check that has ended.
#[derive(Debug)]
pub struct Finished {
    /// The program.
    pub program: Program,
    /// The settings.
    pub options: Options,
    /// The results.
    pub outcome: Outcome,
    save_file: Option<PathBuf>,
}

impl Finished {
    /// Whether the search was saved while it ran.
    pub fn was_saved(&self) -> bool {
        self.save_file.is_some()
    }

    /// Writes the coverage of the search, if it was counted.
    pub fn write_coverage(&self, path: &Path) -> Result<()> {
        match Record::new(&self.program, &self.options, &self.outcome) {
            Some(record) => record.write(path),
            None => Ok(()),
        }
    }

    /// Saves the search, to its own file or else to one in `directory`. Returns the path.
    pub fn save(&self, directory: &Path) -> Result<PathBuf> {
        let Finished { program, options, outcome, save_file } = self;
        let path = save_file.clone().unwrap_or_else(|| directory.join("search.json"));
        create_directory(&directory_of(&path))?;
        let world = stdin::write_beside(&options.world, program, &directory_of(&path))?;
        let options = Options { world, ..options.clone() };
        let regularly = save_file.is_some();
        Saved::new(program, regularly, &options, &outcome.tally, &outcome.search).write(&path)?;
        Ok(path)
    }

    /// Writes a schedule file for each finding into `directory`. Returns the paths, in the order of the
    /// findings. Their names begin with `name`; `comment` is the last line of each.
    pub fn write_schedules(&self, directory: &Path, name: &str, comment: &str) -> Result<Vec<PathBuf>> {
        let mut paths = Vec::new();
        if self.outcome.findings().next().is_some() {
            create_directory(directory)?;
            stdin::write_beside(&self.options.world, &self.program, directory)?;
        }
        for finding in self.outcome.findings() {
            let path = directory.join(format!("{name}-{}.schedule", &finding.signature[..8]));
            if let (Some(input), Some((name, _))) = (&finding.input, &finding.schedule.input) {
                atomic_file::write(&directory.join(name), input)?;
            }
            let text = finding.schedule.to_text() + comment;
            atomic_file::write(&path, text.as_bytes())?;
            paths.push(path);
        }
        Ok(paths)
    }
}

fn create_directory(directory: &Path) -> Result<()> {
    std::fs::create_dir_all(directory).map_err(|e| Error::Input(format!("{}: {e}", directory.display())))
}
