//! Builds instrumented executables with cargo. A separate target directory leaves the normal build untouched.
//!
//! The build passes `--target` although the target is the machine's own. Cargo then separates build scripts
//! and procedural macros, which run at compile time, from the program, and gives our flags to the program
//! only.

use super::args::{Cargo, SYMBOLIC, Targets, WITH_STD};
use super::workspace::{Workspace, cargo, no_cargo};
use super::{Failure, flags};
use crate::cli::args::Color;
use heisen_engine::Error;
use heisen_engine::program::instrument;
use heisen_engine::program::rust_std::StdBuild;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The target that Heisen runs on.
pub const TARGET: &str = "x86_64-unknown-linux-gnu";

/// The command of cargo that builds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// `cargo build`: programs.
    Programs,
    /// `cargo test --no-run`: test executables.
    Tests,
}

impl Mode {
    /// The name of cargo's command.
    pub fn command(self) -> &'static str {
        match self {
            Mode::Programs => "build",
            Mode::Tests => "test",
        }
    }
}

/// A request for one build.
#[derive(Clone, Copy, Debug)]
pub struct BuildRequest<'a> {
    pub mode: Mode,
    /// The options that make it differ from other builds: cargo's options, `--with-std` and
    /// `--symbolic`.
    pub words: &'a [OsString],
    pub cargo: &'a Cargo,
    pub quiet: bool,
    pub color: Color,
}

/// An executable that was built.
#[derive(Clone, Debug)]
pub struct Executable {
    pub path: PathBuf,
    pub package: String,
    /// The name of its target.
    pub name: String,
    /// `lib`, `bin`, `test`, `example`, `bench` or `proc-macro`.
    pub kind: String,
    /// Its source file, relative to the package.
    pub source: PathBuf,
    /// Whether it has its own `main` instead of the test harness.
    pub own_main: bool,
    /// Whether `cargo run` would run this executable.
    pub default_run: bool,
    /// The directory in which cargo would run it if it is a test executable.
    pub directory: PathBuf,
    pub environment: Vec<(OsString, OsString)>,
}

impl Executable {
    /// Its unique name in the workspace, in the form of cargo-nextest: `queue`, `queue::loopback`,
    /// `queue::bin/tool`.
    pub fn id(&self) -> String {
        match self.kind.as_str() {
            "lib" | "proc-macro" => self.package.clone(),
            "test" => format!("{}::{}", self.package, self.name),
            kind => format!("{}::{kind}/{}", self.package, self.name),
        }
    }

    /// The file name without the hash that cargo adds, so that it is the same in each build.
    pub fn stem(path: &Path) -> String {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match name.rsplit_once('-') {
            Some((stem, hash)) if hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()) => {
                stem.into()
            }
            _ => name,
        }
    }
}

/// The options of a build as words. Without words for targets, cargo chooses the targets.
pub fn words(build: Vec<OsString>, targets: &Targets) -> Vec<OsString> {
    [build, targets.words()].concat()
}

/// Runs cargo and returns the executables, ordered by id.
pub fn build(workspace: &Workspace, order: &BuildRequest<'_>) -> Result<Vec<Executable>, Failure> {
    let mut command = cargo();
    command.arg(order.mode.command());
    if order.mode == Mode::Tests {
        command.arg("--no-run");
    }
    command.args(["--message-format=json-render-diagnostics", "--target", TARGET]);
    let (ours, cargos): (Vec<_>, Vec<_>) =
        order.words.iter().partition(|word| [WITH_STD, SYMBOLIC].map(OsStr::new).contains(&word.as_os_str()));
    let symbolic = ours.iter().any(|word| *word == SYMBOLIC);
    // Cargo cannot tell from its own options that an executable is symbolic.
    let target = if symbolic { workspace.target.join("symbolic") } else { workspace.target.clone() };
    command.arg("--target-dir").arg(target).args(cargos).args(order.cargo.words());
    command.args(["--color", order.color.word()]);
    if order.quiet {
        command.arg("--quiet");
    }
    // Reports name functions and lines, for which a release build has no debug information by default.
    command.env("CARGO_PROFILE_RELEASE_STRIP", "none");
    const RELEASE_DEBUG: &str = "CARGO_PROFILE_RELEASE_DEBUG";
    if !workspace.release_debug && std::env::var_os(RELEASE_DEBUG).is_none() {
        command.env(RELEASE_DEBUG, "line-tables-only");
    }
    if ours.is_empty() {
        flags::add(&mut command, &instrument::rust_flags()?);
    } else {
        let whole = StdBuild::new(&rustc(), flags::linker().unwrap_or_else(|| "cc".into()))?;
        let whole = if symbolic { whole.symbolic() } else { whole };
        flags::add(&mut command, &whole.flags);
        command.envs(whole.environment).envs(across_crates(order.words));
    }
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(|e| no_cargo(&e))?;
    let mut found = Found::default();
    for line in BufReader::new(child.stdout.take().expect("a pipe")).lines() {
        let Ok(line) = line else { break };
        if let Ok(message) = serde_json::from_str(&line) {
            found.take(&message, workspace, order.mode);
        }
    }
    let status = child.wait().map_err(|e| Error::Internal(format!("cargo cannot be waited for: {e}")))?;
    if !status.success() {
        return Err(Failure::Reported);
    }
    Ok(found.finish())
}

