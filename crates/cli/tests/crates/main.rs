//! Checks published crates that others wrote with ordinary tests, by `cargo heisen test` and `cargo heisen
//! replay`.
//!
//! - Current versions are clean, and exploring them twice gives the same result.
//! - Published bugs of old versions are found and replayed. They are gone in the versions that fixed them.
//! - The own tests of crates pass in symbolic builds.
//!
//! This test is a command of its own, because cargo downloads the crates and it takes a while:
//!
//! ```sh
//! cargo test -p heisen-cli --test crates -- --ignored [CRATE...]
//! ```
//!
//! With `HEISEN_BLESS=1` a run of all crates writes the tables of `docs/evidence/crates.md`. Otherwise the
//! tables must match the results, except for the times.

mod cases;
mod own_tests;

use cases::{BUGS, Bug, SMOKE, Smoke};
use heisen_testkit::{Ran, root, run, scratch};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The preemption bound of all searches.
const BOUND: u64 = 2;

/// The reason why a case fails.
type Failure = String;

/// The cells of a table row; the last is the time.
type Row = Vec<String>;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let given = |option: &str| args.iter().any(|arg| arg == option);
    if given("--list") {
        return;
    }
    if !given("--ignored") {
        println!("ignored; to run: cargo test -p heisen-cli --test crates -- --ignored");
        return;
    }
    let names: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    let chosen = |test: &str| names.is_empty() || names.iter().any(|name| name.replace('-', "_") == test);

    let smoke = SMOKE.iter().filter(|case| chosen(case.test)).map(|case| (case.test, clean(case)));
    let smoke = tell(smoke);
    let bugs = BUGS.iter().filter(|bug| chosen(bug.test)).map(|bug| (bug.test, found(bug)));
    let bugs = tell(bugs);
    let own = own_tests::OWN.iter().filter(|name| chosen(name)).map(|name| (*name, own_tests::pass(name)));
    let own = tell(own);
    let failed = [&smoke, &bugs, &own].into_iter().flatten().filter(|row| row.is_none()).count();
    if failed > 0 {
        println!("{failed} failed");
        std::process::exit(1);
    }
    if names.is_empty() {
        document(&[("smoke", smoke.into_iter().flatten()), ("bugs", bugs.into_iter().flatten())]);
    }
}

/// Runs cases and prints the result of each.
fn tell<'a>(cases: impl Iterator<Item = (&'a str, Result<Row, Failure>)>) -> Vec<Option<Row>> {
    let told = cases.map(|(name, result)| match result {
        Ok(row) => {
            println!("{}", line(&row));
            Some(row)
        }
        Err(failure) => {
            println!("{name}: FAILED: {failure}");
            None
        }
    });
    told.collect()
}

/// Checks that a current version has no finding, twice with the same result.
fn clean(case: &Smoke) -> Result<Row, Failure> {
    let (first, seconds) = explore("smoke", case.test, case.executions)?;
    let (second, _) = explore("smoke", case.test, case.executions)?;
    for field in ["verdict", "executions", "steps", "preemption_bound", "not_controlled"] {
        if first[field] != second[field] {
            return Err(format!("{field} is {} and then {}", first[field], second[field]));
        }
    }
    is_clean(&first, case.executions)?;
    let (name, version) = locked("smoke", case.test);
    Ok(vec![
        name,
        version,
        case.operations.to_owned(),
        bound(&first, case.executions),
        first["executions"].to_string(),
        seconds,
    ])
}

/// Checks that the bug of an old version is found, that its schedule replays, and that the fixed version does
/// not have it.
fn found(bug: &Bug) -> Result<Row, Failure> {
    let place = scratch();
    let (result, seconds) = explore_into(place.path(), "old", bug.test, None)?;
    // A data race may be found together with its consequence.
    let says = |finding: &&Value| finding["message"].as_str().is_some_and(|text| text.contains(bug.message));
    let finding = result["findings"].as_array().and_then(|findings| findings.iter().find(says));
    let finding = finding.ok_or_else(|| format!("the bug of the old version is not found: {result:#}"))?;
    let schedule = finding["schedule"].as_str().unwrap_or_default();
    let replayed = cargo_heisen("old", &["replay", schedule]);
    if replayed.code != 1 || !replayed.out.contains(bug.message) {
        return Err(format!("the replay says something else: {}{}", replayed.out, replayed.err));
    }
    let (fixed, _) = explore("fixed", bug.test, bug.executions)?;
    is_clean(&fixed, bug.executions)?;
    let (name, version) = locked("old", bug.test);
    Ok(vec![
        name,
        version,
        bug.published.to_owned(),
        format!("{}: {}", finding["kind"].as_str().unwrap_or_default(), bug.message.replace('|', "\\|")),
        finding["preemptions"].to_string(),
        finding["executions_to_find"].to_string(),
        locked("fixed", bug.test).1,
        format!("{} ({})", fixed["executions"], bound(&fixed, bug.executions)),
        seconds,
    ])
}

