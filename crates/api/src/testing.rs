//! What a `#[heisen::test]` does: outside, it runs its own executable under `heisen check`; inside, under Heisen, it runs
//! the body. Which of the two it is, the runtime says; so a schedule of such a test is replayed like any other.

use crate::running;
use std::fmt::Debug;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names the executable of Heisen.
const EXECUTABLE: &str = "HEISEN";
/// Set for the inner run: without Heisen in it, the test would start itself for ever.
const INNER: &str = "HEISEN_TEST";

/// What a test may return.
pub trait Outcome {
    /// Panics if it is a failure.
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

/// Runs or explores the test `name` of a module; `options` are for `heisen check`.
#[track_caller]
pub fn test(module: &str, name: &str, options: &[&str], body: impl FnOnce()) {
    if running() {
        return body();
    }
    let heisen = std::env::var_os(EXECUTABLE).filter(|value| !value.is_empty()).unwrap_or("heisen".into());
    let shown = Path::new(&heisen).display();
    if std::env::var_os(INNER).is_some() {
        panic!("{shown} does not control this test: is it the Heisen that belongs to the crate heisen?");
    }
    let executable = std::env::current_exe().expect("the path of the test's own executable");
    let output = Command::new(&heisen)
        .args(["check", "--color", "never", "--output"])
        .arg(output_directory(&executable))
        .args(options)
        .arg("--")
        .arg(&executable)
        .arg(name_in_harness(module, name))
        .args(["--exact", "--include-ignored", "--nocapture", "--test-threads=1"])
        .env(INNER, "1")
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) if error.kind() == ErrorKind::NotFound => panic!(
            "{shown}: not found; install Heisen (`cargo install --path crates/heisen` in its repository), or set \
             {EXECUTABLE} to the path of its executable"
        ),
        Err(error) => panic!("{shown} cannot be started: {error}"),
    };
    let report = String::from_utf8_lossy(&output.stdout);
    let words = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        // Shown by `cargo test -- --nocapture`.
        Some(0) => print!("{report}{words}"),
        Some(1) => panic!("Heisen found a bug\n\n{report}{words}"),
        _ => panic!("heisen check failed ({})\n\n{report}{words}", output.status),
    }
}

/// The name that the harness knows a test by: without the crate.
fn name_in_harness(module: &str, name: &str) -> String {
    match module.split_once("::") {
        Some((_, inside)) => format!("{inside}::{name}"),
        None => name.to_owned(),
    }
}

/// Where schedules go: next to the directories of cargo's profiles.
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
