//! What the tests of all crates share: the command, sandboxes, compiled programs.
//!
//! | module | what it has |
//! | --- | --- |
//! | [`mod@compile`] | compiles programs, each for one test or once for all |
//! | [`executable`] | finds `heisen` and `cargo-heisen`, and builds them if they are older than the sources |
//! | [`package`] | a crate outside of the workspace that uses the crate `heisen` |
//! | [`schema`] | validates results against the JSON Schema |
//! | [`rooms`] | checks which modules of a crate use which |
//! | [`stated`] | the examples, and what each states of itself |
//! | [`traces`] | everything that a check reports, so that two checks can be compared |
//!
//! Most tests use a [`Sandbox`], which checks that a command leaves nothing behind, or [`scratch`],
//! [`compile()`] and [`check_json`]. This crate uses no other crate of the workspace, so the tests of every
//! crate can depend on it.

pub mod compile;
pub mod executable;
pub mod package;
pub mod rooms;
pub mod schema;
pub mod stated;
pub mod traces;

pub use compile::{compile, compile_once};
pub use executable::{cargo_heisen_path, heisen_path};

use serde_json::Value;
use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// A `heisen` command that writes below `directory`.
pub fn heisen(directory: &Path) -> Command {
    let mut command = Command::new(heisen_path());
    // The environment of the machine must not change what programs print.
    command.current_dir(directory);
    for variable in ["RUST_BACKTRACE", "LD_PRELOAD", "COLUMNS"] {
        command.env_remove(variable);
    }
    command
}

/// How much of something a test does: `usual` in each run of the tests, `nightly` in `scripts/nightly`. That
/// script sets `HEISEN_NIGHTLY=1` and names each use of this function with its reason.
pub fn usual_or_nightly<T>(usual: T, nightly: T) -> T {
    let by_night = std::env::var_os("HEISEN_NIGHTLY").is_some_and(|value| value == "1");
    if by_night { nightly } else { usual }
}

/// How often a test replays a schedule that must do the same each time.
pub fn replays() -> usize {
    usual_or_nightly(3, 100)
}

/// A temporary directory.
pub fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

/// Runs a command to its end.
pub fn run(command: &mut Command) -> Ran {
    let output = command.output().expect("heisen starts");
    Ran::new(output)
}

/// The outcome of a command.
#[derive(Debug)]
pub struct Ran {
    /// Its exit code; -1 if a signal ended it.
    pub code: i32,
    /// Its standard output.
    pub out: String,
    /// Its standard error.
    pub err: String,
    /// The files and directories that it made in its directory, if that is a [`Sandbox`].
    pub made: Vec<String>,
}

impl Ran {
    fn new(output: Output) -> Ran {
        Ran {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
            made: Vec::new(),
        }
    }

    /// Checks that the command failed with this code and with exactly one message, which contains all of
    /// these words.
    #[track_caller]
    pub fn fails(self, code: i32, words: &[&str]) -> Ran {
        let ran = self.expect(code);
        assert_eq!(ran.messages().len(), 1, "{}", ran.err);
        for word in words {
            assert!(ran.err.contains(word), "{word:?} is not in: {}", ran.err);
        }
        assert!(ran.made.is_empty(), "left behind: {:?}", ran.made);
        ran
    }

    /// Checks that the command failed with this code and one message, which contains these words. Cargo may
    /// have made files.
    #[track_caller]
    pub fn fails_after_cargo(self, code: i32, words: &str) -> Ran {
        let ran = self.expect(code);
        assert_eq!(ran.messages().len(), 1, "{}", ran.err);
        assert!(ran.err.contains(words), "{words:?} is not in: {}", ran.err);
        ran
    }

    /// The messages of `heisen` itself.
    pub fn messages(&self) -> Vec<&str> {
        self.err.lines().filter(|line| line.starts_with("heisen: ")).collect()
    }

