//! Tests of the search: strategies on toy programs, against brute force, and on native programs, by counting.

mod best;
mod classes;
mod dpor;
mod native;
mod rooms;
mod samplers;
mod scheduling_points;
mod symmetry;
mod table;
mod toy;
