//! What a check is asked to do: the strategy, its bounds and limits, and what is done about races.
//!
//! It is saved with a search, so that one that is resumed goes on as it was begun.

use crate::check::changed::Changed;
use crate::check::scope::Patterns;
use crate::explain::suppress::Suppressions;
use crate::process::run_config::{Carrier, RunConfig};
use crate::program::Program;
use crate::program::uninstrumented;
pub use heisen_search::StrategyKind as Kind;
use heisen_search::{Parameter, Parameters, Search};
use heisen_trace::{Faults, World};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// What to do, as far as a search that is resumed keeps it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Options {
    /// The strategy.
    pub strategy: Kind,
    /// Largest preemption bound of icb, best and dpor within a bound; [`u32::MAX`] for none.
    pub bound: u32,
    /// The revision since which code counts as changed, which best begins with.
    #[serde(default)]
    pub changed_since: Option<String>,
    /// That code, as soon as it is known.
    #[serde(default)]
    pub changed: Changed,
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
    /// Whether dfs and icb leave out what leads to states that were explored already; icb does by itself where every access
    /// is seen.
    #[serde(default)]
    pub reduce: Option<bool>,
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
    /// Whether a verdict with a caveat has an exit status of its own.
    #[serde(default)]
    pub strict: bool,
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
    /// How each execution runs.
    pub fn run_config(&self, stop: Arc<AtomicBool>) -> RunConfig {
        RunConfig {
            steps: self.steps,
            hang: self.hang,
            computes: self.time.is_some(),
            carrier: self.carrier,
            in_process: self.in_process,
            symmetry: self.symmetry,
            spurious: self.spurious,
            faults: self.faults,
            world: self.world.clone(),
            stop,
            ..RunConfig::default()
        }
    }

    /// Whether data races are reported.
    pub fn reports_races(&self) -> bool {
        matches!(self.races, Races::Report | Races::Stop)
    }

    /// Whether states that were explored already lead to nothing. Unless told, that is so where it can be relied on: all of the program is
    /// instrumented, so nothing that makes a difference goes unseen, and executions do not differ by anything else.
    pub fn reduces(&self, program: &Program) -> bool {
        let seen = || {
            self.strategy == Kind::Icb
                && self.world.accesses.check
                && !self.world.real_time
                && self.scope == Patterns::default()
                && program.instrumented
                && uninstrumented::blind(program).is_empty()
        };
        self.reduce.unwrap_or_else(seen)
    }

    /// A new search with the chosen strategy.
    pub fn search(&self, program: &Program) -> Search {
        self.strategy.search(&Parameters {
            bound: self.bound,
            reduce: self.strategy.takes(Parameter::Reduce) && self.reduces(program),
            changed: self.changed.ranges.clone(),
            depth: self.depth,
            burst: self.burst,
            delays: self.delays,
            seed: self.seed,
        })
    }
}
