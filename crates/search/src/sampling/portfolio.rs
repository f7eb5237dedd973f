//! A portfolio of samplers: all take turns, and those that are more likely to find something get more turns.
//!
//! At first, two of three executions belong to the sampler that is best on most programs.
//!
//! No sampler is best for every bug. A random walk never lets one thread run far before the others. PCT never
//! makes more ordered switches than its depth. The right parameter is not known in advance. But dividing the
//! turns evenly makes the search as many times slower as there are samplers.
//!
//! The selectively uniform random walk (surw) was the best sampler, or near the best, on most of the measured
//! examples (docs/evidence/samplers.md), as in its paper. Two of three of the first executions are therefore
//! the first executions of surw with this seed: the same plans in the same order. They know the same, because
//! the batches end where surw's own batches end.
//!
//! A bandit divides the other turns, and later all turns. Its arms are the samplers with their parameters.
//! The turns of an arm depend on three things:
//!
//! - its prior. After surw, its form with runs has the largest, because it is good where surw is not.
//! - its reward: executions with new behaviour. Old rewards count less.
//! - its failures: an arm that has had many turns without a bug is less likely to find it soon. If the
//!   probability of the bug is equally likely to be a thousandth, a hundredth or a tenth, then after n
//!   executions in vain it is about 1 / n for the next one. Easy bugs are therefore found by arms that are
//!   good at easy bugs, and in a long search no arm has many more turns than the others.
//!
//! A sixteenth of the turns is divided evenly, whatever the rewards (as in Auer, Cesa-Bianchi, Freund,
//! Schapire: The nonstochastic multiarmed bandit problem, SIAM J. Comput. 2002), because a sampler without
//! success so far may still find something. Predictions that were not tried yet are tried early.
//!
//! Guarantees:
//!
//! - A bug that surw with this seed finds with execution n, of the first 127, is found with execution 1.5 n,
//!   rounded down, or earlier.
//! - After the first 190 executions, each of the eight samplers has at least a 128th of the turns, divided
//!   among its parameters. Every bug that one of them finds is therefore found, later by at most that factor.
//! - For bugs of depth 2, the guarantee of its pct executions of that depth.
//!
//! In programs that are built symbolically, the solver-driven search has turns between those of the samplers
//! ([`solver_arm`](crate::sampling::solver_arm)). What is said of the samplers then counts their executions only.

use crate::analysis::seeds;
use crate::sampling::burst::Bursts;
use crate::sampling::common::{Sampler, Sampling};
use crate::sampling::delay::Delays;
use crate::sampling::directed::Aims;
use crate::sampling::fair_pct::FairPriorities;
use crate::sampling::pct::Priorities;
use crate::sampling::pos::Events;
use crate::sampling::random::Walk;
use crate::sampling::solver_arm::SolverArm;
use crate::sampling::surw::Uniform;
use crate::{Guarantee, Halt, Room, Status, Strategy};
use heisen_trace::{Execution, Plan, Policy};
use serde::{Deserialize, Serialize};
use std::mem::discriminant;

/// A portfolio of samplers; see the head of this file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Portfolio {
    samplers: Sampling<Arms>,
    /// Only for programs that are built symbolically.
    solver: Option<SolverArm>,
}

/// How much of the reward carries over from one batch to the next, in tenths.
const KEPT: u64 = 9;
/// One execution, and all turns together, as integers. Integers make a resumed search continue exactly as it
/// would have.
const ONE: u64 = 1 << 20;
const ALL: u64 = 1 << 32;
/// The turns that are divided evenly among the samplers, and the number of samplers.
const EVEN: u64 = ALL / 16;
const SAMPLERS: u64 = 8;
/// The sum of all priors.
const PARTS: u64 = 256;
/// After this many executions in vain, an arm is half as likely to find something with the next one.
const IN_VAIN: u64 = 256;
/// An arm starts as if this many executions had reported behaviour, all of it new.
const BELIEVED: u64 = 8 * ONE;
/// How many executions are the first ones, of which two of three belong to the first arm. A sum of batch
/// lengths.
const FIRST: u64 = 1 + 3 + 6 + 12 + 24 + 48 + 96;
/// One in this many executions tries a prediction that was not tried yet: of the first executions, and of
/// later ones.
const TRIES: (u64, u64) = (12, 16);
/// The remainder of the numbers of those executions.
const TRIED: u64 = 4;
/// One in this many executions records all its touches.
const LOOKS: u64 = 256;
/// 2^64 divided by the golden ratio: its multiples are spread evenly over all numbers of 64 bits.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Makes the plans of samplers for [`Portfolio`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Arms {
    /// The seed of the first arm's own search.
    seed: u64,
    /// The position of the first turn, and the seed of the other arms' plans.
    offset: u64,
    arms: Vec<Arm>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Arm {
    kind: Kind,
    /// Its prior, out of [`PARTS`].
    part: u64,
    /// How many arms the sampler has, one for each parameter. They divide the sampler's even share.
    shared_by: u64,
    /// How many turns it has had.
    turns: u64,
    /// How many of its executions reported their behaviour, and how many were new. Old ones count less.
    #[serde(rename = "told")]
    reported: u64,
    new: u64,
    /// Its share of the turns in this batch.
    share: u64,
}