    /// Checks the exit code.
    #[track_caller]
    pub fn expect(self, code: i32) -> Ran {
        assert_eq!(self.code, code, "\n--- out\n{}\n--- err\n{}", self.out, self.err);
        self
    }

    /// Standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e}\n{}\n{}", self.out, self.err))
    }
}

/// Runs `heisen check --json - ARGS` and returns the JSON. The exit code must fit the verdict. Findings are not explained,
/// because that takes longer than most checks of the tests.
#[track_caller]
pub fn check_json(directory: &Path, args: &[&str]) -> Value {
    // A saved search has the options of its check.
    let options: &[&str] = if args.contains(&"--resume") { &[] } else { &["--no-explain"] };
    explained_json(directory, &[options, args].concat())
}

/// Like [`check_json`], with explanations.
#[track_caller]
pub fn explained_json(directory: &Path, args: &[&str]) -> Value {
    let ran = run(heisen(directory).args(["check", "--json", "-"]).args(args));
    let json = ran.json();
    let expected = if json["verdict"] == "bug" { 1 } else { 0 };
    assert_eq!(ran.code, expected, "{json:#}\n{}", ran.err);
    json
}

/// The text of a C program with these declarations and one thread for each body. `main` joins all threads.
pub fn program(declarations: &str, bodies: &[&str]) -> String {
    let functions: String = bodies
        .iter()
        .enumerate()
        .map(|(number, body)| format!("static void *t{number}(void *unused) {{ {body} return unused; }}\n"))
        .collect();
    let each = |what: &dyn Fn(usize) -> String| (0..bodies.len()).map(what).collect::<String>();
    format!(
        "#include <pthread.h>\n#include <stdatomic.h>\n#include <semaphore.h>\n{declarations}\n{functions}\
         int main(void) {{ pthread_t t[{}];\n{}{}return 0; }}\n",
        bodies.len(),
        each(&|n| format!("pthread_create(&t[{n}], 0, t{n}, 0);\n")),
        each(&|n| format!("pthread_join(t[{n}], 0);\n")),
    )
}

/// A result without the fields that may differ between runs: its time, and how executions were run.
pub fn timeless(mut json: Value) -> Value {
    let fields = json.as_object_mut().expect("an object");
    assert!(fields.remove("seconds").is_some_and(|s| s.as_f64().is_some_and(|s| s > 0.0)));
    for field in ["undone", "ahead", "skipped", "forked"] {
        assert!(fields.remove(field).is_some());
    }
    // How many schedules are tried depends on the time that they take.
    for finding in fields.get_mut("findings").and_then(Value::as_array_mut).into_iter().flatten() {
        finding.as_object_mut().and_then(|finding| finding.remove("minimised"));
    }
    json
}

/// The ids of all processes that run the given executable.
pub fn processes_of(program: &Path) -> Vec<i32> {
    let runs = |pid: &i32| std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == program);
    all_processes().filter(runs).collect()
}

/// A saved search; `None` if there is no file. The file must be complete at any time.
pub fn saved_search(file: &Path) -> Option<Value> {
    let text = std::fs::read_to_string(file).ok()?;
    let (search, _sum) = text.split_once('\n').expect("a whole file");
    Some(serde_json::from_str(search).expect("a search"))
}

/// How many executions a saved search has done; 0 if there is no file.
pub fn saved_executions(file: &Path) -> u64 {
    let executions = |saved: Value| saved["tally"]["executions"].as_u64().expect("a number");
    saved_search(file).map_or(0, executions)
}

/// A port that nobody uses now.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    listener.local_addr().expect("an address").port()
}

/// Sends a signal to a process.
#[track_caller]
pub fn send(signal: &str, pid: u32) {
    let sent = Command::new("kill").args(["-s", signal, &pid.to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()), "the signal is sent");
}

