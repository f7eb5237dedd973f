//! The search: it takes finished executions and returns plans. It starts no processes, reads no clock and
//! does no I/O.
//!
//! Each strategy has its own file in one of two rooms. [`Search`] holds any strategy, and can be saved and
//! resumed.
//!
//! | room | what it is |
//! | --- | --- |
//! | [`systematic`] | strategies that explore every schedule, or every class, within their bound |
//! | [`sampling`] | strategies that draw schedules at random |
//! | [`predict`] | failures that one execution shows to be possible in another order |
//! | [`analysis`] | what can be computed from finished executions |
//! | `store` | waiting plans, plans that are out, states already explored |
#![forbid(unsafe_code)]

pub mod analysis;
mod halt;
pub mod predict;
pub mod sampling;
mod search;
mod status;
mod store;
pub mod systematic;
mod table;

pub use analysis::behaviours::Unseen;
pub use analysis::estimate::Remaining;
pub use halt::Halt;
pub use heisen_causal::ROUNDS;
pub use sampling::burst::Burst;
pub use sampling::delay::Delay;
pub use sampling::directed::Directed;
pub use sampling::fair_pct::FairPct;
pub use sampling::guided::Guided;
pub use sampling::pct::Pct;
pub use sampling::portfolio::Portfolio;
pub use sampling::pos::Pos;
pub use sampling::random::Random;
pub use sampling::surw::Surw;
pub use status::{Guarantee, Status};
pub use store::spill::{Room, SpillFile};
pub use systematic::best::Best;
pub use systematic::causal::Causal;
pub use systematic::dfs::Dfs;
pub use systematic::dpor::Dpor;
pub use systematic::dpor::bounded::Bpor;
pub use systematic::dpor::reorder_buffer::{MOST_EVENTS, Rerun};
pub use systematic::icb::Icb;
pub use table::{Class, Entry, Parameter, Parameters, Search, StrategyKind, TABLE};

use heisen_trace::{Execution, Plan};

/// Which records of touches a strategy needs; see [`heisen_trace::touch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Touches {
    /// No touches.
    None,
    /// At each decision the candidates and the hash of the state: `Choices` and `State`.
    States,
    /// All touches.
    All,
    /// All touches, and the places of the operations: `At`.
    Places,
}

/// A strategy: it turns finished executions into plans.
///
/// The engine asks for plans with [`next`](Strategy::next), as many as it can run at a time, and gives each
/// one back with [`done`](Strategy::done). Only `done` consumes a plan: a plan that is out when a search is
/// saved is handed out first when the search is resumed. The engine decides how many executions there may be.
pub trait Strategy {
    /// The next plan to run. `None` means that the strategy waits for plans that are out, or, if none is out,
    /// that the search has ended.
    fn next(&mut self) -> Option<Plan>;

    /// Takes back a plan that is out, with its finished execution.
    ///
    /// The engine gives plans back in the order in which they were handed out. Another order loses nothing,
    /// but changes the order of the plans that follow.
    ///
    /// # Panics
    /// If the plan is not out.
    fn done(&mut self, plan: &Plan, execution: &Execution);

    /// Takes back a plan that is out and was not run to its end. Such plans are handed out next, in the order
    /// in which they were first handed out.
    ///
    /// # Panics
    /// If the plan is not out.
    fn give_back_unrun(&mut self, plan: &Plan);

    /// Whether this strategy needs the decisions of executions.
    fn needs_decisions(&self) -> bool;

    /// Which touches of executions this strategy needs.
    fn needs_touches(&self) -> Touches {
        Touches::None
    }

    /// Whether this strategy needs the symbolic traces of executions.
    fn needs_symbolic(&self) -> bool {
        false
    }

    /// Limits the memory for waiting plans and states, for strategies that may have many of them.
    fn bound_memory(&mut self, _room: Room) {}

    /// Lets a strategy put off its own work, which may take long, when `halt` asks for it. Then
    /// [`next`](Strategy::next) may return `None` although the search has not ended.
    fn heed(&mut self, _halt: Halt) {}

    /// The state of the search.
    fn status(&self) -> Status;
}
