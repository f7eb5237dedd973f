//! Samplers: strategies that draw schedules at random, one file each.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`random`], [`burst`] | random walk; random walk that lets a thread run for a while |
//! | [`pct`], [`fair_pct`] | random priorities; the same with a fair tail |
//! | [`pos`], [`surw`] | a random priority for each event; every interleaving with equal probability |
//! | [`delay`] | the default schedule with a few random delays |
//! | [`guided`] | mutates schedules that showed something new |
//! | [`directed`] | steers executions to predicted failures |
//! | [`portfolio`] | mixes all samplers and favours those that keep finding new behaviour |
//! | [`solver_arm`] | the solver-driven search as a part of it |
//! | [`common`], `thread_tree` | the parts that samplers share |

pub mod burst;
pub mod common;
pub mod delay;
pub mod directed;
pub mod fair_pct;
pub mod guided;
pub mod pct;
pub mod portfolio;
pub mod pos;
pub mod random;
pub mod solver_arm;
pub mod surw;
pub(crate) mod thread_tree;
