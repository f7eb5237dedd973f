//! A portfolio of samplers: all of them take turns, and those that are likelier to find something get more of them.
//! At first two of three executions are those of the sampler that is the best on most programs.
//!
//! No sampler is the best for every bug. A random walk never lets one thread get far ahead, one by priority never makes
//! more ordered switches than its depth, and which parameter is right nobody knows beforehand. But turns that are shared out
//! evenly make it as many times slower as there are samplers.
//!
//! Selectively uniform random walk was the best sampler, or near the best, on most of the examples that this was measured on
//! (docs/evidence/samplers.md), as in the paper that it comes from. So two of three of the first executions are the first ones of that search
//! with this seed: the same plans in the same order, which know the same, as batches end where its own do.
//!
//! The others, and later all, are shared out by a bandit with the samplers and their parameters as arms. The turns of each go by
//! three things:
//!
//! - what is known beforehand: its part. After the walk itself, its form with runs has most, as it is good at what the walk is not.
//! - what comes of it: executions that do what none did before are the reward. What is long past counts less.
//! - what did not come of it: an arm that has had many turns is not the one that soon finds the bug, or it would have. If the
//!   chance of a bug is as likely to be a thousandth as a hundredth or a tenth, it is, after n executions in vain,
//!   about 1 / n for the next. So bugs that are easy are found by what is good at easy ones, and in a long search no arm
//!   has much more than the others.
//!
//! A sixteenth of the turns is shared out evenly whatever comes of them (as in Auer, Cesa-Bianchi, Freund, Schapire: The
//! nonstochastic multiarmed bandit problem, SIAM J. Comput. 2002), as what was of no use may be yet. What was predicted
//! and not tried is tried early.
//!
//! Guarantees: what surw with this seed finds with execution n, of the first 127, is found with execution 1.5 n, rounded down, or
//! before. Of all that come after the first 190, each of the eight samplers has at least a 128th, which its parameters
//! share; so every bug that one of them finds is found, later by no more than that. And of bugs of depth 2, what the
//! executions by pct of that depth earn.

use crate::Guarantee;
use crate::analysis::seeds;
use crate::sampling::burst::Bursts;
use crate::sampling::common::{Sampler, Sampling};
use crate::sampling::delay::Delays;
use crate::sampling::directed::Aims;
use crate::sampling::fair_pct::FairPriorities;
use crate::sampling::pct::Priorities;
use crate::sampling::pos::Events;
use crate::sampling::random::Walk;
use crate::sampling::surw::Uniform;
use heisen_trace::{Execution, Policy};
use serde::{Deserialize, Serialize};
use std::mem::discriminant;

/// A portfolio of samplers.
pub type Portfolio = Sampling<Arms>;

/// What of the reward so far is kept from one batch to the next, in tenths.
const KEPT: u64 = 9;
/// One execution, and all turns together, in the units in which they are kept. Whole numbers, so that a search that was
/// saved goes on exactly as it would have.
const ONE: u64 = 1 << 20;
const ALL: u64 = 1 << 32;
/// The turns that are shared out evenly among the samplers, and how many of those there are.
const EVEN: u64 = ALL / 16;
const SAMPLERS: u64 = 8;
/// All parts together.
const PARTS: u64 = 256;
/// Executions in vain after which an arm is half as likely to find something with the next.
const IN_VAIN: u64 = 256;
/// As many executions as if each of them had done something new, what an arm has told counts for before it has told anything.
const BELIEVED: u64 = 8 * ONE;
/// The first executions: two of three are those of the first arm. A whole number of batches, as each of them has that many.
const FIRST: u64 = 1 + 3 + 6 + 12 + 24 + 48 + 96;
/// One in so many executions tries what was predicted and not tried yet: of the first ones, and later.
const TRIES: (u64, u64) = (12, 16);
/// Which of them.
const TRIED: u64 = 4;
/// One in so many executions tells all that it touches.
const LOOKS: u64 = 256;
/// 2^64 divided by the golden ratio: its multiples are spread evenly over all numbers of 64 bits.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// What makes its plans.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Arms {
    /// The seed of the first arm's own search.
    seed: u64,
    /// Where in the turns the first is, and the seed of the other arms' plans.
    offset: u64,
    arms: Vec<Arm>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Arm {
    kind: Kind,
    /// Its part of [`PARTS`] where nothing is known.
    part: u64,
    /// How many parameters the sampler has, as arms of their own: they share what it has evenly.
    shared_by: u64,
    /// Turns it has had.
    turns: u64,
    /// Executions that told what they did, and those of them that did something new; what is long past counts less.
    told: u64,
    new: u64,
    /// Its share of the turns in this batch.
    share: u64,
}

