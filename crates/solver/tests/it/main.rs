//! Tests the solver against native arithmetic and against brute force.

mod brute_force;
mod definedness;
mod levels;
mod limits;
mod operators;
mod problem;
