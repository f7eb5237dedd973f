//! Any of the strategies, as one value that can be saved and resumed.

use crate::{Dfs, Dpor, Icb, Pct, Random, Status, Strategy, Touches};
use heisen_trace::{Execution, Plan};
use serde::{Deserialize, Serialize};

/// A search with any strategy.
///
/// It may be saved at any moment. Read back, it goes on as it would have: plans that were out come first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Search {
    /// Depth-first search.
    Dfs(Dfs),
    /// Iterative context bounding.
    Icb(Icb),
    /// Dynamic partial order reduction.
    Dpor(Dpor),
    /// Random walk.
    Random(Random),
    /// Probabilistic concurrency testing.
    Pct(Pct),
}

impl Search {
    /// The name of its strategy, as it is saved.
    pub fn name(&self) -> &'static str {
        match self {
            Search::Dfs(_) => "dfs",
            Search::Icb(_) => "icb",
            Search::Dpor(_) => "dpor",
            Search::Random(_) => "random",
            Search::Pct(_) => "pct",
        }
    }

    /// Whether it only ever samples, and so is never complete.
    pub fn samples(&self) -> bool {
        matches!(self, Search::Random(_) | Search::Pct(_))
    }

    fn strategy(&self) -> &dyn Strategy {
        match self {
            Search::Dfs(s) => s,
            Search::Icb(s) => s,
            Search::Dpor(s) => s,
            Search::Random(s) => s,
            Search::Pct(s) => s,
        }
    }

    fn strategy_mut(&mut self) -> &mut dyn Strategy {
        match self {
            Search::Dfs(s) => s,
            Search::Icb(s) => s,
            Search::Dpor(s) => s,
            Search::Random(s) => s,
            Search::Pct(s) => s,
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

    fn status(&self) -> Status {
        self.strategy().status()
    }
}

impl From<Dfs> for Search {
    fn from(s: Dfs) -> Search {
        Search::Dfs(s)
    }
}

impl From<Icb> for Search {
    fn from(s: Icb) -> Search {
        Search::Icb(s)
    }
}

impl From<Dpor> for Search {
    fn from(s: Dpor) -> Search {
        Search::Dpor(s)
    }
}

impl From<Random> for Search {
    fn from(s: Random) -> Search {
        Search::Random(s)
    }
}

impl From<Pct> for Search {
    fn from(s: Pct) -> Search {
        Search::Pct(s)
    }
}
