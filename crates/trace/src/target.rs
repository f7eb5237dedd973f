//! Targets: orders of steps into which an execution is steered, because an earlier one has shown that they
//! may fail.
//!
//! A target is a list of *holds*. A hold stops a thread before an operation until another thread has reached,
//! or done, some operation. CalFuzzer (Joshi, Naik, Park, Sen: CalFuzzer, CAV 2009) confirms predictions in
//! this way. A hold is not strict: if no other thread is enabled, the thread continues.

use crate::plan::Policy;
use serde::{Deserialize, Serialize};

/// The largest number of holds of one target.
pub const MAX_HOLDS: usize = 16;

/// The family of a prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// Threads acquire locks in cyclic order.
    LockOrder,
    /// A signal may come before the wait that it should end.
    LostWakeUp,
    /// Two steps of two threads may come in the opposite order.
    Order,
    /// A step of another thread may come between two steps of a thread.
    Atomicity,
}

impl Family {
    /// Its name in a sentence.
    pub const fn name(self) -> &'static str {
        match self {
            Family::LockOrder => "lock-order cycle",
            Family::LostWakeUp => "lost wake-up",
            Family::Order => "reversal of an order",
            Family::Atomicity => "violation of atomicity",
        }
    }
}

/// An operation of a thread, as the records of [`touch`](crate::touch) describe it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Deed {
    /// The thread.
    pub thread: u16,
    /// The operation's number; 0 for an access of memory.
    pub op: u8,
    /// The object; for memory, the first word of the access.
    pub object: u64,
    /// The number of this operation among equal ones of the thread, from 1.
    pub nth: u32,
    /// The step in the execution that showed it.
    pub step: u32,
}

/// One hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Hold {
    /// The operation that has to wait.
    pub at: Deed,
    /// The operation of another thread that it waits for.
    pub until: Deed,
    /// Whether the other thread must have done it, rather than only reached it.
    pub past: bool,
}

/// The order of steps into which an execution is steered.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Target {
    /// The family of the prediction.
    pub family: Family,
    /// The holds that lead there, at most [`MAX_HOLDS`].
    pub holds: Vec<Hold>,
    /// The operations that a report describes. For a lock-order cycle: for each thread in turn, where it
    /// acquires the lock that it holds, and the lock that the next thread holds. Otherwise the steps in the
    /// order of the target.
    pub deeds: Vec<Deed>,
    /// Whether it is worth a hint if no execution confirms it.
    pub likely: bool,
}

/// A target, and the execution that showed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Predicted {
    /// The target.
    pub target: Target,
    /// The number of the execution, from 1.
    pub execution: u64,
    /// The policy of that execution. Its plan has nothing else.
    pub policy: Policy,
}

/// A prediction, for reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prediction {
    /// What it was predicted from.
    pub family: Family,
    /// The number of the execution that showed it, from 1.
    pub execution: u64,
    /// Which thread does what where, one sentence each.
    pub steps: Vec<String>,
}
