//! The commands of a script, and the library that is made of them: figures 5 and 8 of CONCURRIT (Elmas, Burnim, Necula, Sen, PLDI'13).

use super::event::Event;
use super::predicate::Predicate;
use super::session::ask;
use super::threads::{Thread, Threads};
use super::{listed, quoted};
use std::fmt::Display;
use std::ops::RangeFull;

/// What [`select`] waits for: the events of a predicate, or any (`..`).
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

/// Waits for an event of one of the threads, and gives it; one that a thread is held at already counts.
#[track_caller]
pub fn select(threads: impl Into<Threads>, until: impl Into<Until>) -> Event {
    let threads = threads.into().0;
    Event::new(match until.into().0 {
        Some(until) => ask(format!("select({threads}, {})", until.0)),
        None => ask(format!("select({threads})")),
    })
}

/// Lets threads go on, as soon as the script waits for something.
#[track_caller]
pub fn release(threads: impl Into<Threads>) {
    ask(format!("release({})", threads.into().0));
}

/// One of the values; the next execution takes another one.
#[track_caller]
pub fn choose<T>(values: impl IntoIterator<Item = T>) -> T {
    let mut values: Vec<T> = values.into_iter().collect();
    let chosen = ask(format!("choose({})", listed((0..values.len()).map(|n| n.to_string())))).number();
    values.swap_remove(chosen as usize)
}

/// Ends the execution, which is good so far.
#[track_caller]
pub fn end_run() -> ! {
    ask("end_run()".to_owned());
    unreachable!("the execution goes on after its end")
}

/// Leaves the execution out if this does not hold; such are counted apart.
#[track_caller]
pub fn assume(holds: bool) {
    ask(format!("assume({holds})"));
}

/// It is a bug if this does not hold. (A panic in the script, as by `assert!`, is a mistake of the script.)
#[track_caller]
pub fn assert(holds: bool, what: &str) {
    ask(format!("assert({holds}, {})", quoted(what)));
}

/// One execution that follows the script to its end is enough, and the test fails if there is none.
#[track_caller]
pub fn exists() {
    ask("exists()".to_owned());
}

/// Every execution must be good, as without it.
#[track_caller]
pub fn forall() {
    ask("forall()".to_owned());
}

/// A wait that takes so many seconds cannot be followed; 0, the default, is no limit.
#[track_caller]
pub fn time_limit(seconds: u64) {
    ask(format!("time_limit({seconds})"));
}

/// A line among those of a finding, or of [`exists`].
#[track_caller]
pub fn print(what: impl Display) {
    ask(format!("print({})", quoted(&what.to_string())));
}

/// Waits for such an event of one of the threads, and gives the thread.
#[track_caller]
pub fn wait_for_thread(threads: impl Into<Threads>, until: impl Into<Predicate>) -> Thread {
    ask(format!("wait_for_thread({}, {})", threads.into().0, until.into().0)).thread()
}

/// As many threads as are asked for that come to such an event.
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

/// Lets threads, by name, go on until each has come to such an event.
#[track_caller]
pub fn run_until(threads: impl Into<Threads>, until: impl Into<Predicate>) {
    ask(format!("run_until({}, {})", threads.into().0, until.into().0));
}

/// As [`wait_for_thread`], for the n-th such event, counted from 1, whoever of them has the others.
#[track_caller]
pub fn wait_for_thread_nth(threads: impl Into<Threads>, until: impl Into<Predicate>, nth: usize) -> Thread {
    ask(format!("wait_for_thread({}, {}, {nth})", threads.into().0, until.into().0)).thread()
}

/// As [`run_until`], to the n-th such event of each, counted from 1.
#[track_caller]
pub fn run_until_nth(threads: impl Into<Threads>, until: impl Into<Predicate>, nth: usize) {
    ask(format!("run_until({}, {}, {nth})", threads.into().0, until.into().0));
}

/// Lets the n-th call of this kind fail that threads make from here on, counted from 1; the kinds are those of `heisen check --faults`.
#[track_caller]
pub fn let_fail(threads: impl Into<Threads>, kind: &str, nth: usize) {
    ask(format!("let_fail({}, {}, {nth})", threads.into().0, quoted(kind)));
}

/// Lets the n-th wait that threads begin from here on end though nobody wakes them, counted from 1.
#[track_caller]
pub fn let_wake_early(threads: impl Into<Threads>, nth: usize) {
    ask(format!("let_wake_early({}, {nth})", threads.into().0));
}

/// Where threads wake one of several that wait, it is this one.
#[track_caller]
pub fn let_wake(threads: impl Into<Threads>, whom: Thread) {
    ask(format!("let_wake({}, {})", threads.into().0, whom.text()));
}

/// The n-th [`crate::choose`] of threads from here on gives this value, counted from 1.
#[track_caller]
pub fn let_choose(threads: impl Into<Threads>, value: usize, nth: usize) {
    ask(format!("let_choose({}, {value}, {nth})", threads.into().0));
}

/// As [`run_until`], and then one event of any kind further, so that it is done.
#[track_caller]
pub fn run_through(threads: impl Into<Threads>, until: impl Into<Predicate>) {
    ask(format!("run_through({}, {})", threads.into().0, until.into().0));
}

/// One of those that have not ended and are not blocked.
#[track_caller]
pub fn choose_thread(threads: impl AsRef<[Thread]>) -> Thread {
    ask(format!("choose_thread({})", thread_list(threads))).thread()
}

/// The values in any order.
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
    // Where each value of the beginning is now.
    let mut at: Vec<usize> = (0..slice.len()).collect();
    for to in 0..slice.len() {
        let wanted = answer.number() as usize;
        let from = at.iter().position(|value| *value == wanted).expect("each value once");
        slice.swap(to, from);
        at.swap(to, from);
    }
    values
}

/// Threads in order.
pub(super) fn thread_list(threads: impl AsRef<[Thread]>) -> String {
    listed(threads.as_ref().iter().map(|thread| thread.text()))
}
