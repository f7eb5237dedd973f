//! Processes of the program: started, parked, run under plans, watched and ended.
//!
//! This room runs what it is given and reads the results. It does not judge them, and knows no search.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`zygote`] | one parked program, and the executions that are forked from it |
//! | [`run_config`] | what holds for all executions of a parked program |
//! | [`slots`], `brief_result` | jobs and results, as the wire holds them; results with nothing to report |
//! | `shared_prefix` | how many plans run together, and the prefix that they share |
//! | [`access_points`] | accesses that are scheduling points, and conflicts |
//! | `scope_ranges` | the code in which threads may be preempted |
//! | [`exit_status`] | how a process ended, in words |
//! | `hooks` | the user's commands and directories before and after each execution |
//! | `capture`, [`stdin`], [`recorded_input`] | what a program writes, reads, and has read from outside |
//! | `spin_watch` | loops that wait for memory to change |
//! | [`system`] | programs in system mode |
//! | [`deadline`] | when a check must end |
//! | `descriptor` | where the descriptors of a process lead |

pub mod access_points;
pub(crate) mod brief_result;
pub(crate) mod capture;
pub mod deadline;
pub(crate) mod descriptor;
pub mod exit_status;
pub(crate) mod hooks;
pub mod recorded_input;
pub mod run_config;
pub(crate) mod scope_ranges;
pub(crate) mod shared_prefix;
pub mod slots;
pub(crate) mod spin_watch;
pub mod stdin;
pub mod system;
pub mod zygote;
