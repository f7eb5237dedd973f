//! A toy machine: threads with registers, shared memory, mutexes, condition variables and inputs.

pub mod generator;
pub mod machine;
pub mod oracle;
pub mod program;
pub mod runner;
