//! Defines the file that `heisen check --coverage` writes and `heisen coverage` draws. It is JSON, and small
//! because it contains only counts.

use crate::check::{Options, Outcome};
use crate::error::{Error, Result};
use crate::platform::atomic_file;
use crate::program::Program;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io::ErrorKind;
use std::path::Path;

/// The version of the format; other versions are refused.
const VERSION: u64 = 1;
/// The field with the version, by which such a file is recognised.
const FIELD: &str = "heisen_coverage";

/// The number of distinct items seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Happens-before classes: executions with the same happens-before graph.
    pub classes: u64,
    /// Racing pairs of accesses.
    pub races: u64,
    /// Pairs of operations of different threads, one directly after the other, on an object that is not
    /// memory.
    pub sync_pairs: u64,
    /// The same for memory accesses.
    pub location_pairs: u64,
}

/// The counts within a number of preemptions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Within {
    /// The largest number of preemptions.
    pub preemptions: u32,
    /// Executions with at most so many preemptions.
    pub executions: u64,
    /// The items that they showed.
    #[serde(flatten)]
    pub counts: Counts,
}

/// The counts after a number of executions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The number of executions.
    pub executions: u64,
    /// Seconds since the search began.
    pub seconds: f64,
    /// The items that they showed.
    #[serde(flatten)]
    pub counts: Counts,
}

/// The coverage of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    heisen_coverage: u64,
    /// The program's name.
    pub program: String,
    /// The strategy, as named on the command line.
    pub strategy: String,
    /// Whether equivalent executions were dropped.
    pub reduce: bool,
    /// The seed, for samplers.
    pub seed: Option<u64>,
    /// The largest preemption bound explored fully, for icb.
    pub bound: Option<u32>,
    /// Whether all schedules were explored.
    #[serde(rename = "whole")]
    pub exhaustive: bool,
    /// Whether races were looked for in an instrumented program.
    pub race_check: bool,
    /// How often counting began anew because there were new scheduling points.
    pub restarts: u64,
    /// Counts by number of preemptions, ascending.
    pub bounds: Vec<Within>,
    /// Counts by number of executions, ascending; the last covers all executions.
    pub growth: Vec<Sample>,
}

impl Record {
    /// The record of a finished search; `None` if coverage was not counted.
    pub fn new(program: &Program, options: &Options, outcome: &Outcome) -> Option<Record> {
        let coverage = outcome.tally.coverage.as_ref()?;
        let mut growth = coverage.growth.clone();
        let last = coverage.sample(outcome.tally.time);
        if growth.last().is_some_and(|sample| sample.executions < last.executions) {
            growth.push(last);
        }
        let accesses = &options.world.accesses;
        Some(Record {
            heisen_coverage: VERSION,
            program: program.short_name(),
            strategy: serde_json::to_value(options.strategy).ok()?.as_str()?.to_owned(),
            reduce: options.reduces(program),
            seed: options.strategy.samples().then_some(options.seed),
            bound: outcome.preemption_bound(),
            exhaustive: outcome.status.exhaustive && outcome.complete(),
            race_check: outcome.tally.instrumented && accesses.check,
            restarts: coverage.restarts,
            bounds: coverage.within(),
            growth,
        })
    }

    /// The counts of all executions.
    pub fn total(&self) -> Sample {
        let none = Sample { executions: 0, seconds: 0.0, counts: Counts::default() };
        self.growth.last().copied().unwrap_or(none)
    }

    /// The smallest number of preemptions within which this share of the classes lies.
    pub fn bound_for(&self, share: f64) -> Option<u32> {
        let wanted = share * self.total().counts.classes as f64;
        self.bounds.iter().find(|within| within.counts.classes as f64 >= wanted).map(|w| w.preemptions)
    }

    /// Writes the file completely or not at all.
    pub fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)
            .map_err(|e| Error::Internal(format!("the coverage cannot be written: {e}")))?;
        atomic_file::write(path, (text + "\n").as_bytes())
    }

    /// Reads a coverage file.
    pub fn read(path: &Path) -> Result<Record> {
        let shown = path.display();
        let input = |text: String| Err(Error::Input(text));
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == ErrorKind::NotFound => {
                return input(format!(
                    "{shown}: not found; name a file that heisen check --coverage has written"
                ));
            }
            Err(e) if e.kind() == ErrorKind::IsADirectory => {
                return input(format!("{shown} is a directory, not a record of coverage; name a file in it"));
            }
            Err(e) => return input(format!("{shown}: {e}")),
        };
        let again = "write it again with heisen check --coverage";
        let value: Value = match serde_json::from_slice(&bytes) {
            Ok(value) => value,
            Err(e) if e.is_eof() && bytes.trim_ascii_start().first() == Some(&b'{') => {
                return input(format!("{shown} is truncated; {again}"));
            }
            Err(_) => return input(format!("{shown} is not a record of coverage; {again}")),
        };
        match value.get(FIELD).and_then(Value::as_u64) {
            Some(VERSION) => {}
            Some(other) => {
                return input(format!(
                    "{shown} has version {other} of the format, this Heisen reads {VERSION}; {again}"
                ));
            }
            None => return input(format!("{shown} is not a record of coverage; {again}")),
        }
        let damaged = |why: String| Error::Input(format!("{shown} is damaged: {why}; {again}"));
        let record: Record = serde_json::from_value(value).map_err(|e| damaged(e.to_string()))?;
        record.check().map_err(|why| damaged(why.to_owned()))?;
        if record.total().executions == 0 {
            return input(format!("{shown} is of a check without a finished execution; let it run longer"));
        }
        Ok(record)
    }

    /// Whether the numbers are consistent.
    fn check(&self) -> std::result::Result<(), &'static str> {
        let bounds = |pair: &[Within]| {
            pair[0].preemptions < pair[1].preemptions
                && pair[0].executions < pair[1].executions
                && pair[0].counts.grows_to(&pair[1].counts)
        };
        let growth = |pair: &[Sample]| {
            pair[0].executions < pair[1].executions && pair[0].counts.grows_to(&pair[1].counts)
        };
        if !self.bounds.windows(2).all(bounds) || !self.growth.windows(2).all(growth) {
            return Err("numbers that can only grow do not");
        }
        let end = self.bounds.last().map(|within| (within.executions, within.counts));
        if end != self.growth.last().map(|sample| (sample.executions, sample.counts)) {
            return Err("the totals by preemptions and over executions differ");
        }
        if self.growth.first().is_some_and(|sample| sample.executions == 0) {
            return Err("a sample without an execution");
        }
        Ok(())
    }
}

impl Counts {
    fn grows_to(&self, later: &Counts) -> bool {
        self.classes <= later.classes
            && self.races <= later.races
            && self.sync_pairs <= later.sync_pairs
            && self.location_pairs <= later.location_pairs
    }
}
