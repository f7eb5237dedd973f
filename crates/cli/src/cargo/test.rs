//! `cargo heisen test`: explores the schedules of each test.

use super::args::TestArgs;
use super::build::{self, BuildRequest, Executable, Mode};
use super::result::{Tested, Verdict};
use super::selection::{self, Selection, Test, Wanted};
use super::workspace::Workspace;
use super::{Failure, junit, line};
use crate::cli::args::Format;
use crate::cli::exit;
use crate::cli::search_options;
use crate::commands::check;
use crate::render::paint::{self, Paint, count, print, say};
use crate::render::place::from_here;
use crate::render::result_file::{check_files, is_stdout, write};
use crate::render::{json, sarif};
use heisen_engine::Error;
use heisen_engine::check::session::Session;
use heisen_engine::check::{Ended, Options};
use heisen_engine::program::Program;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

pub fn run(args: &TestArgs, stop: &Arc<AtomicBool>) -> Result<u8, Failure> {
    // Report mistakes of the command line before the build, which may take long.
    let selection = Selection::new(args)?;
    let workspace = Workspace::find(&args.cargo)?;
    let directory = args.output.output.clone().unwrap_or_else(|| workspace.schedules());
    check::check_places(&directory)?;
    check_files(&args.output.results.files(), true)?;
    let options = search_options::options(&args.search, &[], stop)?;
    let words = build::words(args.build.for_search(&args.search).words(), &args.targets);
    let order = BuildRequest {
        mode: Mode::Tests,
        words: &words,
        cargo: &args.cargo,
        quiet: args.output.quiet,
        color: args.output.color,
    };
    let executables = build::build(&workspace, &order)?;
    let run = TestRun {
        args,
        options,
        directory: &directory,
        origin: super::program::origin(Mode::Tests, &words),
        paint: Paint::new(args.output.color),
        stop,
    };
    run.run(&selection, &executables)
}

/// One run over all tests.
struct TestRun<'a> {
    args: &'a TestArgs,
    options: Options,
    /// The directory for schedule files.
    directory: &'a Path,
    /// How the executables were built, as a comment for schedule files.
    origin: String,
    paint: Paint,
    stop: &'a Arc<AtomicBool>,
}

