//! Compares the search with native runs of random programs. Depth-first search must find every outcome that
//! native runs under a jittered scheduler show. Dynamic partial-order reduction must find the same outcomes
//! as depth-first search.
//!
//! A failure prints the seed and the program. `SEEDS=from..to` selects other seeds in the long test.

mod generate;

use generate::Program;
use heisen_testkit::{heisen, run, scratch, usual_or_nightly};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The number of programs in one file.
const BATCH: u64 = 25;
/// The largest number of executions of one search. A program that needs more is not compared.
const EXECUTIONS: &str = "3000";

/// The result of one search: whether it was complete, and the outcomes of its executions.
struct Searched {
    complete: bool,
    outcomes: BTreeSet<String>,
}

/// A file of programs, compiled natively and with instrumentation.
struct Batch {
    directory: tempfile::TempDir,
    programs: Vec<Program>,
}

impl Batch {
    fn new(programs: Vec<Program>) -> Batch {
        let directory = scratch();
        let path = directory.path();
        std::fs::write(path.join("batch.c"), generate::file(&programs)).expect("the programs are written");
        let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/native");
        let flags = ["-g", "-O1", "-w", "-pthread", "batch.c"];
        let include = format!("-I{}", include.display());
        run(Command::new("cc").current_dir(path).args(flags).args([&include, "-o", "native"])).expect(0);
        run(heisen(path).arg("cc").args(flags).args([&include, "-o", "checked"])).expect(0);
        Batch { directory, programs }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The outcomes of `runs` native runs.
    fn natively(&self, index: usize, runs: u32) -> BTreeSet<String> {
        let seed = self.programs[index].seed.wrapping_mul(1_000_003).to_string();
        let mut command = Command::new(self.file("native"));
        let ran = run(command.args([&index.to_string(), &runs.to_string(), &seed])).expect(0);
        ran.out.lines().map(str::to_owned).collect()
    }

    /// The outcomes of a search. Each execution has its own process (`--fork`), so all of them can append to
    /// one file.
    fn searched(&self, index: usize, strategy: &str) -> Searched {
        let file = self.file(&format!("outcomes-{index}-{strategy}"));
        let mut command = heisen(self.directory.path());
        command.env("OUTCOMES", &file);
        command.args(["check", "--fork", "--jobs", "1", "--keep-going", "--quiet", "--json", "-"]);
        command.args(["--strategy", strategy, "--executions", EXECUTIONS, "--", "./checked"]);
        let json = run(command.arg(index.to_string())).json();
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        // The last line of an execution is its outcome. An execution that deadlocked may have no line.
        let executions = text.split("begin\n").filter_map(|told| told.lines().last());
        let mut outcomes: BTreeSet<String> = executions.map(str::to_owned).collect();
        let findings = json["findings"].as_array().expect("a list");
        outcomes.extend(findings.iter().filter(|f| f["kind"] == "deadlock").map(|_| "deadlock".to_owned()));
        Searched { complete: json["complete"] == true, outcomes }
    }

    /// Compares the searches of a program with its native runs and with each other; an error describes the
    /// difference. Returns `None` if the search was too long.
    fn compare(&self, index: usize, runs: u32) -> Option<Result<(), String>> {
        let all = self.searched(index, "dfs");
        if !all.complete {
            return None;
        }
        let natively = self.natively(index, runs);
        let missed: Vec<&String> = natively.difference(&all.outcomes).collect();
        let reduced = self.searched(index, "dpor");
        let equal = !reduced.complete || reduced.outcomes == all.outcomes;
        if missed.is_empty() && equal {
            return Some(Ok(()));
        }
        let Program { seed, text, .. } = &self.programs[index];
        Some(Err(format!(
            "seed {seed}\n{text}\nnatively, but not in any schedule: {missed:?}\nall schedules: {:?}\ndpor: {:?}\n",
            all.outcomes, reduced.outcomes
        )))
    }
}

/// Compares the programs of these seeds, on two threads.
fn compare(seeds: std::ops::Range<u64>, runs: u32) {
    let starts: Vec<u64> = seeds.clone().step_by(BATCH as usize).collect();
    let (next, compared) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(&start) = starts.get(next.fetch_add(1, Relaxed)) {
                    let end = (start + BATCH).min(seeds.end);
                    let batch = Batch::new((start..end).map(generate::program).collect());
                    for index in 0..batch.programs.len() {
                        let Some(result) = batch.compare(index, runs) else { continue };
                        compared.fetch_add(1, Relaxed);
                        if let Err(how) = result {
                            eprintln!("{how}");
                            wrong.lock().expect("nobody panics").push(batch.programs[index].seed);
                        }
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().expect("nobody panics");
    assert!(wrong.is_empty(), "of the programs of seeds {seeds:?}, these differ: {wrong:?}; see above");
    let count = seeds.end - seeds.start;
    let compared = compared.into_inner() as u64;
    assert!(compared * 10 > count * 9, "only {compared} of {count} programs could be compared");
}

#[test]
fn outcomes_of_native_runs_are_found() {
    compare(0..usual_or_nightly(25, 200), usual_or_nightly(10, 20));
}

#[test]
#[ignore = "takes most of an hour"]
fn outcomes_of_native_runs_of_many_programs_are_found() {
    let seeds = std::env::var("SEEDS").unwrap_or("1000..6000".into());
    let ends = seeds.split_once("..").and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
    let (from, to) = ends.expect("SEEDS=from..to");
    compare(from..to, 100);
}