impl Arm {
    /// Its expected value, up to a common factor.
    fn worth(&self) -> u64 {
        // An arm without reports yet is assumed to be as good as possible.
        let new = (self.new + BELIEVED) * ONE / (self.reported + BELIEVED);
        self.part * new * IN_VAIN / (IN_VAIN + self.turns)
    }

    /// Its share of the turns that are divided evenly.
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
            // A random walk if there is no target.
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

    /// Whether this arm has made the policy.
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

/// The samplers and their parameters, each with its prior.
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
    /// The search of this seed.
    pub fn new(seed: u64) -> Portfolio {
        let kinds = kinds();
        let arm = |(kind, part): &(Kind, u64)| {
            let same = kinds.iter().filter(|(other, _)| discriminant(other) == discriminant(kind));
            let (shared_by, share) = (same.count() as u64, ALL / PARTS * part);
            Arm { kind: kind.clone(), part: *part, shared_by, turns: 0, reported: 0, new: 0, share }
        };
        let arms = kinds.iter().map(arm).collect();
        let arms = Arms { seed, offset: seeds::nth(seed, u64::MAX), arms };
        Portfolio { samplers: Sampling::of(seed, arms), solver: None }
    }

    /// The same search with the solver-driven search as one more arm.
    pub fn with_solver(self, options: heisen_causal::Options) -> Portfolio {
        Portfolio { solver: Some(SolverArm::new(options)), ..self }
    }
}

impl Strategy for Portfolio {
    fn next(&mut self) -> Option<Plan> {
        let number = self.samplers.begun();
        if let Some(solver) = self.solver.as_mut().filter(|solver| solver.is_out() || solver.is_due(number)) {
            // The solver's plan runs alone.
            if solver.is_out() || self.samplers.is_running() {
                return None;
            }
            if let Some(plan) = solver.next_plan() {
                return Some(plan);
            }
        }
        self.samplers.next()
    }

    fn done(&mut self, plan: &Plan, execution: &Execution) {
        match self.solver.as_mut().filter(|solver| solver.is_out()) {
            Some(solver) => solver.done(plan, execution, self.samplers.begun()),
            None => self.samplers.done(plan, execution),
        }
    }

    fn give_back_unrun(&mut self, plan: &Plan) {
        match self.solver.as_mut().filter(|solver| solver.is_out()) {
            Some(solver) => solver.give_back_unrun(plan),
            None => self.samplers.give_back_unrun(plan),
        }
    }

    fn needs_decisions(&self) -> bool {
        self.samplers.needs_decisions()
    }

    fn heed(&mut self, halt: Halt) {
        if let Some(solver) = &mut self.solver {
            solver.heed(halt);
        }
    }

    fn bound_memory(&mut self, room: Room) {
        if let Some(solver) = &mut self.solver {
            solver.bound_memory(room);
        }
    }

    fn needs_symbolic(&self) -> bool {
        self.solver.as_ref().is_some_and(SolverArm::is_out)
    }

    fn status(&self) -> Status {
        let status = self.samplers.status();
        let of_solver = self.solver.as_ref().map_or(0, SolverArm::executions);
        let out = status.out + usize::from(self.needs_symbolic());
        Status { executions: status.executions + of_solver, out, ..status }
    }
}

