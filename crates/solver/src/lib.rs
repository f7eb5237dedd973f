//! Solves constraints over the order of events and the values of bit-vectors: is there a schedule, and are there inputs,
//! for which these formulas hold?
//!
//! A [`Solver`] has events, which come in some order, and [`Terms`](term::Terms) of bit-vectors with the operations of
//! LLVM. [`Formula`]s say what must hold of both. The answer is a [`Model`], or the assumptions that exclude each other.
//! The search is a SAT solver of our own with a theory of orders; it is deterministic, and does no I/O.
//!
//! | module | what it is for |
//! | --- | --- |
//! | [`term`] | expressions |
//! | [`formula`] | what must hold |
//! | [`reads`] | which write a read sees |
//! | [`solver`] | questions and answers |
//! | `circuit`, `blast` | terms as clauses |
//! | [`order`] | the theory of orders |
//! | `sat` | the search |

#![forbid(unsafe_code)]

mod blast;
mod circuit;
pub mod formula;
pub mod order;
pub mod reads;
mod sat;
pub mod solver;
pub mod term;

pub use formula::Formula;
/// The operations of terms.
pub use heisen_trace::ValueOp as Op;
pub use order::Event;
pub use reads::Write;
pub use sat::Statistics;
pub use solver::{Answer, Limit, Model, Solver};
pub use term::Term;