impl TestRun<'_> {
    fn run(&self, selection: &Selection, executables: &[Executable]) -> Result<u8, Failure> {
        let began = Instant::now();
        let mut all = Vec::new();
        let (mut filtered, mut left) = (0, 0);
        for executable in executables {
            let listed = match selection::list(executable) {
                Ok(listed) => listed,
                Err(error) => {
                    let tested =
                        self.tested(executable, &executable.name, Duration::ZERO, Verdict::Error(error));
                    self.show(&tested);
                    all.push(tested);
                    continue;
                }
            };
            let wanted = listed.iter().map(|test| (test, selection.wants(executable, test)));
            let (no, wanted): (Vec<_>, Vec<_>) = wanted.partition(|(_, wanted)| *wanted == Wanted::No);
            filtered += no.len();
            let shown = !self.args.output.quiet && !self.stop.load(Relaxed);
            if shown && !wanted.is_empty() {
                let tests = count(wanted.len() as u64, "test");
                let source = executable.source.display();
                self.print(&format!("\nrunning {tests} of {} ({source})\n", executable.id()));
            }
            for (test, wanted) in wanted {
                if self.stop.load(Relaxed) {
                    left += 1;
                    continue;
                }
                let tested = self.test(executable, test, wanted);
                self.show(&tested);
                all.push(tested);
            }
        }
        self.conclude(&all, filtered, left, began.elapsed())
    }

    /// Prints text for people. It goes to standard error if a result goes to standard output.
    fn print(&self, text: &str) {
        print(text, self.args.output.results.on_stdout());
    }

    fn tested(&self, executable: &Executable, name: &str, time: Duration, verdict: Verdict) -> Tested {
        let (package, binary) = (executable.package.clone(), executable.id());
        Tested { package, binary, name: name.to_owned(), time, verdict }
    }

    fn test(&self, executable: &Executable, test: &Test, wanted: Wanted) -> Tested {
        let began = Instant::now();
        let verdict = match wanted {
            Wanted::Yes => self.explore(executable, test).unwrap_or_else(Verdict::Error),
            Wanted::Ignored | Wanted::No => Verdict::Ignored,
        };
        self.tested(executable, &test.name, began.elapsed(), verdict)
    }

    fn explore(&self, executable: &Executable, test: &Test) -> Result<Verdict, Error> {
        let arguments = selection::arguments(executable, test, &self.args.for_tests);
        let mut program = Program::find(executable.path.as_os_str(), arguments)?;
        program.at_ready = self.args.search.at_ready;
        // The test was listed, so the program cannot end without running a test.
        program.test_program = false;
        program.directory = Some(executable.directory.clone());
        program.environment = executable.environment.clone();
        super::program::check_build(&program, &self.options)?;
        let options = search_options::options_for(&program, &self.args.search, self.options.clone());
        let session = Session::new(program, options);
        let finished = check::explore(session, self.stop.clone(), self.args.output.quiet, self.directory)?;
        let name = file_name(&executable.id(), &test.name);
        let schedules = finished.write_schedules(self.directory, &name, &self.origin)?;
        if let Some(error) = &finished.outcome.error
            && schedules.is_empty()
        {
            return Err(error.clone());
        }
        if finished.outcome.ended == Ended::Interrupted && schedules.is_empty() {
            let path = finished.save(self.directory)?;
            return Ok(Verdict::Interrupted(path));
        }
        Ok(Verdict::Explored(Box::new(finished), schedules))
    }

    fn show(&self, tested: &Tested) {
        let passed = matches!(tested.verdict, Verdict::Ignored | Verdict::Explored(..)) && !tested.failed();
        if !passed || !self.args.output.quiet {
            self.print(&format!("{}\n", line::line(self.paint, tested)));
        }
        if self.args.output.results.json.as_deref().is_some_and(is_stdout) {
            paint::write(&format!("{}\n", tested.json()), false);
        }
    }

    fn conclude(&self, all: &[Tested], filtered: usize, left: usize, time: Duration) -> Result<u8, Failure> {
        let results = &self.args.output.results;
        match results.format {
            Format::Text => self.print(&line::failures(self.paint, all)),
            Format::Github => paint::write(&line::annotations(all), results.on_stdout()),
        }
        self.print(&line::summary(self.paint, all, filtered, left, time));
        if all.is_empty() && left == 0 {
            say(match filtered {
                0 => "there are no tests".to_owned(),
                _ => format!("no test matches; {} filtered out", count(filtered as u64, "test")),
            });
        }
        if let Some(path) = &results.junit {
            write(&junit::document(all), path)?;
        }
        if let Some(path) = &results.sarif {
            let runs: Vec<Value> = all.iter().filter_map(Tested::sarif).collect();
            json::write(&sarif::document(&runs), path)?;
        }
        if let Some(path) = results.json.as_deref().filter(|path| !is_stdout(path)) {
            let lines: String = all.iter().map(|tested| format!("{}\n", tested.json())).collect();
            write(&lines, path)?;
        }
        if self.stop.load(Relaxed) {
            say(match all.last().map(|tested| &tested.verdict) {
                Some(Verdict::Interrupted(path)) => check::interrupted(line::COMMAND, &from_here(path)),
                _ => "interrupted".to_owned(),
            });
            return Ok(exit::INTERRUPTED);
        }
        if all.iter().any(Tested::failed) {
            return Ok(exit::FOUND);
        }
        let error = all.iter().find_map(|tested| match &tested.verdict {
            Verdict::Error(error) => Some(error),
            _ => None,
        });
        let caveat = self.options.strict && all.iter().any(Tested::has_caveats);
        Ok(error.map_or(if caveat { exit::CAVEAT } else { exit::CLEAN }, exit::of))
    }
}

/// The prefix of the names of files about a test. Two tests may have the same prefix; the end of a file name
/// makes it unique.
fn file_name(binary: &str, test: &str) -> String {
    const LONGEST: usize = 150;
    let plain = |c: char| if c.is_ascii_alphanumeric() || "_-.".contains(c) { c } else { '_' };
    let name = format!("{binary}-{test}").replace("::", ".");
    name.chars().map(plain).take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files() {
        assert_eq!(file_name("queue::net", "tests::push_pop"), "queue.net-tests.push_pop");
        assert_eq!(file_name("queue::bin/tool", "a b"), "queue.bin_tool-a_b");
        assert_eq!(file_name("queue", &"x".repeat(400)).len(), 150);
    }
}