impl Arm {
    /// How much is to be expected of it, in no particular unit.
    fn worth(&self) -> u64 {
        // One that has told nothing yet is taken for as good as can be.
        let new = (self.new + BELIEVED) * ONE / (self.told + BELIEVED);
        self.part * new * IN_VAIN / (IN_VAIN + self.turns)
    }

    /// What it has whatever comes of it.
    fn even(&self) -> u64 {
        EVEN / SAMPLERS / self.shared_by
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Kind {
    Random(Walk),
    Burst(Bursts),
    Pct(Priorities),
    FairPct(FairPriorities),
    Pos(Events),
    Surw(Uniform),
    Delay(Delays),
    Directed(Aims),
}

impl Kind {
    fn policy(&mut self, number: u64, seed: u64) -> Policy {
        match self {
            Kind::Random(s) => s.policy(number, seed),
            Kind::Burst(s) => s.policy(number, seed),
            Kind::Pct(s) => s.policy(number, seed),
            Kind::FairPct(s) => s.policy(number, seed),
            Kind::Pos(s) => s.policy(number, seed),
            Kind::Surw(s) => s.policy(number, seed),
            Kind::Delay(s) => s.policy(number, seed),
            // Where there is nothing to steer to, as at random.
            Kind::Directed(s) => s.aim(seed).unwrap_or(Policy::Random { seed }),
        }
    }

    fn learn(&mut self, policy: &Policy, execution: &Execution, usable: bool, new: Option<bool>) {
        match self {
            Kind::Random(s) => s.learn(policy, execution, usable, new),
            Kind::Burst(s) => s.learn(policy, execution, usable, new),
            Kind::Pct(s) => s.learn(policy, execution, usable, new),
            Kind::FairPct(s) => s.learn(policy, execution, usable, new),
            Kind::Pos(s) => s.learn(policy, execution, usable, new),
            Kind::Surw(s) => s.learn(policy, execution, usable, new),
            Kind::Delay(s) => s.learn(policy, execution, usable, new),
            Kind::Directed(s) => s.learn(policy, execution, usable, new),
        }
    }

    fn settle(&mut self) {
        match self {
            Kind::Random(s) => s.settle(),
            Kind::Burst(s) => s.settle(),
            Kind::Pct(s) => s.settle(),
            Kind::FairPct(s) => s.settle(),
            Kind::Pos(s) => s.settle(),
            Kind::Surw(s) => s.settle(),
            Kind::Delay(s) => s.settle(),
            Kind::Directed(s) => s.settle(),
        }
    }

    /// Whether it has made this policy.
    fn made(&self, policy: &Policy) -> bool {
        match (self, policy) {
            (Kind::Random(_), Policy::Random { .. })
            | (Kind::Burst(_), Policy::Burst { .. })
            | (Kind::Pos(_), Policy::Pos { .. })
            | (Kind::Directed(_), Policy::Directed { .. }) => true,
            (Kind::Surw(s), Policy::Surw { length, .. }) => s.makes(*length),
            (Kind::Pct(s), Policy::Pct { depth, .. }) => s.depth == *depth,
            (Kind::FairPct(s), Policy::FairPct { depth, .. }) => s.depth == *depth,
            (Kind::Delay(s), Policy::Delay { delays, .. }) => s.delays == *delays,
            _ => false,
        }
    }
}

/// The samplers and their parameters, each with its part.
fn kinds() -> Vec<(Kind, u64)> {
    vec![
        (Kind::Surw(Uniform::new()), 182),
        (Kind::Surw(Uniform::in_runs()), 61),
        (Kind::Random(Walk), 1),
        (Kind::Directed(Aims::default()), 1),
        (Kind::Pos(Events), 3),
        (Kind::Burst(Bursts::new(None)), 2),
        (Kind::FairPct(FairPriorities::new(3)), 1),
        (Kind::Pct(Priorities::new(2)), 1),
        (Kind::Pct(Priorities::new(3)), 1),
        (Kind::Pct(Priorities::new(5)), 1),
        (Kind::Delay(Delays::new(2)), 1),
        (Kind::Delay(Delays::new(5)), 1),
    ]
}

impl Portfolio {
    /// The search that this seed stands for.
    pub fn new(seed: u64) -> Portfolio {
        let kinds = kinds();
        let arm = |(kind, part): &(Kind, u64)| {
            let same = kinds.iter().filter(|(other, _)| discriminant(other) == discriminant(kind));
            let (shared_by, share) = (same.count() as u64, ALL / PARTS * part);
            Arm { kind: kind.clone(), part: *part, shared_by, turns: 0, told: 0, new: 0, share }
        };
        let arms = kinds.iter().map(arm).collect();
        Sampling::of(seed, Arms { seed, offset: seeds::nth(seed, u64::MAX), arms })
    }
}

impl Arms {
    /// Whose turn it is: of two of three at first the first arm's. Of the others the second arm begins.
    fn turn(&self, number: u64) -> usize {
        let first = number < FIRST;
        if first && number % 3 != 1 {
            return 0;
        }
        if number == 1 {
            return 1;
        }
        let tries = if first { TRIES.0 } else { TRIES.1 };
        let untried = |arm: &Arm| matches!(&arm.kind, Kind::Directed(s) if s.has_untried());
        if number % tries == TRIED
            && let Some(index) = self.arms.iter().position(untried)
        {
            return index;
        }
        let among = usize::from(first);
        let all: u64 = self.arms[among..].iter().map(|arm| arm.share).sum();
        let turn = self.offset.wrapping_add(number.wrapping_mul(GOLDEN));
        let mut at = ((u128::from(turn) * u128::from(all)) >> 64) as u64;
        let turns = self.arms[among..].iter().position(|arm| match at.checked_sub(arm.share) {
            Some(left) => {
                at = left;
                false
            }
            None => true,
        });
        among + turns.unwrap_or(0)
    }
}

impl Sampler for Arms {
    /// Long enough that handing out batches costs little, even where executions are short.
    const LONGEST_BATCH: u64 = 512;

    /// As many as the first arm has plans in its own, and half as many.
    const SECOND_BATCH: u64 = 3;

    fn policy(&mut self, number: u64, _seed: u64) -> Policy {
        let index = self.turn(number);
        let arm = &mut self.arms[index];
        let nth = arm.turns;
        arm.turns += 1;
        match index {
            // Its first one measures how long executions are as well as the default schedule does, and may find something.
            0 => arm.kind.policy(nth, seeds::nth(self.seed, nth)),
            // The first plan of others is for nothing but to measure that.
            _ => arm.kind.policy(1 + nth, seeds::nth(self.offset, number)),
        }
    }

    fn touches(&self, number: u64, policy: &Policy) -> bool {
        let looks = |arm: &Arm| matches!(&arm.kind, Kind::Directed(s) if s.looks());
        // Telling all costs much, and few show what others did not.
        (number.is_power_of_two() || number % LOOKS == 1)
            && !matches!(policy, Policy::Directed { .. })
            && self.arms.iter().any(looks)
    }

    fn learn(&mut self, policy: &Policy, execution: &Execution, usable: bool, new: Option<bool>) {
        for arm in &mut self.arms {
            if arm.kind.made(policy)
                && let Some(new) = new
            {
                arm.told += ONE;
                arm.new += if new { ONE } else { 0 };
            }
            arm.kind.learn(policy, execution, usable, None);
        }
    }

    fn settle(&mut self) {
        let sum: u64 = self.arms.iter().map(Arm::worth).sum();
        for arm in &mut self.arms {
            arm.share = arm.even() + (ALL - EVEN) * arm.worth() / sum.max(1);
            arm.told = arm.told * KEPT / 10;
            arm.new = arm.new * KEPT / 10;
            arm.kind.settle();
        }
    }

    fn guarantee(&self) -> Option<Guarantee> {
        let first =
            self.arms.iter().find_map(|arm| if let Kind::Pct(s) = &arm.kind { Some(s) } else { None });
        first.and_then(Sampler::guarantee)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heisen_trace::End;
    use std::collections::BTreeSet;

    fn execution() -> Execution {
        Execution {
            steps: 10,
            threads: 2,
            decisions: vec![],
            touches: vec![],
            end: End::Exit(0),
            notes: vec![],
            diverged: None,
            fingerprint: None,
            counted: vec![],
        }
    }

    /// So many executions by each arm in a batch, each new or not by what made it.
    fn settled(arms: &mut Arms, new: impl Fn(&Policy) -> bool) -> Vec<u64> {
        let mut turns = vec![0; arms.arms.len()];
        for number in 1..=6400 {
            let policy = arms.policy(number, 0);
            let arm =
                arms.arms.iter().position(|arm| arm.kind.made(&policy)).expect("one of the arms made it");
            turns[arm] += 1;
            arms.learn(&policy, &execution(), true, Some(new(&policy)));
        }
        arms.settle();
        turns
    }

    #[test]
    fn turns_go_by_what_is_known_beforehand_at_first() {
        let mut arms = Portfolio::new(1).sampler;
        arms.kinds_settle();
        assert_eq!(arms.arms.iter().map(|arm| arm.part).sum::<u64>(), PARTS);
        let kinds = arms.arms.iter().map(|arm| format!("{:?}", discriminant(&arm.kind)));
        assert_eq!(kinds.collect::<BTreeSet<_>>().len() as u64, SAMPLERS);
        let turns = settled(&mut arms, |_| true);
        for (turns, arm) in turns.into_iter().zip(&arms.arms) {
            let right = 6400 * 15 / 16 * arm.part / PARTS + 6400 / 16 / SAMPLERS / arm.shared_by;
            assert!(turns.abs_diff(right) <= right / 20 + 2, "{turns} for {:?}", arm.kind);
        }
    }

    #[test]
    fn turns_go_to_what_shows_more_that_is_new() {
        let mut arms = Portfolio::new(1).sampler;
        arms.kinds_settle();
        settled(&mut arms, |policy| matches!(policy, Policy::Pos { .. }));
        let second = settled(&mut arms, |_| false);
        for (&turns, arm) in second.iter().zip(&arms.arms) {
            // The one that was of use has most of them; the others, of which little is known yet, a twentieth each at most.
            let right = if matches!(arm.kind, Kind::Pos(_)) { turns > 3200 } else { turns < 320 };
            assert!(right, "{turns} for {:?}, {second:?}", arm.kind);
        }
    }

    #[test]
    fn who_has_had_many_turns_in_vain_gets_fewer() {
        let mut arms = Portfolio::new(1).sampler;
        arms.kinds_settle();
        let batches: Vec<Vec<u64>> = (0..20).map(|_| settled(&mut arms, |_| true)).collect();
        let surw = |turns: &Vec<u64>| turns[0];
        assert!(surw(&batches[0]) > 6400 / 2, "{batches:?}");
        assert!(surw(&batches[19]) < 6400 / 2, "{batches:?}");
        // Each of the eight has a 128th at least.
        for (index, arm) in arms.arms.iter().enumerate() {
            let least = 50 / arm.shared_by;
            assert!(batches.iter().all(|turns| turns[index] + 2 >= least), "{batches:?}");
        }
    }

    #[test]
    fn what_was_predicted_is_tried_early() {
        let mut arms = Portfolio::new(1).sampler;
        for arm in &mut arms.arms {
            if let Kind::Directed(aims) = &mut arm.kind {
                *aims = Aims::untried(2);
            }
        }
        let policies = (1..=16).map(|number| arms.policy(number, number)).collect::<Vec<_>>();
        let first = |policy: &Policy| matches!(policy, Policy::Directed { length: 0, .. });
        assert!(
            first(&policies[3])
                && first(&policies[15])
                && policies.iter().filter(|policy| first(policy)).count() == 2,
            "{policies:?}"
        );
    }

    #[test]
    fn arms_are_told_apart() {
        let mut arms = Portfolio::new(1).sampler;
        arms.kinds_settle();
        for index in 0..arms.arms.len() {
            let policy = arms.arms[index].kind.policy(77, 5);
            let made: Vec<usize> =
                (0..arms.arms.len()).filter(|&i| arms.arms[i].kind.made(&policy)).collect();
            assert_eq!(made, [index]);
        }
    }

    impl Arms {
        /// As after the first execution, which all learn from, and with something to steer to.
        fn kinds_settle(&mut self) {
            for arm in &mut self.arms {
                if let Kind::Directed(aims) = &mut arm.kind {
                    *aims = Aims::at_something();
                }
            }
            self.learn(&Policy::Default, &execution(), true, None);
            self.settle();
        }
    }
}
