//! Compiles a program with several cases, and checks each case natively and under Heisen.

use heisen_testkit::{Ran, compile, compile_once, heisen, run, scratch, usual_or_nightly};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The number of executions with random schedules, and the largest number with at most one preemption.
fn executions() -> (u64, u64) {
    usual_or_nightly((20, 30), (50, 60))
}

/// The searches that a case must pass.
#[derive(Clone, Copy)]
enum Searches {
    /// Random schedules.
    Random,
    /// Schedules with at most one preemption.
    Bounded,
    Both,
}

/// The time in seconds after which `timeout` kills a run. Nothing here takes long unless it hangs.
const LIMIT: &str = "60";

/// The claim for a program with one thread.
const ONE_THREAD: &str = "nothing to explore: only one thread ran";

/// The caveats of a check without two usual ones: uninstrumented programs with threads, and distant
/// time-outs. `verdicts.rs` of the `cli` tests covers those.
pub fn unusual_caveats(json: &Value) -> Vec<&str> {
    let notes = json["not_controlled"].as_array().expect("sentences");
    let usual = |note: &&str| note.starts_with("memory accesses: ") || note.starts_with("time-outs: ");
    notes.iter().filter_map(Value::as_str).filter(|note| !usual(note)).collect()
}

/// A compiled program in its own directory.
pub struct Suite {
    pub directory: tempfile::TempDir,
    program: PathBuf,
    variables: Vec<(&'static str, PathBuf)>,
    /// The expected caveats.
    notes: Vec<&'static str>,
}

/// The directories with programs.
const PLACES: [&str; 2] = ["tests/it/primitives/programs", "tests/it/signals/programs"];

/// The directory of most programs and of their header files.
pub fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(PLACES[0])
}

/// The path of the program with this name.
fn file(name: &str) -> PathBuf {
    let mut files = PLACES.iter().map(|place| Path::new(env!("CARGO_MANIFEST_DIR")).join(place).join(name));
    files.find(|file| file.exists()).expect("the program's text")
}

/// The text of a file, and all its compiler flags.
fn text_and_flags(file: &Path, name: &str, flags: &[&str]) -> (String, Vec<String>) {
    let text = std::fs::read_to_string(file).expect("the program's text");
    let include = (!name.ends_with(".rs")).then(|| format!("-I{}", programs().display()));
    (text, include.into_iter().chain(flags.iter().map(|flag| (*flag).to_owned())).collect())
}

impl Suite {
    /// Compiles a file of `programs/` with extra flags, once for all tests.
    pub fn new(name: &str, flags: &[&str]) -> Suite {
        Suite::from_text_of(&file(name), name, flags)
    }

    /// Compiles the file in a directory that may contain libraries for it.
    pub fn in_directory(directory: tempfile::TempDir, name: &str, flags: &[&str]) -> Suite {
        let (text, flags) = text_and_flags(&file(name), name, flags);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let program = compile(directory.path(), name, &text, &flags);
        Suite { directory, program, variables: Vec::new(), notes: Vec::new() }
    }

    /// Compiles any file under the given name, once for all tests.
    pub fn from_text_of(file: &Path, name: &str, flags: &[&str]) -> Suite {
        let (text, flags) = text_and_flags(file, name, flags);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let program = compile_once(name, &text, &flags);
        Suite { directory: scratch(), program, variables: Vec::new(), notes: Vec::new() }
    }

    /// Sets an environment variable of the program.
    pub fn with(mut self, name: &'static str, value: PathBuf) -> Suite {
        self.variables.push((name, value));
        self
    }

    /// Expects a caveat that begins with this text.
    pub fn with_note(mut self, note: &'static str) -> Suite {
        self.notes.push(note);
        self
    }

    /// The names of all cases.
    pub fn cases(&self) -> Vec<String> {
        let ran = run(&mut Command::new(&self.program)).expect(0);
        ran.out.lines().map(str::to_owned).collect()
    }

    /// Runs one case natively.
    pub fn native(&self, case: &str) -> Ran {
        let mut command = Command::new("timeout");
        command.arg(LIMIT).arg(&self.program).arg(case).current_dir(self.directory.path());
        for (name, value) in &self.variables {
            command.env(name, value);
        }
        run(&mut command)
    }

    /// A `heisen` command that `timeout` kills if it hangs.
    fn command(&self) -> Command {
        let inner = heisen(self.directory.path());
        let mut command = Command::new("timeout");
        command.arg(LIMIT).arg(inner.get_program()).current_dir(self.directory.path());
        command.env_remove("RUST_BACKTRACE").env_remove("LD_PRELOAD");
        for (name, value) in &self.variables {
            command.env(name, value);
        }
        command
    }