/// Whether `condition` comes true within a few seconds.
pub fn soon(condition: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    while !condition() {
        if start.elapsed() > Duration::from_secs(20) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

/// A private environment for a test: the directory where `heisen` runs, its cache and its temporary files.
/// `heisen` may leave nothing there except results.
#[derive(Debug)]
pub struct Sandbox {
    root: tempfile::TempDir,
}

impl Default for Sandbox {
    fn default() -> Sandbox {
        Sandbox::new()
    }
}

impl Sandbox {
    /// An empty sandbox.
    pub fn new() -> Sandbox {
        let root = scratch();
        for name in ["work", "cache", "tmp"] {
            std::fs::create_dir(root.path().join(name)).expect("a directory");
        }
        Sandbox { root }
    }

    /// A file in the directory where `heisen` runs.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().canonicalize().expect("the sandbox").join("work").join(name)
    }

    /// Writes a file, and makes the directories it is in.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        std::fs::write(&path, bytes).expect("a file is written");
        path
    }

    /// Compiles a program.
    pub fn compile(&self, name: &str, text: &str, flags: &[&str]) -> PathBuf {
        compile(&self.path(""), name, text, flags)
    }

    /// A shell in which `"$0"` is `heisen`. It is killed after 100 seconds.
    pub fn shell(&self, script: &str) -> Command {
        let mut command = Command::new("timeout");
        command.args(["-s", "KILL", "100", "sh", "-c", script, heisen_path()]);
        self.inside(command)
    }

    /// A `heisen` command that is killed after 100 seconds.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("timeout");
        command.args(["-s", "KILL", "100", heisen_path()]).args(args);
        self.inside(command)
    }

    /// A `cargo heisen` command, as cargo starts it, that is killed after 100 seconds.
    pub fn cargo_command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("timeout");
        command.args(["-s", "KILL", "100", cargo_heisen_path(), "heisen"]).args(args);
        let flags = ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_RUSTFLAGS", "CARGO_TARGET_DIR"];
        for variable in flags {
            command.env_remove(variable);
        }
        self.inside(command)
    }

    /// Runs `cargo heisen` with these arguments.
    #[track_caller]
    pub fn cargo_heisen(&self, args: &[&str]) -> Ran {
        self.run(&mut self.cargo_command(args))
    }

    /// A `heisen` command without `timeout`, so that its process id is that of `heisen`, for signals.
    pub fn plain_command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(heisen_path());
        command.args(args);
        self.inside(command)
    }

    fn inside(&self, mut command: Command) -> Command {
        for variable in ["RUST_BACKTRACE", "LD_PRELOAD", "CC", "CXX", "RUSTC", "HEISEN_CC", "HEISEN_CXX"] {
            command.env_remove(variable);
        }
        let root = self.root.path();
        command.env("XDG_CACHE_HOME", root.join("cache")).env("TMPDIR", root.join("tmp"));
        command.env("LC_ALL", "C").current_dir(self.path(""));
        // A wrong expression of a symbolic build ends a check.
        command.env("HEISEN_CHECK_EXPRESSIONS", "1");
        command
    }

    /// Runs a command, and checks that it leaves no process and no temporary file.
    #[track_caller]
    pub fn run(&self, command: &mut Command) -> Ran {
        let before = self.listing();
        let mut ran = run(command);
        ran.made = self.listing().difference(&before).cloned().collect();
        self.assert_tidy();
        ran
    }

    /// Runs `heisen` with these arguments.
    #[track_caller]
    pub fn heisen(&self, args: &[&str]) -> Ran {
        self.run(&mut self.command(args))
    }

    /// Runs `heisen check --json - ARGS`, which must find nothing.
    #[track_caller]
    pub fn clean(&self, args: &[&str]) -> Value {
        let all = [&["check", "--json", "-"], args].concat();
        let ran = self.heisen(&all).expect(0);
        assert!(ran.made.is_empty(), "left behind: {:?}", ran.made);
        assert!(ran.messages().is_empty(), "{}", ran.err);
        ran.json()
    }

    /// Runs `heisen check --json - ARGS`. Its first finding must be of this kind, and the schedule must
    /// replay.
    #[track_caller]
    pub fn finds(&self, kind: &str, args: &[&str]) -> Value {
        let all = [&["check", "--json", "-"], args].concat();
        let ran = self.heisen(&all).expect(1);
        assert!(ran.messages().is_empty(), "{}", ran.err);
        let finding = ran.json()["findings"][0].clone();
        assert_eq!(finding["kind"], kind, "{finding:#}");
        let schedule = finding["schedule"].as_str().expect("a schedule");
        assert_eq!(ran.made, [".heisen", schedule]);
        self.heisen(&["replay", schedule]).expect(1);
        finding
    }

    /// The ids of all processes that run an executable of this sandbox.
    pub fn processes(&self) -> Vec<i32> {
        let here = self.path("");
        let below = |pid: &i32| {
            std::fs::read_link(format!("/proc/{pid}/exe"))
                .is_ok_and(|executable| executable.starts_with(&here))
        };
        all_processes().filter(below).collect()
    }

    /// Checks that no process is left, and no file except results.
    #[track_caller]
    pub fn assert_tidy(&self) {
        assert!(soon(|| self.processes().is_empty()), "still running: {:?}", self.processes());
        let root = self.root.path();
        assert_eq!(names_below(&root.join("tmp")), BTreeSet::new());
        for name in names_below(&root.join("cache")) {
            let unpacked = ["heisen/include-", "heisen/stub-", "heisen/link-"]
                .iter()
                .any(|start| name.starts_with(start));
            let expected = ["heisen", "heisen/running"].contains(&name.as_str())
                || name.ends_with(".so")
                || unpacked && !name.ends_with(".tmp");
            assert!(expected, "in the cache: {name}");
        }
        for name in self.listing() {
            assert!(!name.ends_with(".tmp"), "left behind: {name}");
        }
    }

    /// Everything in the directory where `heisen` runs, except the access points that a check of an
    /// instrumented program may store.
    fn listing(&self) -> BTreeSet<String> {
        let mut names = names_below(&self.path(""));
        let all = names.len();
        names.retain(|name| !name.starts_with(".heisen/points"));
        if names.len() < all && !names.iter().any(|name| name.starts_with(".heisen/")) {
            names.remove(".heisen");
        }
        names
    }
}