impl Arms {
    /// The arm whose turn it is. At first, two of three turns belong to the first arm; the second arm has the
    /// first of the others.
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
    /// Long enough that the cost of batches is small, even if executions are short.
    const LONGEST_BATCH: u64 = 512;

    /// The first arm's own second batch, and half as many turns of others.
    const SECOND_BATCH: u64 = 3;

    fn policy(&mut self, number: u64, _seed: u64) -> Policy {
        let index = self.turn(number);
        let arm = &mut self.arms[index];
        let nth = arm.turns;
        arm.turns += 1;
        match index {
            // The first plan of the first arm measures the length of executions as well as the default
            // schedule would.
            0 => arm.kind.policy(nth, seeds::nth(self.seed, nth)),
            // The first plan of the other arms would only measure that again, so it is skipped.
            _ => arm.kind.policy(1 + nth, seeds::nth(self.offset, number)),
        }
    }

    fn touches(&self, number: u64, policy: &Policy) -> bool {
        let looks = |arm: &Arm| matches!(&arm.kind, Kind::Directed(s) if s.looks());
        // Recording all touches is expensive, and few executions show new targets.
        (number.is_power_of_two() || number % LOOKS == 1)
            && !matches!(policy, Policy::Directed { .. })
            && self.arms.iter().any(looks)
    }

    fn learn(&mut self, policy: &Policy, execution: &Execution, usable: bool, new: Option<bool>) {
        for arm in &mut self.arms {
            if arm.kind.made(policy)
                && let Some(new) = new
            {
                arm.reported += ONE;
                arm.new += if new { ONE } else { 0 };
            }
            arm.kind.learn(policy, execution, usable, None);
        }
    }

    fn settle(&mut self) {
        let sum: u64 = self.arms.iter().map(Arm::worth).sum();
        for arm in &mut self.arms {
            arm.share = arm.even() + (ALL - EVEN) * arm.worth() / sum.max(1);
            arm.reported = arm.reported * KEPT / 10;
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
            symbolic: None,
        }
    }

    /// Runs a batch; `new` says which policies show new behaviour. Returns the turns of each arm.
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
        let mut arms = Portfolio::new(1).samplers.sampler;
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
        let mut arms = Portfolio::new(1).samplers.sampler;
        arms.kinds_settle();
        settled(&mut arms, |policy| matches!(policy, Policy::Pos { .. }));
        let second = settled(&mut arms, |_| false);
        for (&turns, arm) in second.iter().zip(&arms.arms) {
            // The useful arm has most turns; each of the others, about which little is known yet, at most a
            // twentieth.
            let right = if matches!(arm.kind, Kind::Pos(_)) { turns > 3200 } else { turns < 320 };
            assert!(right, "{turns} for {:?}, {second:?}", arm.kind);
        }
    }

    #[test]
    fn who_has_had_many_turns_in_vain_gets_fewer() {
        let mut arms = Portfolio::new(1).samplers.sampler;
        arms.kinds_settle();
        let batches: Vec<Vec<u64>> = (0..20).map(|_| settled(&mut arms, |_| true)).collect();
        let surw = |turns: &Vec<u64>| turns[0];
        assert!(surw(&batches[0]) > 6400 / 2, "{batches:?}");
        assert!(surw(&batches[19]) < 6400 / 2, "{batches:?}");
        // Each of the eight samplers has at least a 128th.
        for (index, arm) in arms.arms.iter().enumerate() {
            let least = 50 / arm.shared_by;
            assert!(batches.iter().all(|turns| turns[index] + 2 >= least), "{batches:?}");
        }
    }

    #[test]
    fn what_was_predicted_is_tried_early() {
        let mut arms = Portfolio::new(1).samplers.sampler;
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
    fn arms_are_distinguished() {
        let mut arms = Portfolio::new(1).samplers.sampler;
        arms.kinds_settle();
        for index in 0..arms.arms.len() {
            let policy = arms.arms[index].kind.policy(77, 5);
            let made: Vec<usize> =
                (0..arms.arms.len()).filter(|&i| arms.arms[i].kind.made(&policy)).collect();
            assert_eq!(made, [index]);
        }
    }

    impl Arms {
        /// As after the first execution, from which all arms learn, and with a target to steer to.
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
