//! Analysis of finished executions: dependence and classes, pairs of places, behaviours, how much is left. Knows no strategy.

pub(crate) mod behaviours;
pub(crate) mod estimate;
pub mod pairs;
pub mod relation;