    /// Checks one case.
    #[track_caller]
    pub fn check(&self, case: &str, options: &[&str]) -> Value {
        let mut command = self.command();
        command.args(["check", "--quiet", "--no-explain", "--json", "-"]).args(options);
        if !options.contains(&"--hang") {
            command.args(["--hang", "5s"]);
        }
        let ran = run(command.arg("--").arg(&self.program).arg(case));
        assert!(ran.code == 0 || ran.code == 1, "{case} {options:?}: {}\n{}", ran.code, ran.err);
        ran.json()
    }

    /// Checks that no case fails, natively or under Heisen, and that there are `count` cases.
    #[track_caller]
    pub fn conform(&self, count: usize) {
        self.conform_except(count, &[]);
    }

    /// The same for all cases except `others`.
    #[track_caller]
    pub fn conform_except(&self, count: usize, others: &[&str]) {
        let cases = self.cases();
        assert!(others.iter().all(|other| cases.iter().any(|case| case == other)), "{others:?} of {cases:?}");
        assert_eq!(cases.len() - others.len(), count, "{cases:?}");
        // In turn, because most of the time of a check is its start.
        let in_turn = usual_or_nightly([Searches::Random, Searches::Bounded], [Searches::Both; 2]);
        let conforming = cases.iter().filter(|case| !others.contains(&case.as_str()));
        for (case, searches) in conforming.zip(in_turn.into_iter().cycle()) {
            self.ends_natively_with(case, 0);
            self.passes(case, 0, searches);
        }
    }

    /// Checks that the case ends with this status natively and in every schedule, with only the expected
    /// caveats.
    #[track_caller]
    pub fn ends_with(&self, case: &str, status: i32) {
        self.ends_natively_with(case, status);
        self.ends_with_under_heisen(case, status);
    }

    #[track_caller]
    fn ends_natively_with(&self, case: &str, status: i32) {
        let native = self.native(case);
        assert_eq!(native.code, status, "{case} natively:\n{}", native.err);
    }

    /// As [`Suite::ends_with`], for cases that take too long natively.
    #[track_caller]
    pub fn ends_with_under_heisen(&self, case: &str, status: i32) {
        self.passes(case, status, Searches::Both);
    }

    #[track_caller]
    fn passes(&self, case: &str, status: i32, searches: Searches) {
        let status = status.to_string();
        let (random, preempted) = executions();
        let (randomly, most) = (random.to_string(), preempted.to_string());
        if !matches!(searches, Searches::Bounded) {
            let json = self.check(
                case,
                &["--strategy", "random", "--seed", "1", "--executions", &randomly, "--expect-exit", &status],
            );
            self.expect_nothing(case, &json);
            // A program with one thread needs only one execution.
            let executions = if json["claim"] == ONE_THREAD { 1 } else { random };
            let found = (&json["verdict"], &json["executions"]);
            assert_eq!(found, (&"clean".into(), &executions.into()), "{case}");
        }
        if matches!(searches, Searches::Random) {
            return;
        }
        let json = self.check(
            case,
            &["--strategy", "icb", "--bound", "1", "--executions", &most, "--expect-exit", &status],
        );
        self.expect_nothing(case, &json);
        let through = json["executions"].as_u64().is_some_and(|executions| executions < preempted);
        if through {
            assert_eq!(json["verdict"], "clean", "{case}: {json:#}");
        }
    }

    #[track_caller]
    fn expect_nothing(&self, case: &str, json: &Value) {
        assert_eq!(json["findings"], Value::Array(vec![]), "{case}: {json:#}");
        let said = unusual_caveats(json);
        let as_expected = said.len() == self.notes.len()
            && said.iter().zip(&self.notes).all(|(said, expected)| said.starts_with(expected));
        assert!(as_expected, "{case}: {json:#}");
    }

    /// Checks that the case is clean and has these numbers of executions at bounds 0, 1 and 2, and with dfs.
    #[track_caller]
    pub fn counts(&self, case: &str, counts: [u64; 4]) {
        let bounds = [&["--bound", "0"], &["--bound", "1"], &["--bound", "2"], &["--strategy", "dfs"]];
        for (options, count) in bounds.into_iter().zip(counts) {
            let json = self.check(case, options);
            let got = (&json["executions"], &json["complete"], &json["verdict"]);
            assert_eq!(got, (&count.into(), &true.into(), &"clean".into()), "{case} {options:?}: {json:#}");
        }
    }

    /// Checks that the case fails within one preemption, with a finding of this kind whose message contains
    /// these words. The schedule must replay the failure.
    #[track_caller]
    pub fn fails(&self, case: &str, kind: &str, words: &str) {
        let json = self.check(case, &["--bound", "1"]);
        let finding = &json["findings"][0];
        assert_eq!(finding["kind"], kind, "{case}: {json:#}");
        assert!(finding["message"].as_str().is_some_and(|m| m.contains(words)), "{case}: {json:#}");
        let schedule = finding["schedule"].as_str().expect("a schedule");
        run(self.command().args(["replay", "--quiet", schedule])).expect(1);
    }
}
