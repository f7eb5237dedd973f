//! Runs processes of the program: starts them, parks them, runs plans in them, watches them and ends them.
//!
//! This folder runs the jobs that it is given and reads their results. It does not judge them, and does not
//! know the search.
//!
//! | module | what it is for |
//! | --- | --- |
//! | [`zygote`] | one parked program, and the executions forked from it |
//! | [`run_config`] | the settings for all executions of a parked program |
//! | [`slots`], `brief_result` | jobs and results in the wire; short results without anything to report |
//! | `shared_prefix` | how many plans run in one turn, and the prefix that they share |
//! | [`symbolic_trace`] | the memory for symbolic traces, and reading them |
//! | [`access_points`] | accesses that are scheduling points, and conflicts |
//! | `scope_ranges` | the code in which threads may be preempted |
//! | [`exit_status`] | how a process ended, in words |
//! | `hooks` | the user's commands and directories before and after each execution |
//! | `capture`, [`stdin`], [`recorded_input`] | a program's output, standard input, and recorded input |
//! | [`marked`] | bytes from outside that are inputs |
//! | `spin_watch` | spin loops: finds them and makes their threads yield |
//! | [`system`] | programs in system mode |
//! | [`deadline`] | when a check must end |
//! | `descriptor` | what the descriptors of a process are connected to |

pub mod access_points;
pub(crate) mod brief_result;
pub(crate) mod capture;
pub mod deadline;
pub(crate) mod descriptor;
pub mod exit_status;
pub(crate) mod hooks;
pub mod marked;
pub mod recorded_input;
pub mod run_config;
pub(crate) mod scope_ranges;
pub(crate) mod shared_prefix;
pub mod slots;
pub(crate) mod spin_watch;
pub mod stdin;
pub mod symbolic_trace;
pub mod system;
pub mod zygote;
