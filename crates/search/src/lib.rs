//! The search: finished executions in, plans out. Pure: no processes, no clocks, no I/O.
//!
//! One file a strategy. [`dfs`], [`icb`], [`best`], [`dpor`] and [`bpor`] are systematic; [`random`], [`burst`], [`pct`],
//! [`fair_pct`], [`pos`], [`surw`] and [`delay`] sample, [`guided`] changes schedules that showed something new, [`directed`] steers to
//! what [`predict`] has found in other executions, and [`portfolio`] shares executions out among samplers. [`Search`] holds any of
//! them and can be saved and resumed. [`relation`] tells what the steps of an execution have to do with each other, [`pairs`] which
//! places in the code followed each other, and [`sampling`] is what the samplers have in common. The other parts they share are
//! not public: `branch` finds where a finished execution
//! can be left, `pool` keeps the plans that follow from it, `cache` the states that were seen, `ledger` the plans that are
//! out, `behaviours` what executions did, `tree` the events of threads, and `seeds` makes many seeds of one; `shelf` is for
//! plans that have no room in memory, `estimate` tells what is left; `reversal` and `wakeup` are parts of [`dpor`], `blocks` is one
//! of [`bpor`], `along` and `in_turn` are of both.
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
pub use store::spill::{Room, Shelf};
pub use systematic::best::Best;
pub use systematic::dfs::Dfs;
pub use systematic::dpor::Dpor;
pub use systematic::dpor::bounded::Bpor;
pub use systematic::dpor::in_order::{Again, MOST_EVENTS};
pub use systematic::icb::Icb;
pub use table::{Class, Entry, Parameter, Parameters, Search, StrategyKind, TABLE};

use heisen_trace::{Execution, Plan};

/// Which records of touches a strategy needs; see [`heisen_trace::touch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Touches {
    /// None.
    None,
    /// At each decision the candidates and the hash of the state: `Choices` and `State`.
    States,
    /// All.
    All,
    /// All, and where in the code they were made: `At`.
    Places,
}

/// A search for schedules.
///
/// The engine asks for plans with [`next`](Strategy::next), as many at a time as it can run, and gives each one back
/// with [`done`](Strategy::done). Only `done` consumes a plan: one that is out when a search is saved is the first to
/// be handed out when it is resumed. How many executions there may be is the engine's business.
pub trait Strategy {
    /// The next plan to run, or `None` when there is nothing to hand out until plans that are out come back, or ever
    /// if none is out.
    fn next(&mut self) -> Option<Plan>;

    /// Takes back a finished execution of a plan that is out.
    ///
    /// Plans are given back in the order in which they were handed out. Another order loses nothing, but the order
    /// of the plans that follow depends on it.
    ///
    /// # Panics
    /// If the plan is not out.
    fn done(&mut self, plan: &Plan, execution: &Execution);

    /// Takes back a plan that is out and was not run to its end. Those given back so, in whichever order, are the
    /// next ones handed out, in the order in which they first were.
    ///
    /// # Panics
    /// If the plan is not out.
    fn give_back_unrun(&mut self, plan: &Plan);

    /// Whether this strategy needs the decisions of executions.
    fn needs_decisions(&self) -> bool;

    /// Which touches of executions this strategy needs; none unless it says so.
    fn needs_touches(&self) -> Touches {
        Touches::None
    }

    /// Bounds the memory that waiting plans and states take, for strategies that may have many of them.
    fn bound_memory(&mut self, _room: Room) {}

    /// Lets a strategy whose own work may take long put it off when it is asked to. Until then [`next`](Strategy::next) may
    /// have no plan though the search is not at its end.
    fn heed(&mut self, _halt: Halt) {}

    /// Where the search stands.
    fn status(&self) -> Status;
}
