//! Holds the user's settings of a check: the strategy, its bounds and limits, and how to treat data races.
//!
//! They are saved with a search, so that a resumed search goes on as it was begun.

use crate::check::changed::Changed;
use crate::check::scope::Patterns;
use crate::explain::suppress::Suppressions;
use crate::process::run_config::{Carrier, RunConfig, Symbolic};
use crate::program::Program;
use crate::program::uninstrumented;
pub use heisen_search::StrategyKind as Kind;
use heisen_search::{Parameter, Parameters, Search};
use heisen_trace::{Faults, World};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The settings of a check, as far as a resumed search keeps them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Options {
    /// The strategy.
    pub strategy: Kind,
    /// The largest preemption bound of icb, best and bounded dpor; [`u32::MAX`] for no bound.
    pub bound: u32,
    /// The revision since which code counts as changed; best begins with changed code.
    #[serde(default)]
    pub changed_since: Option<String>,
    /// The changed code, once it is known.
    #[serde(default)]
    pub changed: Changed,
    /// The depth of bugs that pct and fair-pct look for.
    pub depth: u32,
    /// For how many decisions on average burst lets a thread go on; `None` for all lengths in turn.
    #[serde(default)]
    pub burst: Option<u32>,
    /// The number of delays in one execution of delay.
    pub delays: u32,
    /// Seed of the samplers.
    pub seed: u64,
    /// The most executions of the search.
    pub executions: Option<u64>,
    /// The longest time of the search.
    pub time: Option<Duration>,
    /// The most steps of one execution.
    pub steps: u32,
    /// The longest time without a scheduling point.
    pub hang: Duration,
    /// Whether to go on after a finding.
    pub keep_going: bool,
    /// Whether the schedules of findings are minimised.
    #[serde(default)]
    pub minimise: bool,
    /// Whether findings are explained.
    #[serde(default)]
    pub explain: bool,
    /// The correct exit status.
    pub expect_exit: i32,
    /// Where threads are preempted.
    #[serde(default)]
    pub scope: Patterns,
    /// The number of workers.
    pub jobs: usize,
    /// How many bytes of memory waiting plans and seen states may take.
    pub memory: usize,
    /// Whether executions can log symbolic traces: the strategy asks for them, and the program is built for them.
    #[serde(default)]
    pub traced: bool,
    /// How many bytes a symbolic trace may take.
    #[serde(default = "trace_memory")]
    pub trace_memory: u64,
    /// Whether the search chooses inputs of the program.
    #[serde(default)]
    pub inputs: bool,
    /// The most rounds of a loop that waits for other threads, in the solver-driven search.
    #[serde(default = "rounds")]
    pub rounds: u32,
    /// What the threads run on.
    #[serde(default)]
    pub carrier: Carrier,
    /// Whether a runner runs many executions in one process and restores the snapshot after each.
    #[serde(default)]
    pub in_process: bool,
    /// Whether dfs and icb drop branches that lead to states explored already. By default, icb does so if
    /// every access is seen.
    #[serde(default)]
    pub reduce: Option<bool>,
    /// Whether symmetry reduction is on: of interchangeable threads, only the first may be scheduled.
    #[serde(default)]
    pub symmetry: bool,
    /// The most spurious wake-ups of one execution.
    #[serde(default)]
    pub spurious: u32,
    /// The most faults of one execution, and their kinds.
    #[serde(default)]
    pub faults: Faults,
    /// The environment of the executions.
    pub world: World,
    /// How many executions are run first, without counting.
    pub warm_up: u64,
    /// How to treat data races.
    #[serde(default)]
    pub races: Races,
    /// Races that are not reported.
    #[serde(default)]
    pub suppressions: Suppressions,
    /// Whether hints are shown, instead of only counted.
    #[serde(default)]
    pub hints: bool,
    /// Whether a verdict with a caveat has its own exit status.
    #[serde(default)]
    pub strict: bool,
}

/// How to treat data races in an instrumented program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Races {
    /// They are scheduling points, but only the failures that they cause are reported.
    #[default]
    #[serde(rename = "quiet")]
    Count,
    /// They are also reported.
    Report,
    /// The first one ends the search.
    Stop,
    /// They are not looked for.
    Off,
}

/// How many bytes a symbolic trace may take unless the user says otherwise.
pub fn trace_memory() -> u64 {
    Symbolic::default().memory
}

/// How many rounds of a waiting loop the solver-driven search follows unless the user says otherwise.
pub fn rounds() -> u32 {
    heisen_search::ROUNDS
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
            symbolic: self.traced.then(|| Symbolic { memory: self.trace_memory, ..Symbolic::default() }),
            ..RunConfig::default()
        }
    }

    /// Whether data races are reported.
    pub fn reports_races(&self) -> bool {
        matches!(self.races, Races::Report | Races::Stop)
    }

    /// How many data races a search should look for. Where they are only counted, one is enough for the claim.
    fn races_wanted(&self) -> u32 {
        match (self.world.accesses.check, self.reports_races()) {
            (false, _) => 0,
            (true, false) => 1,
            (true, true) => u32::MAX,
        }
    }

    /// Whether branches that lead to explored states are dropped. If the user does not say, they are dropped
    /// where this is reliable. That is so if the entire program is instrumented, so that no access that
    /// matters is missed, and nothing else makes executions differ.
    pub fn reduces(&self, program: &Program) -> bool {
        let seen = || {
            self.strategy == Kind::Icb
                && self.world.accesses.check
                && !self.world.real_time
                && self.scope == Patterns::default()
                && program.instrumented
                && uninstrumented::uninstrumented_code(program).is_empty()
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
            traced: self.traced,
            inputs: self.inputs,
            rounds: self.rounds,
            races: self.races_wanted(),
            seed: self.seed,
        })
    }
}
