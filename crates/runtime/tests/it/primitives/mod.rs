//! Programs behave under Heisen as they do natively. Each asserts its own expectations, so that a difference is a
//! finding; each is first run as it is, then under random schedules and under those with at most one preemption.
//!
//! What the programs do lies in `programs/`, most of them several small ones in a file; here is which of them are fine,
//! which fail and how, and what a whole check says of them.

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
