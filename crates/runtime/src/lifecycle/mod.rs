//! The life of an execution: where it begins, and how it is undone.
//!
//! **Rule:** uses every room except `shim`. `wire_log` holds what an execution logs; `sched` decides where it
//! pauses and how it follows its plan.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`zygote`] | parks the program before `main`; executions are forked from it |
//! | [`begin`] | where an execution begins: every room takes over its part of the plan |
//! | [`in_process`] | runs many executions in one process: takes and restores snapshots |
//! | [`refused_calls`] | system calls that change the machine |
//! | [`system_start`] | the start of a program in system mode |
//! | [`stdin`] | standard input, read from its beginning in each execution |
//! | [`reaper`] | ends every process of a check when the check ends |

pub mod begin;
pub mod in_process;
pub mod reaper;
pub mod refused_calls;
pub mod stdin;
pub mod system_start;
pub mod zygote;
