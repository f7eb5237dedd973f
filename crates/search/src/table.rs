//! The table of strategies: their names, help texts, options and constructors.
//!
//! The command line, reports, saved searches and the distinction between samplers and systematic strategies
//! all use this table.
//!
//! A new sampler needs a file in `sampling`, an entry here, a policy in the runtime, and a page in the
//! documentation.

use crate::{
    Best, Bpor, Burst, Causal, Delay, Dfs, Directed, Dpor, FairPct, Guided, Icb, Pct, Portfolio, Pos, Random,
    Strategy, Surw,
};
use serde::{Deserialize, Serialize};

/// The parameters of all strategies. Each strategy uses some of them.
#[derive(Clone, Debug)]
pub struct Parameters {
    /// The largest number of preemptions in an execution; [`u32::MAX`] for no bound.
    pub bound: u32,
    /// Whether to drop branches to states that were explored already.
    pub reduce: bool,
    /// The address ranges of changed code, in ascending order: first address and end of each.
    pub changed: Vec<(u64, u64)>,
    /// The depth of the bugs to look for.
    pub depth: u32,
    /// For how many decisions a thread runs on average; `None` for several lengths in turn.
    pub burst: Option<u32>,
    /// The number of delays in one execution.
    pub delays: u32,
    /// Whether executions can log symbolic traces.
    pub traced: bool,
    /// Whether inputs are chosen.
    pub inputs: bool,
    /// The most rounds of a loop that waits for other threads.
    pub rounds: u32,
    /// How many data races are looked for: none, one, or, if this is [`u32::MAX`], all.
    pub races: u32,
    /// The seed of a sampler.
    pub seed: u64,
}

impl Parameters {
    /// Those of the solver-driven search.
    fn causal(&self) -> heisen_causal::Options {
        let (inputs, rounds, meetings) = (self.inputs, self.rounds, self.races);
        heisen_causal::Options { inputs, rounds, meetings, ..Default::default() }
    }
}

/// An option that only some strategies take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// `--bound`
    Bound,
    /// `--changed-since`
    ChangedSince,
    /// `--reduce`
    Reduce,
    /// `--depth`
    Depth,
    /// `--burst`
    Burst,
    /// `--delays`
    Delays,
    /// `--inputs`
    Inputs,
    /// `--input`
    Input,
    /// `--rounds`
    Rounds,
    /// `--trace-memory`
    TraceMemory,
}

impl Parameter {
    /// The name of the option on the command line.
    pub fn option(self) -> &'static str {
        match self {
            Parameter::Bound => "--bound",
            Parameter::ChangedSince => "--changed-since",
            Parameter::Reduce => "--reduce",
            Parameter::Depth => "--depth",
            Parameter::Burst => "--burst",
            Parameter::Delays => "--delays",
            Parameter::Inputs => "--inputs",
            Parameter::Input => "--input",
            Parameter::Rounds => "--rounds",
            Parameter::TraceMemory => "--trace-memory",
        }
    }
}

/// How a strategy chooses schedules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// It explores every schedule, or every class, within its bound.
    Systematic,
    /// It draws schedules at random, and is never complete.
    Sampler,
}

/// One line of the table.
#[derive(Debug)]
pub struct Entry {
    /// The strategy.
    pub kind: StrategyKind,
    /// Its name in saved searches.
    pub name: &'static str,
    /// Its name on the command line and in reports.
    pub shown: &'static str,
    /// Its help text, in one line. `None` if the command line offers it under the name of another strategy.
    pub help: Option<&'static str>,
    /// How it chooses schedules.
    pub class: Class,
    /// Whether its plans refer to steps of earlier executions. New scheduling points shift those steps, so
    /// such a search starts over.
    pub counts_steps: bool,
    /// The options that it takes, among those that only some strategies take.
    pub takes: &'static [Parameter],
    /// Makes a new search.
    pub new: fn(&Parameters) -> Search,
}

