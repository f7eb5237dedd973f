//! Systematic strategies: they explore every schedule, or one execution of every class, within their bound.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`icb`] | iterative context bounding: schedules in order of preemptions |
//! | [`dfs`] | depth-first search |
//! | [`best`] | best-first search: the most promising schedules first |
//! | [`dpor`] | dynamic partial-order reduction, also within a preemption bound |
//! | [`causal`] | solver-driven search: each execution takes a path that none before it took |
//! | `branch` | turns a finished execution into the plans that leave it |
//! | `frontier` | the part that icb and dfs share |

pub mod best;
pub(crate) mod branch;
pub mod causal;
pub mod dfs;
pub mod dpor;
pub(crate) mod frontier;
pub mod icb;
