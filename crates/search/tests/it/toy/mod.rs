//! Tests of the strategies on small in-memory programs. They compare with numbers computed by hand, and with
//! an enumeration that knows nothing of plans.

mod best;
mod chance;
mod classes;
mod counts;
mod drive;
mod estimate;
mod gaps;
mod generator;
mod guided;
mod halted;
mod oracle;
mod program;
mod properties;
mod reduced;
mod resume;
mod room;
mod runner;
