//! A portfolio of samplers: all of them take turns, and those that show more that is new get more of them.
//!
//! No sampler is the best for every bug. A random walk never lets one thread get far ahead, one by priority never makes
//! more ordered switches than its depth, and which parameter is right nobody knows beforehand. So this is a bandit with
//! the samplers and their parameters as arms (as in Auer, Cesa-Bianchi, Freund, Schapire: The nonstochastic multiarmed
//! bandit problem, SIAM J. Comput. 2002, half of the turns are shared out evenly, as what was of no use may be yet), and
//! what an execution did that none did before as the reward. What is long past counts less.
//!
//! Guarantees: each of the eight samplers has at least a 16th of the executions, which its parameters share; so every bug that
//! one of them finds is found, later by no more than that. And of bugs of depth 2, what the executions by pct of that depth
//! earn.

use crate::Guarantee;
use crate::burst::Bursts;
use crate::delay::Delays;
use crate::directed::Aims;
use crate::fair_pct::FairPriorities;
use crate::pct::Priorities;
use crate::pos::Events;
use crate::random::Walk;
use crate::sampling::{Sampler, Sampling};
use crate::surw::Uniform;
use heisen_trace::{Execution, Policy};
use serde::{Deserialize, Serialize};

/// A portfolio of samplers.
pub type Portfolio = Sampling<Arms>;

/// What of the reward so far is kept from one batch to the next, in tenths.
const KEPT: u64 = 9;
/// One execution, and all turns together, in the units in which they are kept. Whole numbers, so that a search that was
/// saved goes on exactly as it would have.
const ONE: u64 = 1 << 20;
const ALL: u64 = 1 << 32;
/// All parts together: there are eight samplers, of four parameters at most.
const PARTS: u64 = 8 * 4;
/// One in so many executions tells all that it touches.
const LOOKS: u64 = 256;
/// 2^64 divided by the golden ratio: its multiples are spread evenly over all numbers of 64 bits.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// What makes its plans.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Arms {
    /// Where in the turns the first is.
    offset: u64,
    arms: Vec<Arm>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Arm {
    kind: Kind,
    /// Its part of [`PARTS`] where nothing is known. Samplers have equal parts, which their parameters share.
    part: u64,
    /// Executions that told what they did, and those of them that did something new; what is long past counts less.
    told: u64,
    new: u64,
    /// Its share of the turns in this batch.
    share: u64,
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
            | (Kind::Pos(_), Policy::Pos { .. })
            | (Kind::Surw(_), Policy::Surw { .. })
            | (Kind::Directed(_), Policy::Directed { .. }) => true,
            (Kind::Burst(s), Policy::Burst { length, .. }) => s.length == Some(*length),
            (Kind::Pct(s), Policy::Pct { depth, .. }) => s.depth == *depth,
            (Kind::FairPct(s), Policy::FairPct { depth, .. }) => s.depth == *depth,
            (Kind::Delay(s), Policy::Delay { delays, .. }) => s.delays == *delays,
            _ => false,
        }
    }
}

/// The samplers and their parameters, each with its part.
fn kinds() -> Vec<(Kind, u64)> {
    let mut kinds = vec![
        (Kind::Random(Walk), 4),
        (Kind::Pos(Events), 4),
        (Kind::Surw(Uniform::new()), 4),
        (Kind::FairPct(FairPriorities::new(3)), 4),
        (Kind::Directed(Aims::default()), 4),
    ];
    kinds.extend([4, 16, 64, 256].map(|length| (Kind::Burst(Bursts::new(Some(length))), 1)));
    kinds.extend([2, 3, 4, 5].map(|depth| (Kind::Pct(Priorities::new(depth)), 1)));
    kinds.extend([2, 5].map(|delays| (Kind::Delay(Delays::new(delays)), 2)));
    kinds
}

impl Portfolio {
    /// The search that this seed stands for.
    pub fn new(seed: u64) -> Portfolio {
        let arm = |(kind, part)| Arm { kind, part, told: 0, new: 0, share: ALL / PARTS * part };
        let arms = kinds().into_iter().map(arm).collect();
        Sampling::of(seed, Arms { offset: crate::seeds::nth(seed, u64::MAX), arms })
    }
}

impl Arms {
    /// Whose turn it is.
    fn arm(&mut self, number: u64) -> &mut Arm {
        let turn = self.offset.wrapping_add(number.wrapping_mul(GOLDEN));
        let mut at = turn >> 32;
        let turns = self.arms.iter().position(|arm| match at.checked_sub(arm.share) {
            Some(left) => {
                at = left;
                false
            }
            None => true,
        });
        // The first has what is lost by rounding.
        &mut self.arms[turns.unwrap_or(0)]
    }
}

impl Sampler for Arms {
    /// Long enough that handing out batches costs little, even where executions are short.
    const LONGEST_BATCH: u64 = 512;

    fn policy(&mut self, number: u64, seed: u64) -> Policy {
        match number {
            // Measures how long executions are as well as the default schedule does, and may find something.
            0 => Policy::Random { seed },
            // Samplers that do this and that by the number of a plan do so at random here, as turns are irregular.
            _ => self.arm(number).kind.policy(1 + (seed >> 32), seed),
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
        // One that has told nothing yet is taken for as good as can be.
        let rate = |arm: &Arm| arm.part * (arm.new + ONE) * ONE / (arm.told + ONE);
        let sum: u64 = self.arms.iter().map(rate).sum();
        // Half of the turns evenly, half by what came of them.
        for arm in &mut self.arms {
            arm.share = ALL / 2 / PARTS * arm.part + ALL / 2 * rate(arm) / sum.max(1);
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
            let policy = arms.policy(number, crate::seeds::nth(0, number));
            let arm =
                arms.arms.iter().position(|arm| arm.kind.made(&policy)).expect("one of the arms made it");
            turns[arm] += 1;
            arms.learn(&policy, &execution(), true, Some(new(&policy)));
        }
        arms.settle();
        turns
    }

    #[test]
    fn turns_go_to_what_shows_more_that_is_new() {
        let mut arms = Portfolio::new(1).sampler;
        arms.kinds_settle();
        assert_eq!(arms.arms.iter().map(|arm| arm.part).sum::<u64>(), PARTS);
        let even = |arm: &Arm| 6400 * arm.part / PARTS;
        let near = |turns: u64, right: u64| turns.abs_diff(right) <= right / 20 + 2;
        let first = settled(&mut arms, |policy| matches!(policy, Policy::Pos { .. }));
        assert!(first.iter().zip(&arms.arms).all(|(&turns, arm)| near(turns, even(arm))), "{first:?}");
        let second = settled(&mut arms, |_| false);
        for (turns, arm) in second.into_iter().zip(&arms.arms) {
            // The one that was of use has nearly the whole half that is not shared out evenly.
            let useful = matches!(arm.kind, Kind::Pos(_));
            let right = even(arm) / 2 + if useful { 3200 } else { 0 };
            assert!(turns.abs_diff(right) < 160, "{turns} for {:?}", arm.kind);
        }
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