/// Every file and directory below a directory, as relative paths.
fn names_below(directory: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            names.extend(names_below(&entry.path()).iter().map(|below| format!("{name}/{below}")));
        }
        names.insert(name);
    }
    names
}

/// All processes of the machine.
pub fn all_processes() -> impl Iterator<Item = i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str().and_then(|name| name.parse().ok()))
}

/// The processes with this name (its first 15 characters) that have ended but that nobody has waited for.
pub fn zombies_of(name: &str) -> Vec<i32> {
    let dead = |pid: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.contains(&format!("({name}) Z"))
    };
    all_processes().filter(dead).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A test that does less than it could, or that is ignored, must be named in `scripts/nightly`, with the
    /// reason.
    #[test]
    fn shortened_tests_are_named_in_the_nightly_script() {
        let script = std::fs::read_to_string(root().join("scripts/nightly")).expect("the script");
        let mut shortened = 0;
        for member in std::fs::read_dir(root().join("crates")).expect("the crates").flatten() {
            let tests = member.path().join("tests/it");
            for name in names_below(&tests).into_iter().filter(|name| name.ends_with(".rs")) {
                let text = std::fs::read_to_string(tests.join(&name)).expect("a test");
                let words = ["usual_or_nightly(", "0..replays()", "1..replays()", "#[ignore = "];
                if words.iter().any(|word| text.contains(word)) {
                    let path = format!("crates/{}/tests/it/{name}", member.file_name().display());
                    assert!(script.contains(&path), "{path} is not in scripts/nightly");
                    shortened += 1;
                }
            }
        }
        assert!(shortened > 5, "{shortened}");
    }
}
