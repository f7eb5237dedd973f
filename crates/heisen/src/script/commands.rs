//! The commands of a script, and the library built from them.
//!
//! Figures 5 and 8 of CONCURRIT (Elmas, Burnim, Necula, Sen, PLDI'13).

use super::event::Event;
use super::predicate::Predicate;
use super::session::ask;
use super::threads::{Thread, Threads};
use super::{listed, quoted};
use std::fmt::Display;
use std::ops::RangeFull;

/// The events that [`select`] waits for: those of a predicate, or all events (`..`).
#[derive(Clone, Debug)]
pub struct Until(Option<Predicate>);

impl<P: Into<Predicate>> From<P> for Until {
    fn from(predicate: P) -> Until {
        Until(Some(predicate.into()))
    }
}

impl From<RangeFull> for Until {
    fn from(_: RangeFull) -> Until {
        Until(None)
    }
}

/// Waits for an event of one of the threads, and returns it. An event at which a thread is already held
/// counts.
#[track_caller]
pub fn select(threads: impl Into<Threads>, until: impl Into<Until>) -> Event {
    let threads = threads.into().0;
    Event::new(match until.into().0 {
        Some(until) => ask(format!("select({threads}, {})", until.0)),
        None => ask(format!("select({threads})")),
    })
}

/// Lets threads continue as soon as the script waits for something.
#[track_caller]
pub fn release(threads: impl Into<Threads>) {
    ask(format!("release({})", threads.into().0));
}

/// Returns one of the values; the search tries each of them.
#[track_caller]
pub fn choose<T>(values: impl IntoIterator<Item = T>) -> T {
    let mut values: Vec<T> = values.into_iter().collect();
    let chosen = ask(format!("choose({})", listed((0..values.len()).map(|n| n.to_string())))).number();
    values.swap_remove(chosen as usize)
}

/// Ends the execution. It counts as successful so far.
#[track_caller]
pub fn end_run() -> ! {
    ask("end_run()".to_owned());
    unreachable!("the execution goes on after its end")
}

/// Discards the execution if `holds` is false. The report counts discarded executions separately.
#[track_caller]
pub fn assume(holds: bool) {
    ask(format!("assume({holds})"));
}

/// Reports a bug if `holds` is false. A panic in the script, as by `assert!`, counts as a mistake in the
/// script.
#[track_caller]
pub fn assert(holds: bool, what: &str) {
    ask(format!("assert({holds}, {})", quoted(what)));
}

/// One execution that follows the script to its end is enough. The test fails if there is no such execution.
#[track_caller]
pub fn exists() {
    ask("exists()".to_owned());
}

/// Every execution must succeed. This is the default.
#[track_caller]
pub fn forall() {
    ask("forall()".to_owned());
}

/// A wait that takes this many seconds is infeasible. 0, the default, is no limit.
#[track_caller]
pub fn time_limit(seconds: u64) {
    ask(format!("time_limit({seconds})"));
}

/// Adds a line to the report of a finding, or to that of [`exists`].
#[track_caller]
pub fn print(what: impl Display) {
    ask(format!("print({})", quoted(&what.to_string())));
}

/// Waits for such an event of one of the threads, and returns the thread.
#[track_caller]
pub fn wait_for_thread(threads: impl Into<Threads>, until: impl Into<Predicate>) -> Thread {
    ask(format!("wait_for_thread({}, {})", threads.into().0, until.into().0)).thread()
}

/// Returns `N` threads that have reached such an event.
///
/// ```no_run
/// # use heisen::script::*;
/// let [a, b, c] = wait_for_distinct_threads(enters("work"));
/// ```
#[track_caller]
pub fn wait_for_distinct_threads<const N: usize>(until: impl Into<Predicate>) -> [Thread; N] {
    let mut answer = ask(format!("wait_for_distinct_threads({N}, {})", until.into().0));
    std::array::from_fn(|_| answer.thread())
}

/// Lets the given threads run until each has reached such an event. `any()` is not allowed.
#[track_caller]
pub fn run_until(threads: impl Into<Threads>, until: impl Into<Predicate>) {
    ask(format!("run_until({}, {})", threads.into().0, until.into().0));
}

/// As [`wait_for_thread`], for the n-th such event, counted from 1. Any of the threads may have the events
/// before.
#[track_caller]
pub fn wait_for_thread_nth(threads: impl Into<Threads>, until: impl Into<Predicate>, nth: usize) -> Thread {
    ask(format!("wait_for_thread({}, {}, {nth})", threads.into().0, until.into().0)).thread()
}

/// As [`run_until`], until each thread has reached its n-th such event, counted from 1.
#[track_caller]
pub fn run_until_nth(threads: impl Into<Threads>, until: impl Into<Predicate>, nth: usize) {
    ask(format!("run_until({}, {}, {nth})", threads.into().0, until.into().0));
}

/// Makes the n-th call of this kind that the threads make from here on fail, counted from 1.
///
/// The kinds are those of `heisen check --faults`.
#[track_caller]
pub fn let_fail(threads: impl Into<Threads>, kind: &str, nth: usize) {
    ask(format!("let_fail({}, {}, {nth})", threads.into().0, quoted(kind)));
}

/// Ends the n-th wait that the threads begin from here on without a wake-up, counted from 1.
#[track_caller]
pub fn let_wake_early(threads: impl Into<Threads>, nth: usize) {
    ask(format!("let_wake_early({}, {nth})", threads.into().0));
}

/// The next time that one of the threads could wake `whom` among other waiters, it wakes `whom`.
#[track_caller]
pub fn let_wake(threads: impl Into<Threads>, whom: Thread) {
    ask(format!("let_wake({}, {})", threads.into().0, whom.text()));
}

/// Makes the n-th [`crate::choose`] of the threads from here on return this value, counted from 1.
#[track_caller]
pub fn let_choose(threads: impl Into<Threads>, value: usize, nth: usize) {
    ask(format!("let_choose({}, {value}, {nth})", threads.into().0));
}

/// As [`run_until`], and then one more event of any kind, so that the first one has happened.
#[track_caller]
pub fn run_through(threads: impl Into<Threads>, until: impl Into<Predicate>) {
    ask(format!("run_through({}, {})", threads.into().0, until.into().0));
}

/// Returns one of the threads that have not ended and are not blocked; the search tries each of them.
#[track_caller]
pub fn choose_thread(threads: impl AsRef<[Thread]>) -> Thread {
    ask(format!("choose_thread({})", thread_list(threads))).thread()
}

/// Returns the values in some order; the search tries each order.
///
/// ```no_run
/// # use heisen::script::*;
/// # let [a, b, c] = wait_for_distinct_threads(starts());
/// for thread in permute([a, b, c]) {
///     run_until(thread, ends());
/// }
/// ```
#[track_caller]
pub fn permute<T, V: AsMut<[T]>>(mut values: V) -> V {
    let slice = values.as_mut();
    let mut answer = ask(format!("permute({})", listed((0..slice.len()).map(|n| n.to_string()))));
    // For each position, the original index of the value that is there now.
    let mut at: Vec<usize> = (0..slice.len()).collect();
    for to in 0..slice.len() {
        let wanted = answer.number() as usize;
        let from = at.iter().position(|value| *value == wanted).expect("each value once");
        slice.swap(to, from);
        at.swap(to, from);
    }
    values
}

/// Writes threads as an array of the script language.
pub(super) fn thread_list(threads: impl AsRef<[Thread]>) -> String {
    listed(threads.as_ref().iter().map(|thread| thread.text()))
}
