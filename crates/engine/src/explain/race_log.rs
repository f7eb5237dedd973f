//! Records the data races of a check: each pair of places once, with the number of executions that had it.

use crate::process::access_points::Conflict;
use heisen_trace::Finding;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What became of a racing pair of accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fate {
    /// It is the report with this number.
    Reported(usize),
    /// The suppression with this number says not to report it.
    Suppressed(usize),
    /// No close-up of it was taken.
    Unlisted,
    /// The execution did not record every access there, so the pair may really be another one.
    #[serde(rename = "Told")]
    Uncertain,
}

/// The data races seen so far.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RaceLog {
    /// Racing pairs, by their places in the code.
    pairs: BTreeMap<String, Fate>,
    /// Findings, in the order in which they were found.
    reports: Vec<Finding>,
    /// Signatures of suppressed races.
    suppressed: BTreeSet<String>,
}

impl RaceLog {
    /// The reports.
    pub fn reports(&self) -> &[Finding] {
        &self.reports
    }

    /// What became of a pair, if it was seen.
    pub fn fate(&self, conflict: &Conflict) -> Option<Fate> {
        self.pairs.get(&key(conflict)).copied()
    }

    /// Records what became of a pair.
    pub fn settle(&mut self, conflict: &Conflict, fate: Fate) {
        self.pairs.insert(key(conflict), fate);
    }

    /// The number of the report with this signature.
    pub fn number_of(&self, signature: &str) -> Option<usize> {
        self.reports.iter().position(|report| report.signature == signature)
    }

    /// Adds a report and returns its number.
    pub fn report(&mut self, finding: Finding) -> usize {
        self.reports.push(finding);
        self.reports.len() - 1
    }

    /// Records that a race with this signature was suppressed.
    pub fn suppress(&mut self, signature: String) {
        self.suppressed.insert(signature);
    }

    /// Counts one more execution with these races.
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

    /// Whether this suppression has matched a race.
    pub fn has_used(&self, line: usize) -> bool {
        self.pairs.values().any(|fate| *fate == Fate::Suppressed(line))
    }

    /// How many racing pairs had no close-up.
    pub fn unlisted(&self) -> usize {
        self.pairs.values().filter(|fate| **fate == Fate::Unlisted).count()
    }

    /// Whether no race is reported although one was seen that is not suppressed.
    pub fn unreported(&self) -> bool {
        self.reports.is_empty()
            && self.pairs.values().any(|fate| matches!(fate, Fate::Unlisted | Fate::Uncertain))
    }

    /// Whether any race was seen.
    pub fn any(&self) -> bool {
        !self.pairs.is_empty()
    }
}

/// A pair as text, for the keys of a JSON object.
fn key(conflict: &Conflict) -> String {
    conflict
        .pair()
        .map(|(pc, write, atomic)| format!("{pc:x}.{}{}", letter(write, 'w'), letter(atomic, 'a')))
        .join(" ")
}

fn letter(is: bool, letter: char) -> String {
    if is { letter.to_string() } else { String::new() }
}
