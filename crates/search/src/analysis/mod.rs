//! Analysis of finished executions. Uses no other room and knows no strategy.
//!
//! | module | what it is |
//! | --- | --- |
//! | `branch_points` | where an execution can be left |
//! | [`relation`] | dependence of steps, happens-before, the class of an execution |
//! | [`pairs`] | pairs of places in the code that followed each other |
//! | `behaviours` | how many behaviours were seen, and how likely the next one is new |
//! | `estimate` | how many executions are left |
//! | `seeds` | many seeds from one |

pub(crate) mod behaviours;
pub(crate) mod branch_points;
pub(crate) mod estimate;
pub mod pairs;
pub mod relation;
pub(crate) mod seeds;
