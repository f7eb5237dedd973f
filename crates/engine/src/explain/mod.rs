//! Turns an execution that failed into a finding: what happened, where, and in which words.
//!
//! This folder runs single schedules again and examines them. Only [`minimise`] and [`neighbourhood`] use the search.
//!
//! | module | what it is for |
//! | --- | --- |
//! | [`judge`] | decides whether the end of an execution is a bug |
//! | [`close_up`] | one execution of a schedule with stacks, names and values recorded |
//! | `race_close_up`, [`race_log`], [`suppress`] | close-ups of data races; all races of a check; suppressed ones |
//! | `heap_error` | which block a memory error is about |
//! | `livelock`, `cycle` | whether an execution returns to the same state, and what it repeats |
//! | [`minimise`], `blocks` | the simplest schedule that fails in the same way |
//! | [`explanation`] | why an execution fails; puts the next seven together |
//! | [`neighbourhood`] | executions near a failing one, and how they end |
//! | `necessary` | the smallest set of orderings that explains the failure |
//! | `no_return` | the last decision at which the failure could be avoided |
//! | `compare` | what differs between two executions |
//! | `classify`, `recheck`, `kinds` | the class of a bug, by the differences, by a wait, or by the kind of the finding |
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
pub(crate) mod kinds;
pub(crate) mod livelock;
pub mod minimise;
pub(crate) mod necessary;
pub mod neighbourhood;
pub(crate) mod no_return;
pub(crate) mod race_close_up;
pub mod race_log;
pub(crate) mod recheck;
pub mod suppress;
pub mod unexplained;
pub mod what_if;
