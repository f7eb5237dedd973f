//! What an execution that does not end does again and again.

use crate::finding::Stack;
use crate::op::Op;
use crate::thread::ThreadId;
use serde::{Deserialize, Serialize};

/// In which order the steps of a [`Cycle`] are repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Exactly this one.
    Exact,
    /// Each thread repeats its own steps in this order; how the threads take turns is not shown.
    EachThread,
    /// None that was found: these are the steps that were taken most often, the most frequent first.
    Frequent,
}

/// One repeated step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Repeated {
    /// The thread that takes it.
    pub thread: ThreadId,
    /// What it does.
    pub op: Op,
    /// On which object.
    pub object: String,
    /// Whether that succeeds.
    pub ok: bool,
    /// How often it was taken in the steps that were looked at.
    pub times: u32,
    /// Where it is called.
    pub stack: Stack,
}

/// The steps that are repeated.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cycle {
    /// In which order.
    pub order: Order,
    /// How many of the last steps of the execution were looked at.
    pub of: u32,
    /// How many steps one round has; 0 if no order was found.
    pub length: u32,
    /// The steps, as far as they are kept.
    pub steps: Vec<Repeated>,
}
