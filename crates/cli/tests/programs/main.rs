//! Runs programs that others wrote, from Debian and from published crates, under twenty random schedules
//! each.
//!
//! Their output, answers and exit status must be the same as natively every time. Nothing may hang, and
//! nothing may be left behind. Programs that only print also run a few times both ways: in one process as far
//! as they allow, and in a process for each execution. Both ways must give the same result.
//!
//! This test is a command of its own, because it needs installed programs and takes a while:
//!
//! ```sh
//! scripts/install-programs
//! cargo test -p heisen-cli --test programs -- --ignored [--require] [PROGRAM...]
//! ```
//!
//! A program that is not installed is skipped; with `--require` it is a failure. The results are in
//! `docs/evidence/programs.md`.

mod cases;
mod input;
mod server;

use cases::{CASES, Case, Kind};
use heisen_testkit::traces::{Traces, Ways, tell_all, traces};
use heisen_testkit::{all_processes, root, run, scratch, soon, zombies_of};
use serde_json::Value;
use server::Place;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const EXECUTIONS: usize = 20;
/// The number of executions for the comparison of the two ways to run them.
const FEW: &str = "8";
/// The time limit of a command in seconds.
const LIMIT: &str = "120";

/// The reason why a case fails.
type Failure = String;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let given = |option: &str| args.iter().any(|arg| arg == option);
    if given("--list") {
        return;
    }
    if !given("--ignored") {
        println!("ignored; to run: cargo test -p heisen-cli --test programs -- --ignored");
        return;
    }
    let chosen = |case: &&Case| {
        let mut names = args.iter().filter(|arg| !arg.starts_with('-')).peekable();
        names.peek().is_none() || names.any(|name| name == case.program)
    };
    let mut failed = 0;
    for case in CASES.iter().filter(chosen) {
        let Some(program) = find(case.program) else {
            let word = if given("--require") { "FAILED" } else { "skipped" };
            failed += usize::from(given("--require"));
            println!("{:18} {word}: not installed; run scripts/install-programs", case.program);
            continue;
        };
        match Trial::new(case, program).run() {
            Ok(summary) => println!("{:18} {summary}", case.program),
            Err(failure) => {
                failed += 1;
                println!("{:18} FAILED: {failure}", case.program);
            }
        }
    }
    if failed > 0 {
        println!("{failed} failed");
        std::process::exit(1);
    }
}

/// The executable with this name: one that `scripts/install-programs` built, else Debian's.
fn find(name: &str) -> Option<PathBuf> {
    let built =
        std::env::var_os("HEISEN_PROGRAMS").map_or_else(|| root().join("target/programs"), PathBuf::from);
    let directories = [built.join("bin"), "/usr/bin".into(), "/usr/sbin".into()];
    directories.iter().map(|directory| directory.join(name)).find(|path| path.exists())
}

/// The outcome of a run.
#[derive(Debug)]
struct Outcome {
    /// The exit code; -1 if a signal ended it.
    code: i32,
    /// The data to compare: all of the output, or each conversation.
    said: Vec<Vec<u8>>,
    /// Its standard error.
    err: String,
    took: Duration,
}

/// A case in a directory of its own.
struct Trial<'a> {
    case: &'a Case,
    program: PathBuf,
    directory: tempfile::TempDir,
    port: u16,
}

