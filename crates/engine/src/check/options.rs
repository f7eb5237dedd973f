//! What a check is asked to do: the strategy, its bounds and limits, and what is done about races.
//!
//! It is saved with a search, so that one that is resumed goes on as it was begun.

use crate::scope::Patterns;
use crate::suppress::Suppressions;
use crate::zygote::{Carrier, Limits};
use heisen_search::{
    Bpor, Burst, Delay, Dfs, Directed, Dpor, FairPct, Icb, Pct, Portfolio, Pos, Random, Search, Surw,
};
use heisen_trace::{Faults, World};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Which strategy, as the user names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Iterative context bounding.
    Icb,
    /// Depth-first search.
    Dfs,
    /// Dynamic partial order reduction.
    Dpor,
    /// The same within a bound on preemptions; dpor, too, to the user.
    Bpor,
    /// Random walk.
    Random,
    /// Sticky random walk.
    Burst,
    /// Probabilistic concurrency testing.
    Pct,
    /// The same for as long as an execution should be, then a random walk.
    FairPct,
    /// Partial order sampling.
    Pos,
    /// Selectively uniform random walk.
    Surw,
    /// Delay bounding.
    Delay,
    /// Steered to what other executions have shown to be possible.
    Directed,
    /// All samplers in turn, by results.
    Portfolio,
}

impl Kind {
    /// Whether it only ever samples, and so is never complete.
    pub fn samples(self) -> bool {
        !matches!(self, Kind::Icb | Kind::Dfs | Kind::Dpor | Kind::Bpor)
    }
}

/// What to do, as far as a search that is resumed keeps it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Options {
    /// The strategy.
    pub strategy: Kind,
    /// Largest preemption bound of icb and of dpor within a bound.
    pub bound: u32,
    /// Depth of bugs that pct and fair-pct look for.
    pub depth: u32,
    /// Decisions for which a thread goes on in burst, on average; none for all lengths in turn.
    #[serde(default)]
    pub burst: Option<u32>,
    /// Delays of one execution of delay.
    pub delays: u32,
    /// Seed of the samplers.
    pub seed: u64,
    /// Most executions.
    pub executions: Option<u64>,
    /// Longest time.
    pub time: Option<Duration>,
    /// Steps of one execution.
    pub steps: u32,
    /// Longest time without a scheduling point.
    pub hang: Duration,
    /// Go on after a finding.
    pub keep_going: bool,
    /// The exit status that is right.
    pub expect_exit: i32,
    /// Where threads are preempted.
    #[serde(default)]
    pub scope: Patterns,
    /// Workers.
    pub jobs: usize,
    /// Bytes that waiting plans, and states that were seen, may take of memory.
    pub memory: usize,
    /// What carries the threads.
    #[serde(default)]
    pub carrier: Carrier,
    /// Whether executions run in one process, and what each has changed is put back.
    #[serde(default)]
    pub in_process: bool,
    /// Whether dfs and icb leave out what leads to states that were explored already.
    #[serde(default)]
    pub reduce: bool,
    /// Whether of threads that are alike only the first may go on.
    #[serde(default)]
    pub symmetry: bool,
    /// Spurious wake-ups of one execution.
    #[serde(default)]
    pub spurious: u32,
    /// Faults of one execution.
    #[serde(default)]
    pub faults: Faults,
    /// What surrounds the executions.
    pub world: World,
    /// Executions that are run first and do not count.
    pub warm_up: u64,
    /// What becomes of data races.
    #[serde(default)]
    pub races: Races,
    /// Races that are not to be reported.
    #[serde(default)]
    pub suppressions: Suppressions,
    /// Whether hints are shown, and not only counted.
    #[serde(default)]
    pub hints: bool,
}

/// What becomes of data races in an instrumented program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Races {
    /// They are scheduling points, and only what they lead to is reported.
    #[default]
    Quiet,
    /// They are reported, too.
    Report,
    /// The first ends the search.
    Stop,
    /// They are not looked for.
    Off,
}

impl Options {
    /// The limits of each execution.
    pub fn limits(&self, stop: Arc<AtomicBool>) -> Limits {
        Limits {
            steps: self.steps,
            hang: self.hang,
            carrier: self.carrier,
            in_process: self.in_process,
            symmetry: self.symmetry,
            spurious: self.spurious,
            faults: self.faults,
            world: self.world.clone(),
            stop,
            ..Limits::default()
        }
    }

    /// A fresh search with the chosen strategy.
    pub fn search(&self) -> Search {
        match self.strategy {
            Kind::Icb if self.reduce => Icb::new(Some(self.bound)).cached().into(),
            Kind::Icb => Icb::new(Some(self.bound)).into(),
            Kind::Dfs if self.reduce => Dfs::new().cached().into(),
            Kind::Dfs => Dfs::new().into(),
            Kind::Dpor => Dpor::optimal().into(),
            Kind::Bpor => Bpor::new(self.bound).into(),
            Kind::Random => Random::new(self.seed).into(),
            Kind::Burst => Burst::new(self.seed, self.burst).into(),
            Kind::Pct => Pct::new(self.seed, self.depth).into(),
            Kind::FairPct => FairPct::new(self.seed, self.depth).into(),
            Kind::Pos => Pos::new(self.seed).into(),
            Kind::Surw => Surw::new(self.seed).into(),
            Kind::Delay => Delay::new(self.seed, self.delays).into(),
            Kind::Directed => Directed::new(self.seed).into(),
            Kind::Portfolio => Portfolio::new(self.seed).into(),
        }
    }
}
