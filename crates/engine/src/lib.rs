//! The engine: starts a program under the runtime, runs plans, watches, judges what it sees, and replays what it found
//! with everything on. It prints nothing.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`program`], [`compile`] | what is to be run, and whether it can be |
//! | `libraries` | what a program is linked with |
//! | `harness` | test programs, and whether they ran a test |
//! | `sanitizer` | programs that another sanitizer has taken over |
//! | [`blind`] | which code of a program is instrumented |
//! | [`instrument`] | what compilers and linkers are told to instrument a program |
//! | [`whole`] | Rust programs that are instrumented with the standard library |
//! | `driver` | what a call of a compiler asks for |
//! | [`unpack`] | the runtime, out of this executable into a file |
//! | [`zygote`] | one parked program and the executions forked from it |
//! | `capture` | what a program writes |
//! | [`scope`] | patterns for code, as ranges of addresses |
//! | [`changed`] | code that has changed since a revision, as ranges of addresses |
//! | [`patch`] | atomic instructions of code that is not instrumented |
//! | `around` | commands and directories around each execution |
//! | [`slot`] | jobs for executions and what came of them, as the wire holds them |
//! | `quiet` | executions of which there is nothing to tell |
//! | [`points`] | accesses of memory that conflict, and so are scheduling points |
//! | [`kept`] | those places, kept from check to check |
//! | `race`, [`raced`], [`suppress`] | a close look at a data race; all those of a check; those not to be reported |
//! | [`coverage`] | what a search has covered |
//! | [`judge`] | whether an execution is a bug |
//! | [`check`] | the search: batches of plans over all workers |
//! | [`sentences`] | what a verdict says |
//! | [`deadline`] | when a check must end |
//! | `descriptor` | where descriptors of a program lead |
//! | [`confirm`] | one close look at a schedule, which makes a finding of it |
//! | `recurrence` | whether an execution that does not end comes back to the same state |
//! | `memory` | which block a memory error is about |
//! | [`debug`] | executions for a debugger |
//! | [`diverge`] | where executions of one plan part ways |
//! | [`look`] | stacks and names from a paused process |
//! | [`input`] | input from outside that was recorded with a finding |
//! | [`stdin`] | what programs read from their standard input, and where it is kept |
//! | [`system`] | programs whose threads run free, but where a script holds them |
//! | [`saved`] | searches that were interrupted |

mod around;
pub mod blind;
mod capture;
pub mod changed;
pub mod check;
pub mod compile;
pub mod confirm;
pub mod coverage;
mod cycle;
pub mod deadline;
pub mod debug;
mod descriptor;
pub mod diverge;
mod driver;
pub mod error;
mod filter;
mod harness;
pub mod input;
pub mod instrument;
pub mod judge;
pub mod kept;
mod libraries;
pub mod look;
mod memory;
mod parting;
pub mod patch;
pub mod points;
pub mod program;
mod quiet;
mod race;
pub mod raced;
mod recurrence;
mod sanitizer;
pub mod saved;
pub mod scope;
pub mod sentences;
mod shelf;
pub mod slot;
mod spin;
pub mod stdin;
pub mod suppress;
mod sys;
pub mod system;
pub mod unpack;
pub mod whole;
pub mod zygote;

pub use error::Error;
