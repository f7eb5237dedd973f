//! The file that `heisen check --coverage` writes and `heisen coverage` draws: counts only, so it is small, as JSON.

use crate::check::{Options, Outcome};
use crate::error::{Error, Result};
use crate::platform::atomic_file;
use crate::program::Program;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io::ErrorKind;
use std::path::Path;

/// The version of the format; another one is refused.
const VERSION: u64 = 1;
/// The field that holds it, and by which such a file is known.
const FIELD: &str = "heisen_coverage";

/// Distinct things that were seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Classes of equivalent executions: those with the same happens-before graph.
    pub classes: u64,
    /// Pairs of accesses that race.
    pub races: u64,
    /// Pairs of operations at an object that is not memory, of different threads, one directly after the other.
    pub sync_pairs: u64,
    /// The same for accesses of memory.
    pub location_pairs: u64,
}

/// What was seen within a number of preemptions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Within {
    /// At most so many.
    pub preemptions: u32,
    /// Executions with at most so many.
    pub executions: u64,
    /// What they showed.
    #[serde(flatten)]
    pub counts: Counts,
}

/// What was seen after a number of executions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// So many.
    pub executions: u64,
    /// So long after the search began.
    pub seconds: f64,
    /// What they showed.
    #[serde(flatten)]
    pub counts: Counts,
}

/// What a search has covered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    heisen_coverage: u64,
    /// The program's name.
    pub program: String,
    /// The strategy, as it is named on the command line.
    pub strategy: String,
    /// Whether equivalent executions were left out.
    pub reduce: bool,
    /// The seed, of strategies that sample.
    pub seed: Option<u64>,
    /// The largest preemption bound fully explored, of icb.
    pub bound: Option<u32>,
    /// Whether all schedules were explored.
    pub whole: bool,
    /// Whether races were looked for, in a program that shows its accesses.
    pub race_check: bool,
    /// How often counting began anew, as there were more scheduling points.
    pub restarts: u64,
    /// By preemptions, in their order.
    pub bounds: Vec<Within>,
    /// Over executions, in their order; the last is all of them.
    pub growth: Vec<Sample>,
}

impl Record {
    /// The record of a search that has ended; none if it did not count.
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
            whole: outcome.status.whole && outcome.complete(),
            race_check: outcome.tally.instrumented && accesses.check,
            restarts: coverage.restarts,
            bounds: coverage.within(),
            growth,
        })
    }

    /// All that was seen.
    pub fn total(&self) -> Sample {
        let none = Sample { executions: 0, seconds: 0.0, counts: Counts::default() };
        self.growth.last().copied().unwrap_or(none)
    }

    /// The fewest preemptions within which so large a share of the classes lies.
    pub fn bound_for(&self, share: f64) -> Option<u32> {
        let wanted = share * self.total().counts.classes as f64;
        self.bounds.iter().find(|within| within.counts.classes as f64 >= wanted).map(|w| w.preemptions)
    }

    /// Writes it; whole or not at all.
    pub fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)
            .map_err(|e| Error::Internal(format!("the coverage cannot be written: {e}")))?;
        atomic_file::write(path, (text + "\n").as_bytes())
    }

    /// Reads one.
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

    /// Whether the numbers fit together.
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
