//! The search patterns of CONCURRIT (PLDI'13), section 5.1.
//!
//! A step is the next read, write or call of a thread, or its end.

use super::commands::thread_list;
use super::predicate::Predicate;
use super::session::ask;
use super::threads::{Thread, Threads};
use super::{listed, quoted};

fn names(functions: &[&str]) -> String {
    listed(functions.iter().map(|function| quoted(function)))
}

/// Runs this many threads, each from its start to its end, in all orders.
#[track_caller]
pub fn search_seq(threads: usize) {
    ask(format!("search_seq({threads})"));
}

/// Runs this many threads from their start, in all interleavings of their steps.
#[track_caller]
pub fn search_all(threads: usize) {
    ask(format!("search_all({threads})"));
}

/// Runs this many threads that enter one of the functions, in all interleavings of the steps inside.
///
/// It ends when no thread is inside any more.
#[track_caller]
pub fn search_in_func(threads: usize, functions: &[&str]) {
    ask(format!("search_in_func({threads}, {})", names(functions)));
}

/// As [`search_in_func`], with switches only at control points.
#[track_caller]
pub fn search_in_func_large_steps(threads: usize, functions: &[&str]) {
    ask(format!("search_in_func_large_steps({threads}, {})", names(functions)));
}

/// From here on, explores all interleavings of these threads while one of them is in one of the functions.
#[track_caller]
pub fn search_in_buggy(threads: impl AsRef<[Thread]>, functions: &[&str]) {
    ask(format!("search_in_buggy({}, {})", thread_list(threads), names(functions)));
}

/// As [`search_in_func`], with at most `bound` contexts, then one thread after the other.
///
/// The search also chooses the length of each context.
#[track_caller]
pub fn context_bounded(bound: usize, threads: usize, functions: &[&str]) {
    ask(format!("context_bounded({bound}, {threads}, {})", names(functions)));
}

/// Runs one schedule: each pair names a thread and the event up to which it runs.
///
/// ```no_run
/// # use heisen::script::*;
/// # let [a, b] = wait_for_distinct_threads(starts());
/// exact_schedule([(a, enters("work")), (b, ends()), (a, ends())]);
/// ```
#[track_caller]
pub fn exact_schedule<T: Into<Threads>, P: Into<Predicate>>(steps: impl IntoIterator<Item = (T, P)>) {
    let step = |(threads, until): (T, P)| format!("[{}, {}]", threads.into().0, until.into().0);
    ask(format!("exact_schedule({})", listed(steps.into_iter().map(step))));
}
