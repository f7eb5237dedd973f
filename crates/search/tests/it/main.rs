//! Tests of the search: strategies on toy programs, compared with brute force, and on native programs with
//! known counts.

mod best;
mod causal;
mod classes;
mod dpor;
mod native;
mod rooms;
mod samplers;
mod scheduling_points;
mod symmetry;
mod table;
mod toy;
