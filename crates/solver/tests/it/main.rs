//! Tests the solver against native arithmetic and against brute force.

mod brute_force;
mod definedness;
mod growth;
mod levels;
mod limits;
mod operators;
mod problem;
mod reads;
#[path = "../../benches/solver/traces.rs"]
mod traces;
mod z3;
