//! Runs a `#[heisen::test]`: the outer run starts its own executable under Heisen, the inner run executes the
//! body.
//!
//! The runtime tells the two apart. `heisen replay` therefore replays a schedule of such a test like any
//! other.

use crate::running;
use crate::script::{self, Ended};
use std::fmt::Debug;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// The environment variable that names the executable of Heisen.
const EXECUTABLE: &str = "HEISEN";
/// Set for the inner run. If Heisen's runtime is missing there, it keeps the test from starting itself
/// forever.
const INNER: &str = "HEISEN_TEST";

/// The types that a test may return.
pub trait Outcome {
    /// Panics if the value is a failure.
    fn check(self);
}

impl Outcome for () {
    fn check(self) {}
}

impl Outcome for std::process::ExitCode {
    #[track_caller]
    fn check(self) {
        assert!(self == std::process::ExitCode::SUCCESS, "the test returned {self:?}");
    }
}

impl<T: Outcome, E: Debug> Outcome for Result<T, E> {
    #[track_caller]
    fn check(self) {
        match self {
            Ok(value) => value.check(),
            Err(error) => panic!("the test returned an error: {error:?}"),
        }
    }
}

/// Runs the body under Heisen, or explores the test `name` of `module` with these options of `heisen check`.
#[track_caller]
pub fn test(module: &str, name: &str, options: &[&str], body: impl FnOnce()) {
    if running() {
        return body();
    }
    let mut heisen = heisen(&["check", "--color", "never"], module, name, options);
    let output = match heisen.output() {
        Ok(output) => output,
        Err(error) => not_started(&heisen, &error),
    };
    let said = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes)).concat();
    judge(output.status, ("heisen check", "Heisen found a bug"), &said);
}

/// As [`test`], with a script and the options of `heisen script`.
#[track_caller]
pub fn test_with(module: &str, name: &str, options: &[&str], body: impl FnOnce(), script: impl Fn()) {
    if running() {
        return body();
    }
    let mut heisen = heisen(&["script", "--remote"], module, name, options);
    let child = heisen.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.unwrap_or_else(|error| not_started(&heisen, &error));
    match script::follow(child, &script) {
        Ended::Script(panic) => std::panic::resume_unwind(panic),
        Ended::Heisen { status, reported: false, said } if status.success() => panic!(
            "{} does not understand the crate heisen: are both of the same version?\n\n{said}",
            Path::new(heisen.get_program()).display()
        ),
        Ended::Heisen { status, said, .. } => {
            judge(status, ("heisen script", "the script has failed"), &said);
        }
    }
}

/// Builds a command of Heisen that runs this executable again, restricted to this test.
#[track_caller]
fn heisen(command: &[&str], module: &str, name: &str, options: &[&str]) -> Command {
    let heisen = std::env::var_os(EXECUTABLE).filter(|value| !value.is_empty()).unwrap_or("heisen".into());
    if std::env::var_os(INNER).is_some() {
        let shown = Path::new(&heisen).display();
        panic!("{shown} does not control this test: are it and the crate heisen of the same version?");
    }
    let executable = std::env::current_exe().expect("the path of the test's own executable");
    let mut heisen = Command::new(heisen);
    heisen
        .args(command)
        .arg("--output")
        .arg(output_directory(&executable))
        .args(options)
        .arg("--")
        .arg(&executable)
        .arg(name_in_harness(module, name))
        .args(["--exact", "--include-ignored", "--nocapture", "--test-threads=1"])
        .env(INNER, "1");
    heisen
}

#[track_caller]
fn not_started(heisen: &Command, error: &std::io::Error) -> ! {
    let shown = Path::new(heisen.get_program()).display();
    match error.kind() {
        ErrorKind::NotFound => panic!(
            "{shown}: not found; install Heisen (`cargo install --path crates/cli` in its repository), or set \
             {EXECUTABLE} to the path of its executable"
        ),
        _ => panic!("{shown} cannot be started: {error}"),
    }
}

/// Passes or fails the test by the exit status of the command of Heisen.
#[track_caller]
fn judge(status: ExitStatus, (command, found): (&str, &str), said: &str) {
    match status.code() {
        // `cargo test -- --nocapture` shows it.
        Some(0) => print!("{said}"),
        Some(1) => panic!("{found}\n\n{said}"),
        _ => panic!("{command} failed ({status})\n\n{said}"),
    }
}

/// The name of a test in the harness: its path without the crate.
fn name_in_harness(module: &str, name: &str) -> String {
    match module.split_once("::") {
        Some((_, inside)) => format!("{inside}::{name}"),
        None => name.to_owned(),
    }
}

/// The folder for schedule files, beside the folders of cargo's profiles.
fn output_directory(executable: &Path) -> PathBuf {
    let target = executable.ancestors().find(|path| path.file_name().is_some_and(|name| name == "deps"));
    match target.and_then(|deps| deps.ancestors().nth(2)) {
        Some(target) => target.join("heisen"),
        None => PathBuf::from(".heisen"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!(name_in_harness("bank::tests::slow", "adds_up"), "tests::slow::adds_up");
        assert_eq!(name_in_harness("integration", "adds_up"), "adds_up");
    }

    #[test]
    fn directories() {
        let of = |path: &str| output_directory(Path::new(path));
        assert_eq!(of("/w/target/debug/deps/bank-0123"), Path::new("/w/target/heisen"));
        assert_eq!(of("/elsewhere/bank"), Path::new(".heisen"));
    }

    #[test]
    fn outcomes() {
        ().check();
        Ok::<(), String>(()).check();
        assert!(std::panic::catch_unwind(|| Err::<(), _>("no").check()).is_err());
        assert!(std::panic::catch_unwind(|| std::process::ExitCode::FAILURE.check()).is_err());
    }
}
