//! Programs that are explored at their atomic instructions, though nobody instrumented them (`--patch`).

mod bad;
mod bugs;
mod counts;
mod generated;
mod places;
mod registers;
mod signals;
