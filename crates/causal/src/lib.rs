//! The solver-driven search: each execution takes a path that none before it took. It takes finished executions and
//! returns plans, as the other strategies do. It starts no processes, reads no clock and does no I/O.
//!
//! The local behaviour of a thread is a function of its unknowns: the values of its reads of shared memory, and inputs.
//! The search has a tree of the paths that executions have taken, and the constraints under which nodes of it are part
//! of one execution. A node that no execution has reached (the other outcome of a branch, another value of a switch, the
//! failure of an attempt, whatever follows where an execution was cut off) is a *question*: is there a prefix of an
//! execution within the tree in which a thread comes there? A solution is an order of events and values of inputs, which
//! become a [`Plan`](heisen_trace::Plan).
//!
//! Papers: Machado, Lucia, Rodrigues, "Production-guided concurrency debugging" (Cortex, PPoPP 2016), sections 2.3 and 3.2,
//! and Razavi, Farzan, Holzer, "Bounded-interference sequentialization for testing concurrent programs" (ISoLA 2012),
//! section 4.2, for the constraints: program order, locks, and which write a read takes its value from. Unlike theirs, a
//! question concerns a prefix, over all paths seen so far, and not a complete execution on chosen paths.
//!
//! # Why the search is complete
//!
//! Take any execution E, and its first event at which a thread leaves the tree. Everything before that event is in the
//! tree, so it is a prefix that satisfies the constraints, and the thread stands at a node whose next event is known: the
//! tree has all outcomes of an event as soon as it has one. So the question for the outcome that E takes is satisfiable.
//! Hence, if no question is satisfiable, no execution leaves the tree, and every local outcome of every execution (a
//! failed assertion, a crash) has been seen. An execution that ends in a deadlock within the tree satisfies the question
//! whether one exists in which its threads stand where they stand.
//!
//! Each satisfiable question leads to an execution with at least one new outcome. So there are at most as many executions
//! as local outcomes, and no two of one class: the executions of a class agree in all outcomes.
//!
//! A solution can be run: its events are those of whole steps in an order in which each is enabled, reads what it should,
//! and leaves the state that the next one needs. So the execution of its plan comes to the node that was asked for.
//!
//! As long as the main thread is alone and reads no input there is only one path, so its other outcomes are not asked for,
//! and an operation has no effect on others.
//!
//! A loop that waits for other threads has no last path. So the question for an outcome is not asked where a thread has
//! repeated the same read or attempt more often than [`Options::rounds`] without an effect on others. What was said holds for
//! the executions without such a place; [`Status::bounded`] says whether there may be others.
//!
//! Questions that need few rounds come first. Once those of at most r rounds are answered, no execution in which threads do
//! at most r rounds leaves the tree, and none will as the tree grows: [`Status::completed`]. A thread that has done all
//! rounds may stand where it is, as one that is blocked: if every other thread stands for ever as well, and did so before its
//! last round began, the next round is like the last one. The execution that answers shows whether that is a livelock.
//!
//! This needs that a path has one next event, that the constraints say all of what operations do, and that the solver
//! answers. Where that fails, [`Exactness`] says so. Tests compare the search with all schedules and all inputs of random
//! programs.
//!
//! | module | what it is for |
//! | --- | --- |
//! | `tree` | the paths of all threads |
//! | `insert`, `expressions`, `steps` | from traces to the tree |
//! | `encode`, `clauses`, `counters` | from the tree to constraints |
//! | `memory`, `mutexes`, `queues`, `futexes`, `semaphores`, `barriers`, `joins`, `deadlocks` | the constraints of one sort of object each |
//! | `bounds` | when the caller stops it, and its memory |
//! | `rounds` | loops that wait, and how far they are followed |
//! | `ends` | accesses of memory that another thread frees |
//! | `meetings` | threads that are about to do conflicting accesses |
//! | `questions`, `search` | what to ask next |
//! | `schedule` | from a solution to a plan |

#![forbid(unsafe_code)]

mod barriers;
mod bounds;
mod clauses;
mod counters;
mod deadlocks;
mod encode;
mod ends;
mod exactness;
mod expressions;
mod futexes;
mod insert;
mod joins;
mod meetings;
mod memory;
mod mutexes;
mod questions;
mod queues;
mod rounds;
mod schedule;
mod search;
mod semaphores;
mod steps;
mod tree;

pub use bounds::Stop;
pub use exactness::{Counted, Exactness};
pub use search::{Causal, Options, ROUNDS, Status};
