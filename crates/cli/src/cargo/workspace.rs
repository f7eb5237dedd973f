//! What cargo knows of the packages around: `cargo metadata`, and the little of a manifest that it does not tell.

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
    /// Where everything of ours goes: `heisen` in the target directory.
    pub target: PathBuf,
    /// Whether the release profile says what of debug information is wanted.
    pub release_debug: bool,
}

/// One of them.
#[derive(Debug)]
pub struct Package {
    /// As cargo's messages name it.
    id: String,
    pub name: String,
    pub manifest: PathBuf,
    /// The binary that `cargo run` takes.
    pub default_run: Option<String>,
    /// Fields that programs may ask for at run time, by the ends of their variables' names.
    fields: Vec<(&'static str, String)>,
}

/// Cargo itself: the one that has started us, if one has.
pub fn cargo() -> Command {
    let cargo = std::env::var_os("CARGO").filter(|value| !value.is_empty());
    let mut command = Command::new(cargo.unwrap_or_else(|| "cargo".into()));
    command.stdin(Stdio::null());
    command
}

/// An error of starting cargo.
pub fn no_cargo(error: &std::io::Error) -> Failure {
    Error::Input(format!("cargo cannot be started: {error}; install Rust, or set CARGO to its path")).into()
}

/// A manifest. What cargo has read is right.
fn manifest(path: &Path) -> toml::Table {
    std::fs::read_to_string(path).unwrap_or_default().parse().unwrap_or_default()
}

impl Workspace {
    /// Asks cargo, which says itself what is wrong.
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

    /// The package of an artifact.
    pub fn package(&self, id: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.id == id)
    }

    /// Where schedules go.
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

    /// Where its manifest is, which is where cargo runs its tests.
    pub fn directory(&self) -> &Path {
        self.manifest.parent().unwrap_or(Path::new("."))
    }

    /// The variables that cargo gives to programs that it runs.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        let field = |(name, value): &(&str, String)| (format!("CARGO_PKG_{name}").into(), value.into());
        let mut all: Vec<(OsString, OsString)> = self.fields.iter().map(field).collect();
        all.push(("CARGO_MANIFEST_DIR".into(), self.directory().into()));
        all.push(("CARGO_MANIFEST_PATH".into(), (&self.manifest).into()));
        all.push(("CARGO".into(), cargo().get_program().to_owned()));
        all
    }

    /// Whether a target has a `main` of its own in place of the standard harness for tests. Cargo does not tell.
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
