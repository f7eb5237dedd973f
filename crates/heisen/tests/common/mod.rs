//! What the tests of the command share: the executable, directories, compiled programs.
#![allow(dead_code)]

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// A `heisen` command that writes below `directory`.
pub fn heisen(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_heisen"));
    // Whatever the machine is set up with shall not show in what programs print.
    command.current_dir(directory).env_remove("RUST_BACKTRACE").env_remove("LD_PRELOAD");
    command
}

/// A temporary directory.
pub fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

/// Compiles C, C++ or Rust text, by the ending of `name`, with extra flags.
pub fn compile(directory: &Path, name: &str, text: &str, flags: &[&str]) -> PathBuf {
    let source = directory.join(name);
    std::fs::write(&source, text).expect("the source is written");
    let (compiler, standard): (&str, &[&str]) = match source.extension().and_then(|e| e.to_str()) {
        Some("c") => ("cc", &["-g", "-pthread"]),
        Some("cpp") => ("c++", &["-g", "-pthread", "-std=c++17"]),
        Some("rs") => ("rustc", &["-g", "--edition=2021"]),
        other => panic!("no compiler for {other:?}"),
    };
    let program = source.with_extension("");
    let output = Command::new(compiler)
        .args(standard)
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .args(flags)
        .output()
        .unwrap_or_else(|e| panic!("{compiler}: {e}"));
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    program
}

/// Runs a command to its end.
pub fn run(command: &mut Command) -> Ran {
    let output = command.output().expect("heisen starts");
    Ran::new(output)
}

/// What a command did.
#[derive(Debug)]
pub struct Ran {
    /// Its exit code; negative for a signal.
    pub code: i32,
    /// Its standard output.
    pub out: String,
    /// Its standard error.
    pub err: String,
}

impl Ran {
    fn new(output: Output) -> Ran {
        Ran {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
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

/// `heisen check --json - ARGS`, as JSON; the exit code must fit the verdict.
#[track_caller]
pub fn check_json(directory: &Path, args: &[&str]) -> Value {
    let ran = run(heisen(directory).args(["check", "--json", "-"]).args(args));
    let json = ran.json();
    let expected = if json["verdict"] == "bug" { 1 } else { 0 };
    assert_eq!(ran.code, expected, "{json:#}\n{}", ran.err);
    json
}

/// Process ids of everything that runs the given executable.
pub fn processes_of(program: &Path) -> Vec<i32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse::<i32>().ok()) else { continue };
        if std::fs::read_link(entry.path().join("exe")).is_ok_and(|exe| exe == program) {
            found.push(pid);
        }
    }
    found
}