macro_rules! strategies {
    ($($(#[$doc:meta])* $kind:ident {
        name: $name:literal,
        shown: $shown:literal,
        help: $help:expr,
        class: $class:ident,
        counts_steps: $counts:literal,
        takes: [$($takes:ident),*],
        new: $new:expr,
    })*) => {
        /// A strategy.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum StrategyKind {
            $($(#[$doc])* #[serde(rename = $name)] $kind,)*
        }

        /// All strategies, in the order in which help lists them.
        pub static TABLE: &[Entry] = &[$(Entry {
            kind: StrategyKind::$kind,
            name: $name,
            shown: $shown,
            help: $help,
            class: Class::$class,
            counts_steps: $counts,
            takes: &[$(Parameter::$takes),*],
            new: $new,
        },)*];

        /// A search with any strategy.
        ///
        /// It may be saved at any moment. A restored search continues like the original. Plans that were
        /// handed out but had no result come first.
        #[derive(Clone, Debug, Serialize, Deserialize)]
        #[allow(clippy::large_enum_variant, reason = "a check has one")]
        pub enum Search {
            $($(#[$doc])* #[serde(rename = $name)] $kind($kind),)*
        }

        impl Search {
            /// Its strategy.
            pub fn kind(&self) -> StrategyKind {
                match self {
                    $(Search::$kind(_) => StrategyKind::$kind,)*
                }
            }

            pub(crate) fn strategy(&self) -> &dyn Strategy {
                match self {
                    $(Search::$kind(s) => s,)*
                }
            }

            pub(crate) fn strategy_mut(&mut self) -> &mut dyn Strategy {
                match self {
                    $(Search::$kind(s) => s,)*
                }
            }
        }

        $(impl From<$kind> for Search {
            fn from(s: $kind) -> Search {
                Search::$kind(s)
            }
        })*
    };
}

strategies! {
    /// Iterative context bounding.
    Icb {
        name: "icb",
        shown: "icb",
        help: Some("All schedules, in order of preemptions"),
        class: Systematic,
        counts_steps: true,
        takes: [Bound, Reduce],
        new: |p| {
            let icb = Icb::new(Some(p.bound));
            Search::from(if p.reduce { icb.cached() } else { icb })
        },
    }
    /// Depth-first search.
    Dfs {
        name: "dfs",
        shown: "dfs",
        help: Some("All schedules, depth-first"),
        class: Systematic,
        counts_steps: true,
        takes: [Reduce],
        new: |p| Search::from(if p.reduce { Dfs::new().cached() } else { Dfs::new() }),
    }
    /// Best-first search.
    Best {
        name: "best",
        shown: "best",
        help: Some("All schedules, the most promising first: changed, new and rare code"),
        class: Systematic,
        counts_steps: true,
        takes: [Bound, ChangedSince],
        new: |p| {
            let bound = (p.bound < u32::MAX).then_some(p.bound);
            Best::new(bound, p.changed.clone()).into()
        },
    }
    /// Dynamic partial-order reduction.
    Dpor {
        name: "dpor",
        shown: "dpor",
        help: Some("One execution of each happens-before class (partial-order reduction)"),
        class: Systematic,
        counts_steps: true,
        takes: [],
        new: |_| Dpor::optimal().into(),
    }
    /// Partial-order reduction within a bound on preemptions: `dpor` with `--bound`.
    Bpor {
        name: "bpor",
        shown: "dpor",
        help: None,
        class: Systematic,
        counts_steps: true,
        takes: [Bound],
        new: |p| Bpor::new(p.bound).into(),
    }
    /// Solver-driven search.
    Causal {
        name: "causal",
        shown: "causal",
        help: Some("One execution of each path, chosen by a solver (programs built symbolically)"),
        class: Systematic,
        // Every access is a scheduling point from the start.
        counts_steps: false,
        takes: [Inputs, Input, Rounds, TraceMemory],
        new: |p| Causal::new(p.causal()).into(),
    }
    /// Random walk.
    Random {
        name: "random",
        shown: "random",
        help: Some("Every choice with the same probability"),
        class: Sampler,
        counts_steps: false,
        takes: [],
        new: |p| Random::new(p.seed).into(),
    }
    /// Sticky random walk.
    Burst {
        name: "burst",
        shown: "burst",
        help: Some("Like random, but each thread runs for several decisions"),
        class: Sampler,
        counts_steps: false,
        takes: [Burst],
        new: |p| Burst::new(p.seed, p.burst).into(),
    }
    /// Probabilistic concurrency testing.
    Pct {
        name: "pct",
        shown: "pct",
        help: Some("Random thread priorities that change a few times"),
        class: Sampler,
        counts_steps: false,
        takes: [Depth],
        new: |p| Pct::new(p.seed, p.depth).into(),
    }
    /// Fair probabilistic concurrency testing.
    FairPct {
        name: "fair-pct",
        shown: "fair-pct",
        help: Some("Like pct, and random once an execution gets long"),
        class: Sampler,
        counts_steps: false,
        takes: [Depth],
        new: |p| FairPct::new(p.seed, p.depth).into(),
    }
    /// Partial order sampling.
    Pos {
        name: "pos",
        shown: "pos",
        help: Some("A random priority for each event"),
        class: Sampler,
        counts_steps: false,
        takes: [],
        new: |p| Pos::new(p.seed).into(),
    }
    /// Selectively uniform random walk.
    Surw {
        name: "surw",
        shown: "surw",
        help: Some("Every interleaving with nearly the same probability"),
        class: Sampler,
        counts_steps: false,
        takes: [],
        new: |p| Surw::new(p.seed).into(),
    }
    /// Delay bounding, sampled.
    Delay {
        name: "delay",
        shown: "delay",
        help: Some("The default schedule with a few random delays"),
        class: Sampler,
        counts_steps: false,
        takes: [Delays],
        new: |p| Delay::new(p.seed, p.delays).into(),
    }
    /// Mutations of schedules that showed new behaviour.
    Guided {
        name: "guided",
        shown: "guided",
        help: Some("Mutations of schedules that showed new behaviour"),
        class: Sampler,
        counts_steps: true,
        takes: [],
        new: |p| Guided::new(p.seed).into(),
    }
    /// Executions steered into predictions.
    Directed {
        name: "directed",
        shown: "directed",
        help: Some("Steers executions into predicted deadlocks, lost wake-ups and atomicity violations"),
        class: Sampler,
        counts_steps: false,
        takes: [],
        new: |p| Directed::new(p.seed).into(),
    }
    /// A mix of samplers.
    Portfolio {
        name: "portfolio",
        shown: "portfolio",
        help: Some("Mixes all samplers and favours those that keep finding new behaviour"),
        class: Sampler,
        counts_steps: false,
        takes: [Inputs, Input, Rounds, TraceMemory],
        new: |p| {
            let samplers = Portfolio::new(p.seed);
            Search::from(if p.traced { samplers.with_solver(p.causal()) } else { samplers })
        },
    }
}

impl StrategyKind {
    /// Its line of the table.
    pub fn entry(self) -> &'static Entry {
        // The table has one line for each variant, in the same order.
        &TABLE[self as usize]
    }

    /// The strategy of this name on the command line.
    pub fn named(name: &str) -> Option<StrategyKind> {
        let offered = TABLE.iter().find(|entry| entry.shown == name && entry.help.is_some());
        offered.map(|entry| entry.kind)
    }

    /// Its name on the command line and in reports.
    // The field `name` of the entry is for saved searches, so this function returns `shown`.
    #[allow(clippy::misnamed_getters)]
    pub fn name(self) -> &'static str {
        self.entry().shown
    }

    /// Whether it is a sampler, which is never complete.
    pub fn samples(self) -> bool {
        self.entry().class == Class::Sampler
    }

    /// Whether it takes this option.
    pub fn takes(self, parameter: Parameter) -> bool {
        self.entry().takes.contains(&parameter)
    }

    /// A new search.
    pub fn search(self, parameters: &Parameters) -> Search {
        (self.entry().new)(parameters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_makes_the_search_that_it_names() {
        let parameters = Parameters {
            bound: 2,
            reduce: true,
            changed: Vec::new(),
            depth: 3,
            burst: None,
            delays: 3,
            traced: true,
            inputs: true,
            rounds: 8,
            races: 1,
            seed: 1,
        };
        for (number, entry) in TABLE.iter().enumerate() {
            assert_eq!(entry.kind as usize, number, "{}", entry.name);
            let search = entry.kind.search(&parameters);
            assert_eq!(search.kind(), entry.kind, "{}", entry.name);
            let offered = StrategyKind::named(entry.shown).map(StrategyKind::name);
            assert_eq!(offered, Some(entry.shown));
        }
        assert_eq!(StrategyKind::named("bpor"), None);
    }
}
