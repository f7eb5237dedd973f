//! What executions did, up to the order of what is independent: how many different things so far, and how likely it is
//! that the next execution does yet another.
//!
//! Good, Turing (Biometrika, 1953): the chance that the next one is of a kind not seen is about the share of those kinds
//! in the sample that were seen exactly once. Böhme (ICSE 2018) takes it for what is left to be found in fuzzing.
//!
//! The work of telling what an execution did is not free, so after some thousand executions only every so many are asked
//! for it, and none of a program whose executions are very long. And as there may be millions of kinds, only a share of
//! them is kept if there are too many: those whose hash begins with enough zeros. They are a fair sample of the kinds.

use heisen_trace::Execution;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Kinds that are kept at most.
const MOST_KEPT: usize = 1 << 16;
/// Executions that are all asked for what they did.
const ALL_OF: u64 = 1 << 12;
/// Of the later ones, one in so many is.
const ONE_IN: u64 = 16;
/// Steps of an execution that are too many to ask.
const TOO_LONG: u32 = 1 << 16;

/// What is known of the executions so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Behaviours {
    /// The kinds that are kept, and whether they were seen more than once.
    kinds: BTreeMap<u64, bool>,
    /// One in two to the power of this is kept.
    rarity: u32,
    /// Executions that told what they did.
    executions: u64,
    /// Steps of the first execution.
    length: Option<u32>,
}

/// How likely it is that the next execution does something that none did before.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unseen {
    /// Executions that were asked what they did.
    pub executions: u64,
    /// How many different things; if they are very many, an estimate.
    pub kinds: u64,
    /// How many of those were done just once.
    pub once: u64,
    /// The chance.
    pub chance: f64,
}

impl Behaviours {
    /// Whether execution `number`, from 0, shall tell what it did. The first is to show how long they are, and is alone.
    pub fn asks(&self, number: u64) -> bool {
        let short = self.length.is_some_and(|length| length <= TOO_LONG);
        short && number > 0 && (number < ALL_OF || number.is_multiple_of(ONE_IN))
    }

    /// Takes a finished execution. Whether it did something new, if that is known.
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
        while self.kinds.len() > MOST_KEPT {
            self.rarity += 1;
            let rarity = self.rarity;
            self.kinds.retain(|kind, _| kind.leading_zeros() >= rarity);
        }
        Some(new)
    }

    fn keeps(&self, kind: u64) -> bool {
        kind.leading_zeros() >= self.rarity
    }

    /// What they say of the next; nothing if none was asked.
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
        // What later ones do changes nothing: it must not depend on how many run at a time.
        let mut behaviours = first(10);
        behaviours.take(&execution(None, 1_000_000));
        assert!(behaviours.asks(1));
    }

    #[test]
    fn of_very_many_kinds_a_share_is_kept() {
        let mut behaviours = Behaviours::default();
        let count = 1_000_000;
        for index in 0..count {
            // Half of the executions do what none else does, half come in pairs.
            let kind = if index % 2 == 0 { index } else { index / 4 * 4 + 1 };
            behaviours.take(&execution(Some(crate::analysis::seeds::nth(1, kind)), 10));
        }
        let unseen = behaviours.unseen().unwrap();
        assert!(behaviours.kinds.len() <= MOST_KEPT && unseen.executions == count);
        let near = |found: u64, right: f64| ((found as f64 - right) / right).abs() < 0.02;
        assert!(near(unseen.once, 500_000.0) && near(unseen.kinds, 750_000.0), "{unseen:?}");
        assert!((unseen.chance - 0.5).abs() < 0.01, "{unseen:?}");
    }
}
