//! Tests of the engine: how it starts, watches, judges and replays programs, whatever they do.

mod accesses;
mod bad_programs;
mod bad_schedules;
mod coverage;
mod explained;
mod limits;
mod long;
mod memory;
mod names;
mod patch;
mod predicted;
mod races;
mod random_ends;
mod rooms;
mod same;
mod scope;
mod values;
