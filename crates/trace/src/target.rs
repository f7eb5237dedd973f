//! Targets: what an execution is steered to, since an earlier one has shown that it may go wrong there.
//!
//! A target is a few *holds*: a thread that is about to do something is not let go on until another thread has come to
//! something, or has done it. That is how CalFuzzer (Joshi, Naik, Park, Sen: CalFuzzer, CAV 2009) makes what was predicted
//! come true. A hold is a wish: where nobody else can go on, the thread does.

use crate::plan::Policy;
use serde::{Deserialize, Serialize};

/// Holds of one target at most.
pub const MAX_HOLDS: usize = 16;

/// What a target was predicted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// Locks are taken in an order that goes round.
    LockOrder,
    /// A signal may come before the wait that it is to end.
    LostWakeUp,
    /// Two steps of two threads may come in the other order.
    Order,
    /// A thread's two steps may be torn apart by another's.
    Atomicity,
}

impl Family {
    /// What it is called in a sentence.
    pub const fn name(self) -> &'static str {
        match self {
            Family::LockOrder => "lock-order cycle",
            Family::LostWakeUp => "lost wake-up",
            Family::Order => "reversal of an order",
            Family::Atomicity => "violation of atomicity",
        }
    }
}

/// Something that a thread does, as the records of [`touch`](crate::touch) tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Deed {
    /// The thread.
    pub thread: u16,
    /// The operation's number; 0 for an access of memory.
    pub op: u8,
    /// The object; of memory, the word that the access begins in.
    pub object: u64,
    /// How many times the thread has done that by then, this time included.
    pub nth: u32,
    /// The step in the execution that it was seen in.
    pub step: u32,
}

/// One hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Hold {
    /// What is not to be done yet.
    pub at: Deed,
    /// What another thread is to come to first,
    pub until: Deed,
    /// or is to have done.
    pub past: bool,
}

/// What an execution is steered to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Target {
    /// What it was predicted from.
    pub family: Family,
    /// How to get there; at most [`MAX_HOLDS`].
    pub holds: Vec<Hold>,
    /// What is to be told of: of a lock-order cycle, for each thread in turn, where it takes the lock that it holds, and the
    /// one that the next thread holds; else the steps in the order that they are steered to.
    pub deeds: Vec<Deed>,
    /// Whether it is worth a hint if no execution gets there.
    pub likely: bool,
}

/// A target, and the execution that showed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Predicted {
    /// The target.
    pub target: Target,
    /// The number of the execution, from 1.
    pub execution: u64,
    /// The policy that it went by. There is nothing else to its plan.
    pub policy: Policy,
}

/// A prediction in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prediction {
    /// What it was predicted from.
    pub family: Family,
    /// The execution, from 1.
    pub execution: u64,
    /// Who does what where, one sentence each.
    pub steps: Vec<String>,
}
