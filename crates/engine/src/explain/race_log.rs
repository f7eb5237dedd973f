//! The data races of a whole check: each pair of places once, with the number of executions that had it.

use crate::process::access_points::Conflict;
use heisen_trace::Finding;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What became of a pair of accesses that race.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fate {
    /// It is the report of that number.
    Reported(usize),
    /// The line of that number in the suppressions says that it is not to be.
    Suppressed(usize),
    /// It was not looked at.
    Unlisted,
    /// It was only told by an execution that did not know to remember every access there, and may be another pair really.
    Told,
}

/// The races that were seen.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Raced {
    /// Pairs of accesses, by their places in the code.
    pairs: BTreeMap<String, Fate>,
    /// Findings, in the order in which they were found.
    reports: Vec<Finding>,
    /// Signatures of the races that were suppressed.
    suppressed: BTreeSet<String>,
}

impl Raced {
    /// The reports.
    pub fn reports(&self) -> &[Finding] {
        &self.reports
    }

    /// What is known of a pair.
    pub fn fate(&self, conflict: &Conflict) -> Option<Fate> {
        self.pairs.get(&key(conflict)).copied()
    }

    /// From now on this is known of a pair.
    pub fn settle(&mut self, conflict: &Conflict, fate: Fate) {
        self.pairs.insert(key(conflict), fate);
    }

    /// The number of the report with this signature.
    pub fn number_of(&self, signature: &str) -> Option<usize> {
        self.reports.iter().position(|report| report.signature == signature)
    }

    /// Adds a report; its number.
    pub fn report(&mut self, finding: Finding) -> usize {
        self.reports.push(finding);
        self.reports.len() - 1
    }

    /// A race with this signature was suppressed.
    pub fn suppress(&mut self, signature: String) {
        self.suppressed.insert(signature);
    }

    /// One more execution had these races.
    pub fn count(&mut self, reports: &BTreeSet<usize>) {
        for &number in reports {
            if let Some(race) = self.reports.get_mut(number).and_then(|report| report.race.as_mut()) {
                race.executions += 1;
            }
        }
    }

    /// How many races were suppressed.
    pub fn suppressed(&self) -> usize {
        self.suppressed.len()
    }

    /// Whether that line of the suppressions was of use.
    pub fn has_used(&self, line: usize) -> bool {
        self.pairs.values().any(|fate| *fate == Fate::Suppressed(line))
    }

    /// How many pairs of accesses race that were not looked at.
    pub fn unlisted(&self) -> usize {
        self.pairs.values().filter(|fate| **fate == Fate::Unlisted).count()
    }

    /// Whether a race was seen that is neither reported nor suppressed.
    pub fn unreported(&self) -> bool {
        self.reports.is_empty() && self.pairs.values().any(|fate| matches!(fate, Fate::Unlisted | Fate::Told))
    }

    /// Whether a race was seen at all.
    pub fn any(&self) -> bool {
        !self.pairs.is_empty()
    }
}

/// A pair as text, as the keys of JSON are.
fn key(conflict: &Conflict) -> String {
    conflict
        .pair()
        .map(|(pc, write, atomic)| format!("{pc:x}.{}{}", letter(write, 'w'), letter(atomic, 'a')))
        .join(" ")
}

fn letter(is: bool, letter: char) -> String {
    if is { letter.to_string() } else { String::new() }
}
