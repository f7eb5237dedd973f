//! The steps that an execution without end repeats.

use crate::finding::Stack;
use crate::op::Op;
use crate::thread::ThreadId;
use serde::{Deserialize, Serialize};

/// The order in which the steps of a [`Cycle`] are repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Exactly in this order.
    Exact,
    /// Each thread repeats its own steps in this order. How the threads take turns is not shown.
    EachThread,
    /// No order was found: these are the most frequent steps, the most frequent first.
    Frequent,
}

/// One repeated step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Repeated {
    /// The thread that takes it.
    pub thread: ThreadId,
    /// Its operation.
    pub op: Op,
    /// The object of the operation.
    pub object: String,
    /// Whether the operation succeeds.
    pub ok: bool,
    /// How often it was taken in the analysed steps.
    pub times: u32,
    /// The stack of the call.
    pub stack: Stack,
}

/// The steps that an execution repeats.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cycle {
    /// The order of the steps.
    pub order: Order,
    /// How many of the last steps of the execution were analysed.
    pub of: u32,
    /// How many steps one round has; 0 if no order was found.
    pub length: u32,
    /// The steps, as far as they are stored.
    pub steps: Vec<Repeated>,
}
