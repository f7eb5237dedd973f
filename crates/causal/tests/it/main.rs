//! Tests of the solver-driven search with programs of a toy machine.

mod examples;
mod loops;
mod random;
mod toy;
