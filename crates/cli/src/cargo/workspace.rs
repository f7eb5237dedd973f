//! Describes the packages of a workspace, from `cargo metadata` and, where that lacks a field, from
//! manifests.

use super::{Failure, args::Cargo};
use heisen_engine::Error;
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The packages of a workspace.
#[derive(Debug)]
pub struct Workspace {
    packages: Vec<Package>,
    /// The directory for everything that Heisen builds or writes: `heisen` in the target directory.
    pub target: PathBuf,
    /// Whether the release profile sets `debug`.
    pub release_debug: bool,
}

/// A package of a workspace.
#[derive(Debug)]
pub struct Package {
    /// The id by which cargo's messages name the package.
    id: String,
    pub name: String,
    pub manifest: PathBuf,
    /// The binary that `cargo run` runs by default.
    pub default_run: Option<String>,
    /// Fields that cargo passes to programs in variables: the name of the variable without `CARGO_PKG_`, and
    /// the value.
    fields: Vec<(&'static str, String)>,
}

/// A command for cargo: the cargo that has started this process, if any.
pub fn cargo() -> Command {
    let cargo = std::env::var_os("CARGO").filter(|value| !value.is_empty());
    let mut command = Command::new(cargo.unwrap_or_else(|| "cargo".into()));
    command.stdin(Stdio::null());
    command
}

/// The error if cargo cannot be started.
pub fn no_cargo(error: &std::io::Error) -> Failure {
    Error::Input(format!("cargo cannot be started: {error}; install Rust, or set CARGO to its path")).into()
}

/// Reads a manifest. Cargo has checked it already, so errors are ignored.
fn manifest(path: &Path) -> toml::Table {
    std::fs::read_to_string(path).unwrap_or_default().parse().unwrap_or_default()
}

impl Workspace {
    /// Asks cargo for the workspace. Cargo itself prints what is wrong.
    pub fn find(args: &Cargo) -> Result<Workspace, Failure> {
        let output = cargo()
            .args(["metadata", "--format-version=1", "--no-deps", "--quiet"])
            .args(args.words())
            .stderr(Stdio::inherit())
            .output()
            .map_err(|e| no_cargo(&e))?;
        if !output.status.success() {
            return Err(Failure::Reported);
        }
        let strange = || Error::Internal("cargo metadata did not give what was expected".into());
        let metadata: Value = serde_json::from_slice(&output.stdout).map_err(|_| strange())?;
        let packages = metadata["packages"].as_array().ok_or_else(strange)?;
        let target = match &args.target_dir {
            Some(target) => std::path::absolute(target)
                .map_err(|e| Error::Input(format!("--target-dir {}: {e}", target.display())))?,
            None => metadata["target_directory"].as_str().ok_or_else(strange)?.into(),
        };
        let root = Path::new(metadata["workspace_root"].as_str().unwrap_or_default()).join("Cargo.toml");
        let release = manifest(&root).get("profile").and_then(|all| all.get("release")).cloned();
        Ok(Workspace {
            packages: packages.iter().map(Package::new).collect(),
            target: target.join("heisen"),
            release_debug: release.is_some_and(|release| release.get("debug").is_some()),
        })
    }

    /// The package with this id.
    pub fn package(&self, id: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.id == id)
    }

    /// The default directory for schedule files.
    pub fn schedules(&self) -> PathBuf {
        self.target.join("schedules")
    }
}

impl Package {
    fn new(value: &Value) -> Package {
        let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
        let version = text("version");
        let (numbers, pre) = version.split_once('-').unwrap_or((&version, ""));
        let mut numbers = numbers.split(['.', '+']).map(str::to_owned);
        let mut number = || numbers.next().unwrap_or_default();
        let authors: Vec<&str> =
            value["authors"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let fields = vec![
            ("VERSION_MAJOR", number()),
            ("VERSION_MINOR", number()),
            ("VERSION_PATCH", number()),
            ("VERSION_PRE", pre.split('+').next().unwrap_or_default().to_owned()),
            ("VERSION", version.clone()),
            ("NAME", text("name")),
            ("AUTHORS", authors.join(":")),
            ("DESCRIPTION", text("description")),
            ("HOMEPAGE", text("homepage")),
            ("REPOSITORY", text("repository")),
            ("LICENSE", text("license")),
            ("LICENSE_FILE", text("license_file")),
            ("RUST_VERSION", text("rust_version")),
            ("README", text("readme")),
        ];
        Package {
            id: text("id"),
            name: text("name"),
            manifest: text("manifest_path").into(),
            default_run: value["default_run"].as_str().map(str::to_owned),
            fields,
        }
    }

    /// The directory of its manifest, in which cargo runs its tests.
    pub fn directory(&self) -> &Path {
        self.manifest.parent().unwrap_or(Path::new("."))
    }

    /// The variables that cargo sets for programs that it runs.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        let field = |(name, value): &(&str, String)| (format!("CARGO_PKG_{name}").into(), value.into());
        let mut all: Vec<(OsString, OsString)> = self.fields.iter().map(field).collect();
        all.push(("CARGO_MANIFEST_DIR".into(), self.directory().into()));
        all.push(("CARGO_MANIFEST_PATH".into(), (&self.manifest).into()));
        all.push(("CARGO".into(), cargo().get_program().to_owned()));
        all
    }

    /// Whether a target has its own `main` instead of the standard test harness. `cargo metadata` does not
    /// say.
    pub fn has_own_main(&self, kind: &str, name: &str) -> bool {
        let manifest = manifest(&self.manifest);
        let without_harness =
            |target: &toml::Value| target.get("harness").and_then(toml::Value::as_bool) == Some(false);
        match manifest.get(kind) {
            Some(toml::Value::Array(targets)) => targets.iter().any(|target| {
                target.get("name").and_then(toml::Value::as_str) == Some(name) && without_harness(target)
            }),
            Some(target) => without_harness(target),
            None => false,
        }
    }
}