impl<'a> Trial<'a> {
    fn new(case: &'a Case, program: PathBuf) -> Trial<'a> {
        let trial = Trial { case, program, directory: scratch(), port: server::free_port() };
        (case.prepare)(&trial.work());
        for (name, text) in case.files {
            std::fs::write(trial.work().join(name), trial.with_port(text)).expect("a file is written");
        }
        trial
    }

    /// The directory where the program runs.
    fn work(&self) -> PathBuf {
        self.directory.path().canonicalize().expect("the directory")
    }

    fn with_port(&self, text: &str) -> String {
        text.replace("PORT", &self.port.to_string())
    }

    /// A command with a time limit, which runs what follows in the program's environment.
    fn command(&self, before: &[&str]) -> Command {
        let mut command = Command::new("timeout");
        command.args(["-s", "KILL", LIMIT]).args(before).current_dir(self.work());
        command.env_remove("RUST_BACKTRACE").env_remove("LD_PRELOAD").env("LC_ALL", "C");
        command.envs(self.case.variables.iter().copied()).stdin(Stdio::null());
        command
    }

    fn append_program(&self, command: &mut Command) {
        command.arg(&self.program).args(self.case.args.iter().map(|arg| self.with_port(arg)));
    }

    /// Compares all runs with the native one. Returns a line about the result.
    fn run(&self) -> Result<String, Failure> {
        let native = self.native();
        if native.code < 0 {
            return Err(format!("natively, it ends with no status of its own: {}", native.err));
        }
        let name: String = self.case.program.chars().take(15).collect();
        let dead = zombies_of(&name);
        let checked = self.check(native.code);
        let nothing_left =
            || self.processes().is_empty() && zombies_of(&name).iter().all(|pid| dead.contains(pid));
        if !soon(nothing_left) {
            return Err(format!("left behind: {:?}", self.processes()));
        }
        let (executions, mut notes) = self.compare(&native, &checked)?;
        if !matches!(self.case.kind, Kind::Serves(_)) {
            notes += &self.compare_ways(native.code)?;
        }
        let (one, each) = (native.took.as_secs_f64(), checked.took.as_secs_f64() / executions as f64);
        Ok(format!("as natively, {executions} times; {one:.2} s natively, {each:.2} s each{notes}"))
    }

    fn native(&self) -> Outcome {
        let mut command = self.command(&[]);
        self.append_program(&mut command);
        let file = self.work().join("native.out");
        command.stdout(std::fs::File::create(&file).expect("a file"));
        self.finish(command, &file)
    }

    /// Runs all executions of a check. Their output is appended to one file. (With a hook after each
    /// execution, the output could be compared and removed there.)
    fn check(&self, status: i32) -> Outcome {
        let library = self.directory.path().join("redirect.so");
        let mut compile = Command::new("cc");
        compile.args(["-shared", "-fPIC", "-o"]).arg(&library);
        run(compile.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/redirect.c"))).expect(0);
        let file = self.work().join("checked.out");
        std::fs::write(&file, "").expect("a file");

        let mut command = self.command(&["env"]);
        command.arg(format!("LD_PRELOAD={}", library.display()));
        command.arg(format!("PROGRAM_OUTPUT={}", file.display()));
        command.arg(heisen_testkit::heisen_path()).args(["check", "--quiet", "--json", "verdict.json"]);
        command.args(["--strategy", "random", "--seed", "1", "--jobs", "1"]);
        command.args(["--executions", &EXECUTIONS.to_string(), "--expect-exit", &status.to_string()]);
        self.append_program(command.arg("--"));
        command.stdout(Stdio::null());
        self.finish(command, &file)
    }

    /// Runs a command to its end and returns the data to compare. If the program is a server, talks to it
    /// meanwhile.
    fn finish(&self, mut command: Command, printed: &Path) -> Outcome {
        let errors = self.work().join("errors");
        let start = Instant::now();
        let mut child: Child =
            command.stderr(std::fs::File::create(&errors).expect("a file")).spawn().expect("a process");
        let said = match &self.case.kind {
            Kind::Prints | Kind::PrintsLines => None,
            Kind::Serves(script) => {
                let place = Place { program: &self.program, directory: &self.work(), port: self.port };
                Some(server::talk_until_end(&mut child, place, script))
            }
        };
        let status = child.wait().expect("its status");
        let took = start.elapsed();
        let said = said.unwrap_or_else(|| vec![std::fs::read(printed).expect("what it printed")]);
        let err = std::fs::read(&errors).map(|text| String::from_utf8_lossy(&text).into_owned());
        Outcome { code: status.code().unwrap_or(-1), said, err: err.unwrap_or_default(), took }
    }

    /// Compares all executions with the native run. Returns their number, and remarks.
    fn compare(&self, native: &Outcome, checked: &Outcome) -> Result<(usize, String), Failure> {
        let verdict = std::fs::read_to_string(self.work().join("verdict.json")).unwrap_or_default();
        let verdict: Value = serde_json::from_str(&verdict).unwrap_or_default();
        if checked.code != 0 {
            let found = &verdict["findings"][0]["message"];
            return Err(format!("heisen ended with {}: {found} {}", checked.code, checked.err.trim_end()));
        }
        // A program with one thread and no other choice has one execution.
        let executions = match verdict["claim"].as_str() {
            Some(claim) if claim.starts_with("nothing to explore") => 1,
            _ => EXECUTIONS,
        };
        if verdict["executions"] != executions {
            return Err(format!("{verdict:#}"));
        }
        let [expected] = native.said.as_slice() else {
            return Err(format!("natively there were {} conversations", native.said.len()));
        };
        let all: Vec<&[u8]> = match self.case.kind {
            // If their sizes differ, the comparison below fails.
            Kind::Prints | Kind::PrintsLines => checked.said[0].chunks(expected.len().max(1)).collect(),
            Kind::Serves(_) => checked.said.iter().map(Vec::as_slice).collect(),
        };
        if all.len() != executions {
            let sizes: Vec<usize> = all.iter().map(|said| said.len()).collect();
            return Err(format!("natively {} bytes, here {sizes:?}", expected.len()));
        }
        let expected = self.comparable(expected);
        for (number, said) in all.iter().enumerate() {
            let said = self.comparable(said);
            if said != expected {
                let at = said.iter().zip(&expected).take_while(|(a, b)| a == b).count();
                return Err(format!("execution {number} differs from byte {at}: {}", excerpt(&said, at)));
            }
        }
        let notes = verdict["not_controlled"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let notes = notes.filter(|note| !note.starts_with("memory accesses: "));
        Ok((executions, notes.map(|note| format!("; {note}")).collect()))
    }

    /// Checks that executions in one process give the same results as executions with a process each. Returns
    /// how many were undone. Their output is discarded, because an execution that writes to a file, as in
    /// [`check`](Trial::check), is not undone.
    fn compare_ways(&self, status: i32) -> Result<String, Failure> {
        // Not in the program's own directory, whose files the program may list.
        let beside = scratch();
        let told = |how: &[&str]| -> (Traces, Ways) {
            let mut command = self.command(&[heisen_testkit::heisen_path(), "check", "--quiet"]);
            command.args(["--strategy", "random", "--seed", "1", "--jobs", "1", "--executions", FEW]);
            command.args(["--expect-exit", &status.to_string()]).args(tell_all(beside.path())).args(how);
            self.append_program(command.arg("--"));
            traces(beside.path(), &mut command)
        };
        let ((undone, ways), (forked, _)) = (told(&[]), told(&["--fork"]));
        if forked.result["not_controlled"].to_string().contains("another process was started") {
            return Ok(
                "; not compared with a process for each, as when others end is not up to the schedule".into(),
            );
        }
        if undone != forked {
            return Err(format!("otherwise with a process for each: {}", undone.difference(&forked)));
        }
        Ok(format!("; as with a process for each, {} of {FEW} put back", ways.undone))
    }

    /// The part of the output that must be the same.
    fn comparable(&self, said: &[u8]) -> Vec<u8> {
        let mut lines: Vec<&[u8]> = said.split_inclusive(|&byte| byte == b'\n').collect();
        match self.case.kind {
            Kind::Prints => {}
            Kind::PrintsLines => lines.sort_unstable(),
            // The clock is virtual.
            Kind::Serves(_) => lines.retain(|line| !line.starts_with(b"Date: ")),
        }
        lines.concat()
    }

    /// The processes that still run in the program's directory.
    fn processes(&self) -> Vec<i32> {
        let here = self.work();
        let inside = |pid: &i32| std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == here);
        all_processes().filter(inside).collect()
    }
}

/// A short part of the output near a position.
fn excerpt(said: &[u8], at: usize) -> String {
    String::from_utf8_lossy(&said[at.saturating_sub(40)..said.len().min(at + 80)]).escape_debug().to_string()
}
