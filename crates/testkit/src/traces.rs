//! Collects everything that a check reports of its executions, so that tests can compare two checks.

use super::{run, saved_search, timeless};
use serde_json::Value;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

/// Everything that a check reports.
#[derive(Debug, PartialEq)]
pub struct Traces {
    /// The result.
    pub result: Value,
    /// The saved search. It holds each happens-before class by its hash, with the fewest preemptions it was
    /// seen with. It also holds the pairs of places in the code that followed each other, how all of that
    /// grew, and the state of the strategy. For `dpor` that state is each step of an execution with its
    /// touches; for `icb` the remaining plans, with hashes of their prefixes.
    pub search: Value,
}

impl Traces {
    /// The first difference between two checks, as text.
    pub fn difference(&self, other: &Traces) -> String {
        let parts = [("result", &self.result, &other.result), ("search", &self.search, &other.search)];
        let found = parts.iter().find_map(|(name, one, other)| difference(name, one, other));
        found.unwrap_or_else(|| "none".into())
    }
}

fn difference(at: &str, one: &Value, other: &Value) -> Option<String> {
    match (one, other) {
        _ if one == other => None,
        (Value::Object(one), Value::Object(other)) if one.keys().eq(other.keys()) => {
            one.iter().find_map(|(name, value)| difference(&format!("{at}.{name}"), value, &other[name]))
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            let mut values = one.iter().zip(other).enumerate();
            values.find_map(|(index, (one, other))| difference(&format!("{at}[{index}]"), one, other))
        }
        _ => Some(format!("{at} is {one} and {other}")),
    }
}

/// How the executions of a check were run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ways {
    /// How many executions the check has run.
    pub executions: u64,
    /// How many of them were undone in a runner.
    pub undone: u64,
    /// How many of the undone ones began at a later snapshot.
    pub ahead: u64,
}

/// The options that make a check write all reports into files in this directory.
pub fn tell_all(directory: &Path) -> Vec<OsString> {
    let options = [("--json", RESULT), ("--save", SEARCH), ("--coverage", COVERAGE)];
    options.iter().flat_map(|(option, name)| [option.into(), directory.join(name).into()]).collect()
}

/// Runs a `heisen check` command with the options of [`tell_all`]. Leaves out what depends on time and on how
/// executions were run.
#[track_caller]
pub fn traces(directory: &Path, command: &mut Command) -> (Traces, Ways) {
    let ran = run(command);
    assert!(ran.code == 0 || ran.code == 1, "{command:?}: {} {}", ran.out, ran.err);
    let text = std::fs::read_to_string(directory.join(RESULT)).expect("a result");
    let result: Value = serde_json::from_str(&text).expect("JSON");
    let search = saved_search(&directory.join(SEARCH)).expect("a search");
    let number = |field: &str| result[field].as_u64().expect("a number");
    let ways = Ways { executions: number("executions"), undone: number("undone"), ahead: number("ahead") };
    (Traces { result: timeless(result), search: comparable(search) }, ways)
}

const RESULT: &str = "result.json";
const SEARCH: &str = "search.json";
const COVERAGE: &str = "coverage.json";

/// A saved search without times and without how executions were run. Its sets are sorted.
fn comparable(mut saved: Value) -> Value {
    let take = |from: &mut Value, field: &str| {
        from.as_object_mut().and_then(|fields| fields.remove(field)).unwrap_or_else(|| panic!("no {field}"))
    };
    take(&mut saved["options"], "in_process");
    let tally = &mut saved["tally"];
    for field in ["time", "undone", "ahead", "skipped", "forked"] {
        take(tally, field);
    }
    for sample in tally["coverage"]["growth"].as_array_mut().expect("a list") {
        take(sample, "seconds");
    }
    for set in ["classes", "keys"] {
        sort(&mut tally[set]);
    }
    for set in ["classes", "races", "sync_pairs", "location_pairs"] {
        sort(&mut tally["coverage"][set]);
    }
    saved
}

fn sort(set: &mut Value) {
    set.as_array_mut().expect("a list").sort_by_cached_key(Value::to_string);
}
