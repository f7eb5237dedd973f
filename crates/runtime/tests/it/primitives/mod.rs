//! Tests that programs behave under Heisen as they do natively. Each program asserts its own expectations, so
//! a difference is a finding. Each first runs natively, then under random schedules and under those with at
//! most one preemption.
//!
//! The programs are in `programs/`, usually several small ones in a file. The modules here say which of them
//! are correct, which fail and how, and what a check reports about them.

mod c_cond;
mod c_io;
mod c_loads;
mod c_locks;
mod c_mutex;
mod c_sem_once_key;
mod c_threads;
mod c_time_futex;
mod choices;
mod counts;
mod cpp;
mod determinism;
mod ends;
mod fairness;
mod misuse;
mod rust;
