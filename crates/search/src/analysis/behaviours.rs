//! Counts the different behaviours of the executions so far, and estimates how likely the next execution
//! shows a new one.
//!
//! Good, Turing (Biometrika, 1953): the chance that the next draw is of an unseen kind is about the share of
//! the kinds in the sample that were seen exactly once. Böhme (ICSE 2018) uses this estimate for what is left
//! to be found in fuzzing.
//!
//! Recording a behaviour costs time. After some thousand executions, only every 16th is therefore asked for
//! its behaviour, and none if executions are very long. There may be millions of behaviours. If there are too
//! many, only those whose hash begins with enough zeros are stored, which is an unbiased sample.

use heisen_trace::Execution;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How many behaviours are stored at most.
const CAPACITY: usize = 1 << 16;
/// How many of the first executions are all asked for their behaviour.
const ALL_OF: u64 = 1 << 12;
/// Of the later executions, one in this many is asked.
const ONE_IN: u64 = 16;
/// Executions with more steps than this are not asked.
const TOO_LONG: u32 = 1 << 16;

/// The behaviours of the executions so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Behaviours {
    /// The stored behaviours, and whether each was seen more than once.
    kinds: BTreeMap<u64, bool>,
    /// One behaviour in two to the power of this is stored.
    rarity: u32,
    /// How many executions reported their behaviour.
    executions: u64,
    /// The number of steps of the first execution.
    length: Option<u32>,
}

/// How likely the next execution shows a behaviour that no execution has shown before.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unseen {
    /// How many executions reported their behaviour.
    pub executions: u64,
    /// How many different behaviours; an estimate if there are very many.
    pub kinds: u64,
    /// How many of those were seen exactly once.
    pub once: u64,
    /// The probability.
    pub chance: f64,
}

impl Behaviours {
    /// Whether execution `number`, from 0, shall report its behaviour. The first one does not: it shows how
    /// long executions are.
    pub fn asks(&self, number: u64) -> bool {
        let short = self.length.is_some_and(|length| length <= TOO_LONG);
        short && number > 0 && (number < ALL_OF || number.is_multiple_of(ONE_IN))
    }

    /// Takes a finished execution. Returns whether its behaviour is new, if that is known.
    pub fn take(&mut self, execution: &Execution) -> Option<bool> {
        self.length.get_or_insert(execution.steps);
        let kind = execution.fingerprint?;
        self.executions += 1;
        if !self.keeps(kind) {
            return None;
        }
        let new = self.kinds.insert(kind, false).is_none();
        if !new {
            self.kinds.insert(kind, true);
        }
        while self.kinds.len() > CAPACITY {
            self.rarity += 1;
            let rarity = self.rarity;
            self.kinds.retain(|kind, _| kind.leading_zeros() >= rarity);
        }
        Some(new)
    }

    fn keeps(&self, kind: u64) -> bool {
        kind.leading_zeros() >= self.rarity
    }

    /// The estimate for the next execution, or `None` if no execution reported its behaviour.
    pub fn unseen(&self) -> Option<Unseen> {
        if self.executions == 0 {
            return None;
        }
        let once = (self.kinds.values().filter(|again| !**again).count() as u64) << self.rarity;
        let kinds = (self.kinds.len() as u64) << self.rarity;
        let once = once.min(self.executions);
        let chance = once as f64 / self.executions as f64;
        Some(Unseen { executions: self.executions, kinds: kinds.min(self.executions), once, chance })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heisen_trace::End;

    fn execution(fingerprint: Option<u64>, steps: u32) -> Execution {
        Execution {
            steps,
            threads: 2,
            decisions: vec![],
            touches: vec![],
            end: End::Exit(0),
            notes: vec![],
            diverged: None,
            fingerprint,
            counted: vec![],
            symbolic: None,
        }
    }

    fn after(kinds: &[u64]) -> Unseen {
        let mut behaviours = Behaviours::default();
        for &kind in kinds {
            behaviours.take(&execution(Some(kind), 10));
        }
        behaviours.unseen().unwrap()
    }

    #[test]
    fn numbers_computed_by_hand() {
        // Seen once: 3 and 4, in 6 executions.
        assert_eq!(
            after(&[1, 2, 1, 3, 2, 4]),
            Unseen { executions: 6, kinds: 4, once: 2, chance: 1.0 / 3.0 }
        );
        assert_eq!(after(&[7]), Unseen { executions: 1, kinds: 1, once: 1, chance: 1.0 });
        assert_eq!(after(&[7, 7]), Unseen { executions: 2, kinds: 1, once: 0, chance: 0.0 });
        // A third time changes nothing.
        assert_eq!(after(&[7, 7, 7]).once, 0);
        assert_eq!(Behaviours::default().unseen(), None);
    }

    #[test]
    fn what_is_new() {
        let mut behaviours = Behaviours::default();
        let took = [Some(1), Some(1), None, Some(2)].map(|kind| behaviours.take(&execution(kind, 10)));
        assert_eq!(took, [Some(true), Some(false), None, Some(true)]);
        assert_eq!(behaviours.unseen().unwrap().executions, 3);
    }

    #[test]
    fn who_is_asked() {
        let first = |steps| {
            let mut behaviours = Behaviours::default();
            assert!(!behaviours.asks(0) && !behaviours.asks(1), "nothing is known yet");
            behaviours.take(&execution(None, steps));
            behaviours
        };
        let behaviours = first(65_536);
        assert!(!behaviours.asks(0) && behaviours.asks(1) && behaviours.asks(4095));
        assert!(behaviours.asks(4096) && !behaviours.asks(4097) && behaviours.asks(4112));
        assert!(!first(65_537).asks(1));
        // The length of later executions changes nothing: the result must not depend on how many run at a
        // time.
        let mut behaviours = first(10);
        behaviours.take(&execution(None, 1_000_000));
        assert!(behaviours.asks(1));
    }

    #[test]
    fn of_very_many_kinds_a_share_is_kept() {
        let mut behaviours = Behaviours::default();
        let count = 1_000_000;
        for index in 0..count {
            // Half of the executions have a behaviour of their own, the others come in pairs.
            let kind = if index % 2 == 0 { index } else { index / 4 * 4 + 1 };
            behaviours.take(&execution(Some(crate::analysis::seeds::nth(1, kind)), 10));
        }
        let unseen = behaviours.unseen().unwrap();
        assert!(behaviours.kinds.len() <= CAPACITY && unseen.executions == count);
        let near = |found: u64, right: f64| ((found as f64 - right) / right).abs() < 0.02;
        assert!(near(unseen.once, 500_000.0) && near(unseen.kinds, 750_000.0), "{unseen:?}");
        assert!((unseen.chance - 0.5).abs() < 0.01, "{unseen:?}");
    }
}