/// Whether nothing was found and the search went far enough.
fn is_clean(result: &Value, executions: Option<u64>) -> Result<(), Failure> {
    let explored = result["preemption_bound"].as_u64() == Some(BOUND);
    let enough = explored || executions.is_some_and(|limit| result["executions"].as_u64() == Some(limit));
    if result["findings"].as_array().is_some_and(Vec::is_empty) && result["diverged"] == 0 && enough {
        return Ok(());
    }
    Err(format!("not clean: {result:#}"))
}

/// The bound that a search has explored.
fn bound(result: &Value, executions: Option<u64>) -> String {
    match result["preemption_bound"].as_u64() {
        Some(bound) if executions.is_none() || bound == BOUND => bound.to_string(),
        Some(bound) => format!("{bound}, the next in part"),
        None => "0 in part".to_owned(),
    }
}

/// Explores a test of a package, and discards everything that is stored between checks.
fn explore(package: &str, test: &str, executions: Option<u64>) -> Result<(Value, String), Failure> {
    explore_into(scratch().path(), package, test, executions)
}

/// Explores a test with its output in `place`. Returns the result, and the time in seconds.
fn explore_into(
    place: &Path,
    package: &str,
    test: &str,
    executions: Option<u64>,
) -> Result<(Value, String), Failure> {
    let output = place.display().to_string();
    let bound = BOUND.to_string();
    let mut args = vec!["test", "--locked", "-q", "--json", "-", "-o", &output, "--races", "--bound", &bound];
    let limit = executions.map(|executions| executions.to_string());
    if let Some(limit) = &limit {
        args.extend(["--executions", limit]);
    }
    args.extend(["--exact", test]);
    let ran = cargo_heisen(package, &args);
    let result = ran.out.lines().find_map(|line| serde_json::from_str::<Value>(line).ok());
    let result = result.ok_or_else(|| format!("no result: {}{}", ran.out, ran.err))?;
    let seconds = format!("{:.1}", result["seconds"].as_f64().unwrap_or_default());
    Ok((result, seconds))
}

/// Runs `cargo heisen` in a package, with a time limit.
fn cargo_heisen(package: &str, args: &[&str]) -> Ran {
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", "600", heisen_testkit::cargo_heisen_path(), "heisen"]).args(args);
    command.current_dir(directory(package));
    for variable in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_RUSTFLAGS", "CARGO_TARGET_DIR"] {
        command.env_remove(variable);
    }
    run(&mut command)
}

/// The directory of a package.
fn directory(package: &str) -> PathBuf {
    root().join("crates/cli/tests/crates").join(package)
}

/// The name of a test's crate, and its version in the lock file of the package. For std it is the compiler's
/// version.
fn locked(package: &str, test: &str) -> (String, String) {
    if let Some(module) = test.strip_prefix("std_") {
        let ran = run(Command::new("rustc").arg("--version"));
        return (format!("std {module}"), ran.out.split(' ').nth(1).unwrap_or("unknown").to_owned());
    }
    let lock = std::fs::read_to_string(directory(package).join("Cargo.lock")).expect("a lock file");
    let found = lock.split("[[package]]").find_map(|entry| {
        let field = |key: &str| entry.lines().find_map(|line| line.strip_prefix(key));
        let text = |key: &str| field(key).map(|value| value.trim_matches('"').to_owned());
        let name = text("name = ")?;
        (name.replace('-', "_") == test).then(|| Some((name, text("version = ")?)))?
    });
    found.unwrap_or_else(|| panic!("{package} has no crate of the test {test}"))
}

/// A row as a line of a table.
fn line(row: &Row) -> String {
    format!("| {} |", row.join(" | "))
}

/// Compares the tables of the document with the results, or writes them.
fn document<R: Iterator<Item = Row> + Clone>(tables: &[(&str, R)]) {
    let path = root().join("docs/evidence/crates.md");
    let old = std::fs::read_to_string(&path).expect("docs/evidence/crates.md");
    let mut new = old.clone();
    for (name, rows) in tables {
        let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->"));
        let from = new.find(&begin).expect("a table begins") + begin.len();
        let to = new.find(&end).expect("a table ends");
        let head: String = new[from..to].lines().take(2).map(|line| format!("{line}\n")).collect();
        let body: String = rows.clone().map(|row| line(&row) + "\n").collect();
        new.replace_range(from..to, &(head + &body));
    }
    if std::env::var_os("HEISEN_BLESS").is_some() {
        std::fs::write(&path, new).expect("docs/evidence/crates.md is written");
    } else if untimed(&old) != untimed(&new) {
        println!("docs/evidence/crates.md says something else; HEISEN_BLESS=1 writes its tables anew");
        std::process::exit(1);
    }
}

/// The text without the last cell of each row.
fn untimed(text: &str) -> Vec<&str> {
    text.lines()
        .map(|line| line.strip_suffix(" |").and_then(|l| l.rsplit_once(" | ")).map_or(line, |(l, _)| l))
        .collect()
}
