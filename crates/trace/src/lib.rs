//! The vocabulary of Heisen: plain data and pure functions, without I/O and unsafe code.
//!
//! The part without `std` ([`op`], the codes of [`decision`], [`touch`], [`fault`], [`hash`]) is shared with
//! the runtime, which runs inside the program and cannot allocate.
#![cfg_attr(not(feature = "std"), no_std)]
#![forbid(unsafe_code)]

pub mod decision;
pub mod fault;
pub mod hash;
pub mod machine;
pub mod note;
pub mod op;
pub mod touch;
pub mod value_op;

#[cfg(feature = "std")]
pub mod access;
#[cfg(feature = "std")]
pub mod cycle;
#[cfg(feature = "std")]
pub mod execution;
#[cfg(feature = "std")]
pub mod explanation;
#[cfg(feature = "std")]
pub mod finding;
#[cfg(feature = "std")]
pub mod marked;
#[cfg(feature = "std")]
pub mod plan;
#[cfg(feature = "std")]
pub mod race;
#[cfg(feature = "std")]
pub mod schedule;
#[cfg(feature = "std")]
pub mod stdin;
#[cfg(feature = "std")]
pub mod symbolic;
#[cfg(feature = "std")]
pub mod target;
#[cfg(feature = "std")]
pub mod thread;
#[cfg(feature = "std")]
pub mod vector_clock;
#[cfg(feature = "std")]
pub mod world;

pub use decision::{Decision, DecisionKind};
pub use fault::Fault;
pub use note::Note;
pub use op::Op;
pub use touch::{Touch, TouchKind};
pub use value_op::ValueOp;

#[cfg(feature = "std")]
pub use access::{Accesses, CodePlace};
#[cfg(feature = "std")]
pub use execution::{Counted, Divergence, End, Execution};
#[cfg(feature = "std")]
pub use fault::Faults;
#[cfg(feature = "std")]
pub use finding::{Finding, FindingKind, Frame, Stack};
#[cfg(feature = "std")]
pub use plan::{Expected, Override, Plan, Policy, Sleep, Sleeper};
#[cfg(feature = "std")]
pub use race::Race;
#[cfg(feature = "std")]
pub use schedule::Schedule;
#[cfg(feature = "std")]
pub use stdin::Stdin;
#[cfg(feature = "std")]
pub use target::{Deed, Family, Hold, Predicted, Prediction, Target};
#[cfg(feature = "std")]
pub use thread::ThreadId;
#[cfg(feature = "std")]
pub use world::World;