/// Variables that make cargo optimise across crates in every profile.
fn across_crates(words: &[OsString]) -> impl Iterator<Item = (String, &'static str)> {
    let named = words.windows(2).filter(|pair| pair[0] == "--profile").map(|pair| pair[1].to_string_lossy());
    let named: Vec<String> = named.map(|name| name.to_uppercase().replace('-', "_")).collect();
    let all = ["DEV", "TEST", "RELEASE", "BENCH"].map(str::to_owned).into_iter().chain(named);
    let lto = all.map(|profile| (format!("CARGO_PROFILE_{profile}_LTO"), "fat"));
    // The compiler does not combine optimisation across crates with incremental builds.
    lto.chain([("CARGO_INCREMENTAL".to_owned(), "0")])
}

/// The Rust compiler that cargo uses.
fn rustc() -> OsString {
    std::env::var_os("RUSTC").filter(|value| !value.is_empty()).unwrap_or_else(|| "rustc".into())
}

/// The executables and libraries that cargo has reported so far.
#[derive(Default)]
struct Found {
    executables: BTreeMap<(String, PathBuf), Executable>,
    /// Directories where build scripts have put libraries.
    libraries: Vec<PathBuf>,
}

impl Found {
    fn take(&mut self, message: &Value, workspace: &Workspace, mode: Mode) {
        let strings = |value: &Value| -> Vec<String> {
            value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        match message["reason"].as_str() {
            Some("build-script-executed") => {
                for path in strings(&message["linked_paths"]) {
                    let path = path.split_once('=').map_or(path.as_str(), |(_, path)| path);
                    if Path::new(path).starts_with(&workspace.target) {
                        self.libraries.push(path.into());
                    }
                }
            }
            Some("compiler-artifact") => {
                // With tests, cargo also builds the programs of their package, because tests may need them.
                // They are not listed here.
                let wanted = message["profile"]["test"] == (mode == Mode::Tests);
                let Some(path) = message["executable"].as_str().filter(|_| wanted) else { return };
                let Some(package) = message["package_id"].as_str().and_then(|id| workspace.package(id))
                else {
                    return;
                };
                let target = &message["target"];
                let name = target["name"].as_str().unwrap_or_default().to_owned();
                let kind = match strings(&target["kind"]).first().map(String::as_str) {
                    Some(kind @ ("bin" | "test" | "example" | "bench" | "proc-macro")) => kind.to_owned(),
                    // A library of any type.
                    _ => "lib".to_owned(),
                };
                let source = PathBuf::from(target["src_path"].as_str().unwrap_or_default());
                let table = if kind == "proc-macro" { "lib" } else { &kind };
                let executable = Executable {
                    path: path.into(),
                    package: package.name.clone(),
                    own_main: package.has_own_main(table, &name),
                    default_run: package.default_run.as_ref() == Some(&name),
                    source: source.strip_prefix(package.directory()).unwrap_or(&source).to_owned(),
                    directory: package.directory().to_owned(),
                    environment: package.environment(),
                    name,
                    kind,
                };
                self.executables.insert((executable.id(), executable.path.clone()), executable);
            }
            _ => {}
        }
    }

    /// Sets the library path of each executable.
    fn finish(self) -> Vec<Executable> {
        let Found { executables, libraries } = self;
        let standard = standard_library();
        let set = |mut executable: Executable| {
            // In cargo's order: first libraries of build scripts, then the executable's directory (for a
            // test, `deps`) and its parent.
            let own = executable.path.ancestors().skip(1).take(2).map(Path::to_owned);
            let inherited = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
            let inherited = std::env::split_paths(&inherited).filter(|path| !path.as_os_str().is_empty());
            let all = libraries.iter().cloned().chain(own).chain(standard.clone()).chain(inherited);
            let joined = std::env::join_paths(all).unwrap_or_default();
            executable.environment.push((OsStr::new("LD_LIBRARY_PATH").into(), joined));
            executable
        };
        executables.into_values().map(set).collect()
    }
}

/// The directory of Rust's shared standard library, with which tests of procedural macros are linked.
fn standard_library() -> Option<PathBuf> {
    let output =
        Command::new(rustc()).args(["--print", "target-libdir"]).stderr(Stdio::null()).output().ok()?;
    let path = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| path.trim_end().into())
}
