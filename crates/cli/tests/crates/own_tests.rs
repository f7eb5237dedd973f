//! The own tests of crates that others wrote, in symbolic builds: each passes with a symbolic trace, and without Heisen.

use crate::{Failure, Row, directory};
use heisen_testkit::{run, scratch};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The crates: the dependencies of the package `own`.
pub const OWN: &[&str] = &["arrayvec", "fnv", "scopeguard", "shlex", "strsim"];

/// How the reason begins that names what a trace does not say.
const MISSING: &str = "paths may be missing: ";

/// Runs the tests of a crate. Returns its version, the number of its tests, and what was lost.
pub fn pass(name: &str) -> Result<Row, Failure> {
    let (version, source) = source(name)?;
    let place = scratch();
    let copied = Command::new("cp").arg("-rT").arg(&source).arg(place.path()).status();
    if !copied.is_ok_and(|status| status.success()) {
        return Err(format!("{} cannot be copied", source.display()));
    }
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", "1200", heisen_testkit::cargo_heisen_path(), "heisen", "test", "-q"]);
    command.args(["--strategy", "causal", "--executions", "1", "--json", "-"]).current_dir(place.path());
    command.env_remove("CARGO_TARGET_DIR");
    let ran = run(&mut command);
    let results: Vec<Value> = ran.out.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let fails = |result: &&Value| result["findings"].as_array().is_none_or(|all| !all.is_empty());
    if let Some(failed) = results.iter().find(fails) {
        return Err(format!("a test fails: {failed:#}"));
    }
    if ran.code != 0 || results.is_empty() {
        return Err(format!("exit code {}: {}{}", ran.code, ran.out, ran.err));
    }
    let said = results.iter().filter_map(|result| result["not_controlled"].as_array()).flatten();
    let lost: BTreeSet<&str> = said.filter_map(|said| said.as_str()?.strip_prefix(MISSING)).collect();
    let programs: BTreeSet<&str> = results.iter().filter_map(|result| result["program"].as_str()).collect();
    for program in programs {
        let alone = run(Command::new(program).current_dir(place.path()));
        if alone.code != 0 {
            return Err(format!("without Heisen {program} fails: {}", alone.out));
        }
    }
    let lost = lost.into_iter().collect::<Vec<_>>().join("; ");
    Ok(vec![name.to_owned(), version, results.len().to_string(), lost])
}

/// The version and the directory of a crate, which cargo has downloaded.
fn source(name: &str) -> Result<(String, PathBuf), Failure> {
    let mut command = Command::new("cargo");
    command.args(["metadata", "--locked", "--format-version", "1"]).current_dir(directory("own"));
    let ran = run(&mut command);
    let metadata: Value = serde_json::from_str(&ran.out).map_err(|error| format!("{error}: {}", ran.err))?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let found = packages.into_iter().find(|package| package["name"] == name);
    let text = |field: &str| found.and_then(|package| package[field].as_str());
    let version = text("version").ok_or_else(|| format!("no crate {name}"))?;
    let manifest = Path::new(text("manifest_path").unwrap_or_default());
    Ok((version.to_owned(), manifest.parent().unwrap_or(manifest).to_owned()))
}
