//! Any of the strategies, as one value that can be saved and resumed.

use crate::systematic::dpor::reorder_buffer::OrderedSearch;
use crate::{
    Best, Bpor, Burst, Delay, Dfs, Directed, Dpor, FairPct, Guided, Halt, Icb, Pct, Portfolio, Pos, Random,
    Rerun, Room, Status, Strategy, Surw, Touches,
};
use heisen_trace::{Execution, Plan};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The strategies, each with its name. The first four are systematic.
macro_rules! strategies {
    ($($(#[$doc:meta])* $kind:ident = $name:literal;)*) => {
        /// A search with any strategy.
        ///
        /// It may be saved at any moment. Read back, it goes on as it would have: plans that were out come first.
        #[derive(Clone, Debug, Serialize, Deserialize)]
        #[allow(clippy::large_enum_variant, reason = "a check has one")]
        pub enum Search {
            $($(#[$doc])* #[serde(rename = $name)] $kind($kind),)*
        }

        impl Search {
            /// The name of its strategy, as it is saved.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Search::$kind(_) => $name,)*
                }
            }

            fn strategy(&self) -> &dyn Strategy {
                match self {
                    $(Search::$kind(s) => s,)*
                }
            }

            fn strategy_mut(&mut self) -> &mut dyn Strategy {
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
    /// Depth-first search.
    Dfs = "dfs";
    /// Iterative context bounding.
    Icb = "icb";
    /// Best-first search.
    Best = "best";
    /// Dynamic partial order reduction.
    Dpor = "dpor";
    /// Partial order reduction within a bound on preemptions.
    Bpor = "bpor";
    /// Random walk.
    Random = "random";
    /// Sticky random walk.
    Burst = "burst";
    /// Probabilistic concurrency testing.
    Pct = "pct";
    /// Fair probabilistic concurrency testing.
    FairPct = "fair-pct";
    /// Partial order sampling.
    Pos = "pos";
    /// Selectively uniform random walk.
    Surw = "surw";
    /// Delay bounding, sampled.
    Delay = "delay";
    /// Schedules that showed something new, changed.
    Guided = "guided";
    /// Steered to what other executions have shown to be possible.
    Directed = "directed";
    /// All samplers in turn, by results.
    Portfolio = "portfolio";
}

impl Search {
    /// Whether it is a sampler, which never ends.
    pub fn samples(&self) -> bool {
        !matches!(self, Search::Dfs(_) | Search::Icb(_) | Search::Best(_) | Search::Dpor(_) | Search::Bpor(_))
    }

    /// Whether its plans refer to steps of earlier executions, and so become useless when steps are counted
    /// anew.
    pub fn counts_steps(&self) -> bool {
        !self.samples() || matches!(self, Search::Guided(_))
    }

    /// In a search that was just read back: the executions that it has to run again. Can be taken once.
    pub fn take_rerun(&mut self) -> Rerun {
        match self {
            Search::Dpor(dpor) => dpor.buffer_mut().take_rerun(),
            Search::Bpor(bpor) => bpor.buffer_mut().take_rerun(),
            _ => Rerun::default(),
        }
    }

    /// The places of accesses whose order was or will be reversed, for strategies that reverse races; see
    /// [`Dpor::reversed_places`].
    pub fn reversed_places(&self) -> Option<&BTreeSet<u64>> {
        match self {
            Search::Dpor(dpor) => Some(dpor.reversed_places()),
            _ => None,
        }
    }
}

impl Strategy for Search {
    fn next(&mut self) -> Option<Plan> {
        self.strategy_mut().next()
    }

    fn done(&mut self, plan: &Plan, execution: &Execution) {
        self.strategy_mut().done(plan, execution);
    }

    fn give_back_unrun(&mut self, plan: &Plan) {
        self.strategy_mut().give_back_unrun(plan);
    }

    fn needs_decisions(&self) -> bool {
        self.strategy().needs_decisions()
    }

    fn needs_touches(&self) -> Touches {
        self.strategy().needs_touches()
    }

    fn heed(&mut self, halt: Halt) {
        self.strategy_mut().heed(halt);
    }

    fn bound_memory(&mut self, room: Room) {
        self.strategy_mut().bound_memory(room);
    }

    fn status(&self) -> Status {
        self.strategy().status()
    }
}
