//! Tests of `--patch`, which explores the atomic instructions of uninstrumented programs.

mod bad;
mod bugs;
mod counts;
mod generated;
mod places;
mod registers;
mod signals;
