//! The stub: an object file that is linked to each instrumented executable and library, so that they run
//! anywhere.
//!
//! Each callback of the compiler is a jump through a table. At first the table holds the stub's own
//! functions, with which the program behaves as if it were not instrumented: plain accesses are ignored,
//! atomics are done. If Heisen's runtime is loaded when the module is initialised, the stub fills the table
//! with the runtime's functions. A jump preserves the return address, so the runtime sees the place in the
//! program.
//!
//! For symbolic builds the stub also takes the steps that instrumented code asks for, see `steps`: without the runtime
//! such code asks for none.
//!
//! All names are hidden, so that each module has its own stub and none depends on how another was built. They
//! are weak, so that linking the stub twice does no harm, and so that a program may define annotations
//! itself. The stub needs nothing from outside.
#![no_std]

mod atomic;
mod compose;
mod forward;
mod plain;
mod steps;
mod symbolic;
mod table;
mod wide;
