//! Finds `heisen` and `cargo-heisen` for tests of any package.
//!
//! Cargo names the executables of a package only to the tests of that package (`CARGO_BIN_EXE_heisen`), and
//! builds them only for these. So `cargo test -p heisen-runtime` does not build `heisen`. This module uses
//! the executables in the profile directory of the test. If a source file is newer than they are, cargo
//! builds them first.

use crate::root;
use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::SystemTime;

/// The executable `heisen`.
pub fn heisen_path() -> &'static str {
    &executables().heisen
}

/// The executable `cargo-heisen`.
pub fn cargo_heisen_path() -> &'static str {
    &executables().cargo_heisen
}

struct Executables {
    heisen: String,
    cargo_heisen: String,
}

fn executables() -> &'static Executables {
    static FOUND: OnceLock<Executables> = OnceLock::new();
    FOUND.get_or_init(|| {
        let directory = profile_directory();
        if !is_fresh(&directory) {
            build(&directory);
        }
        let path = |name: &str| directory.join(name).to_str().expect("a path that is text").to_owned();
        Executables { heisen: path("heisen"), cargo_heisen: path("cargo-heisen") }
    })
}

/// The directory of the profile that the test was built with, such as `target/debug`.
pub(crate) fn profile_directory() -> PathBuf {
    let test = std::env::current_exe().expect("the test's own path");
    let of_tests = test.parent().expect("a directory");
    assert!(of_tests.ends_with("deps"), "{} is not where cargo puts tests", test.display());
    of_tests.parent().expect("a directory").to_owned()
}

/// The file that is written after each build. Cargo does not touch the executables if a changed source file
/// is not part of them.
const STAMP: &str = ".heisen-testkit";

/// Whether both executables are there, and are not older than any source file.
fn is_fresh(directory: &Path) -> bool {
    let (Some(heisen), Some(cargo)) =
        (modified(&directory.join("heisen")), modified(&directory.join("cargo-heisen")))
    else {
        return false;
    };
    let built = heisen.min(cargo).max(modified(&directory.join(STAMP)).unwrap_or(SystemTime::UNIX_EPOCH));
    newest_source() <= built
}

fn modified(file: &Path) -> Option<SystemTime> {
    file.metadata().ok()?.modified().ok()
}

/// The crates that the executables do not use.
const NOT_IN_HEISEN: [&str; 3] = ["heisen", "macros", "testkit"];

/// When the latest change was made to a file from which the executables are built.
fn newest_source() -> SystemTime {
    let root = root();
    let mut newest = SystemTime::UNIX_EPOCH;
    let mut look = |path: &Path| newest = newest.max(modified(path).unwrap_or(SystemTime::UNIX_EPOCH));
    for name in ["Cargo.toml", "Cargo.lock", "include/heisen.h"] {
        look(&root.join(name));
    }
    for member in std::fs::read_dir(root.join("crates")).expect("the crates").flatten() {
        if NOT_IN_HEISEN.iter().any(|name| member.file_name() == *name) {
            continue;
        }
        for name in ["Cargo.toml", "build.rs"] {
            look(&member.path().join(name));
        }
        below(&member.path().join("src"), &mut look);
    }
    newest
}

/// Calls `look` for each file below a directory.
fn below(directory: &Path, look: &mut impl FnMut(&Path)) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => below(&entry.path(), look),
            _ => look(&entry.path()),
        }
    }
}

/// Builds the executables with the profile and the target directory of the test. One process builds at a
/// time. Processes that wait for the lock then find the executables built.
fn build(directory: &Path) {
    let lock = File::create(directory.join(".heisen-testkit.lock")).expect("a lock file");
    lock.lock().expect("the lock");
    if is_fresh(directory) {
        return;
    }
    let started = SystemTime::now();
    let profile = match directory.file_name().and_then(OsStr::to_str) {
        Some("debug") => "dev",
        Some(name) => name,
        None => panic!("{} names no profile", directory.display()),
    };
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(["build", "--quiet", "--package", "heisen-cli", "--bins", "--profile", profile, "--target-dir"])
        .arg(directory.parent().expect("a target directory"))
        .current_dir(root());
    // The cargo that runs the test has set these. Values other than in that build would cause a complete
    // rebuild.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name == "CARGO_MANIFEST_DIR" || name == "CARGO_MANIFEST_PATH" {
            cargo.env_remove(&*name);
        }
    }
    let status = cargo.status().expect("cargo starts");
    assert!(status.success(), "heisen did not build");
    let stamp = File::create(directory.join(STAMP)).expect("a stamp");
    stamp.set_modified(started).expect("the time of the stamp");
}
