//! Turns an execution that failed into a finding: what happened, where, and in which words.
//!
//! This folder runs single schedules again and examines them. Only [`minimise`] uses the search.
//!
//! | module | what it is for |
//! | --- | --- |
//! | [`judge`] | decides whether the end of an execution is a bug |
//! | [`close_up`] | one execution of a schedule with stacks, names and values recorded |
//! | `race_close_up`, [`race_log`], [`suppress`] | close-ups of data races; all races of a check; suppressed ones |
//! | `heap_error` | which block a memory error is about |
//! | `livelock`, `cycle` | whether an execution returns to the same state, and what it repeats |
//! | [`minimise`], `blocks` | the simplest schedule that fails in the same way |
//! | [`explanation`] | why an execution fails: `twin` finds executions that pass, `compare` the differences, `classify` the class |
//! | [`unexplained`] | why there is no explanation, and the calls of executions that are too long for one |
//! | [`difference`] | two recorded executions, compared |
//! | [`what_if`] | an execution of a schedule in another order |
//! | [`divergence`] | where executions of one plan differ |
//! | [`debugger`] | executions for a debugger |

pub(crate) mod blocks;
pub(crate) mod classify;
pub mod close_up;
pub(crate) mod compare;
pub(crate) mod cycle;
pub mod debugger;
pub mod difference;
pub mod divergence;
pub mod explanation;
pub(crate) mod heap_error;
pub mod judge;
pub(crate) mod livelock;
pub mod minimise;
pub(crate) mod race_close_up;
pub mod race_log;
pub mod suppress;
pub(crate) mod twin;
pub mod unexplained;
pub mod what_if;
