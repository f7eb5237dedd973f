//! Tests of the solver-driven search with programs of a toy machine.

mod examples;
mod random;
mod toy;
