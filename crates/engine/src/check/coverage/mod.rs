//! Counts what a search has covered: how many different behaviours its executions showed, by their number of
//! preemptions and by the number of executions so far. "Iterative context bounding" (PLDI'07, sections 2 and
//! 4.3) judges searches by that; its figures 1, 2 and 4 to 6 can be drawn from these counts.
//!
//! | module | what it is for |
//! | --- | --- |
//! | `record` | the counts as a file |

mod record;

pub use record::{Counts, Record, Sample, Within};

use crate::process::slots::Run;
use heisen_search::analysis::pairs;
use heisen_search::analysis::pairs::{Kind, Pair};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::time::Duration;

/// The distinct items seen, each with the fewest preemptions of an execution that showed it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "Vec<(K, u32)>", into = "Vec<(K, u32)>")]
#[serde(bound(
    serialize = "K: Clone + Eq + Hash + Serialize",
    deserialize = "K: Eq + Hash + Deserialize<'de>"
))]
struct Seen<K>(HashMap<K, u32>);

impl<K> Default for Seen<K> {
    fn default() -> Seen<K> {
        Seen(HashMap::new())
    }
}

impl<K: Eq + Hash> From<Vec<(K, u32)>> for Seen<K> {
    fn from(list: Vec<(K, u32)>) -> Seen<K> {
        Seen(list.into_iter().collect())
    }
}

impl<K> From<Seen<K>> for Vec<(K, u32)> {
    fn from(seen: Seen<K>) -> Vec<(K, u32)> {
        seen.0.into_iter().collect()
    }
}

impl<K: Eq + Hash> Seen<K> {
    fn add(&mut self, what: K, preemptions: u32) {
        let least = self.0.entry(what).or_insert(preemptions);
        *least = preemptions.min(*least);
    }

    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    /// How many items need exactly so many preemptions.
    fn by_bound(&self) -> BTreeMap<u32, u64> {
        let mut counts = BTreeMap::new();
        for &least in self.0.values() {
            *counts.entry(least).or_default() += 1;
        }
        counts
    }
}

/// Two racing accesses, in the form of [`Conflict::pair`](crate::process::access_points::Conflict::pair).
type Race = [(u64, bool, bool); 2];

/// The coverage of a search so far.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Coverage {
    /// Executions, by their number of preemptions.
    executions: BTreeMap<u32, u64>,
    classes: Seen<u64>,
    races: Seen<Race>,
    sync_pairs: Seen<Pair>,
    location_pairs: Seen<Pair>,
    growth: Vec<Sample>,
    /// How often counting began anew.
    restarts: u64,
}

impl Coverage {
    /// Counts an execution that logged its touches and their places. `time` is how long the search has run.
    pub fn take(&mut self, run: &Run, time: Duration) {
        let execution = &run.execution;
        let preemptions = execution.decisions.iter().map(|d| d.cost(d.chosen)).sum();
        *self.executions.entry(preemptions).or_default() += 1;
        if let Some(class) = execution.fingerprint {
            self.classes.add(class, preemptions);
        }
        for race in run.conflicts.iter().filter(|conflict| conflict.is_race()) {
            self.races.add(race.pair(), preemptions);
        }
        for (kind, pair) in pairs::pairs(&execution.touches) {
            let seen = if kind == Kind::Sync { &mut self.sync_pairs } else { &mut self.location_pairs };
            seen.add(pair, preemptions);
        }
        let last = self.growth.last().map_or(0, |sample| sample.executions);
        if self.count() >= next_sample(last) {
            self.growth.push(self.sample(time));
        }
    }

    /// Begins counting anew. With new scheduling points, step numbers change, so earlier counts are not
    /// comparable.
    pub fn start_over(&mut self) {
        *self = Coverage { restarts: self.restarts + 1, ..Coverage::default() };
    }

    fn count(&self) -> u64 {
        self.executions.values().sum()
    }

    fn sample(&self, time: Duration) -> Sample {
        let counts = Counts {
            classes: self.classes.len(),
            races: self.races.len(),
            sync_pairs: self.sync_pairs.len(),
            location_pairs: self.location_pairs.len(),
        };
        Sample { executions: self.count(), seconds: time.as_secs_f64(), counts }
    }

    /// The items seen within each number of preemptions that an execution had.
    fn within(&self) -> Vec<Within> {
        let (classes, races) = (self.classes.by_bound(), self.races.by_bound());
        let (sync, location) = (self.sync_pairs.by_bound(), self.location_pairs.by_bound());
        let mut so_far = Within::default();
        let add = |(preemptions, executions): (&u32, &u64)| {
            let new = |counts: &BTreeMap<u32, u64>| counts.get(preemptions).copied().unwrap_or(0);
            so_far.preemptions = *preemptions;
            so_far.executions += executions;
            so_far.counts.classes += new(&classes);
            so_far.counts.races += new(&races);
            so_far.counts.sync_pairs += new(&sync);
            so_far.counts.location_pairs += new(&location);
            so_far
        };
        self.executions.iter().map(add).collect()
    }
}

/// After how many executions the next sample is stored. Samples are about a fifth apart, so that a record is
/// small.
fn next_sample(last: u64) -> u64 {
    (last + 1).max(last + last / 5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_few() {
        let mut at = 0;
        let mut all = Vec::new();
        while at < 10_000_000 {
            at = next_sample(at);
            all.push(at);
        }
        assert_eq!(all[..12], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14]);
        assert!(all.len() < 100, "{}", all.len());
    }

    #[test]
    fn the_fewest_preemptions_count() {
        let mut seen = Seen::default();
        for (what, preemptions) in [('a', 3), ('b', 1), ('a', 0), ('a', 2), ('c', 1)] {
            seen.add(what, preemptions);
        }
        assert_eq!(seen.len(), 3);
        assert_eq!(seen.by_bound(), BTreeMap::from([(0, 1), (1, 2)]));
    }
}
