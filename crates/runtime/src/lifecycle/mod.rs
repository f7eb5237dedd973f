//! The life of an execution: where it begins, what it logs, where it pauses, how it ends and is undone.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`zygote`] | parks the program before `main`; executions are forked from it |
//! | [`in_process`] | runs many executions in one process: takes and restores snapshots |
//! | [`report`] | the runtime's side of the wire |
//! | [`input_log`] | input from outside, recorded and replayed |
//! | [`stdin`] | standard input, read from its beginning in each execution |
//! | [`reaper`] | ends every process of a check when the check ends |

pub mod in_process;
pub mod input_log;
pub mod reaper;
pub mod report;
pub mod stdin;
pub mod zygote;
