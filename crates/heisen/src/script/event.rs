//! Events, as `select` gives them.

use super::predicate::Predicate;
use super::session::{Answer, ask};
use super::threads::Thread;

/// What a thread is about to do. Which fields say anything depends on the kind.
#[derive(Clone, Debug)]
pub struct Event {
    number: u64,
    /// `read`, `write`, `enter`, `return`, `call`, `control`, `lock`, `unlock`, `start`, `end`, `test_start`, `test_end`, `line` or
    /// `operation`.
    pub kind: String,
    /// The function of `enter` and `return`, as the script has it; of `line`, the line.
    pub function: String,
    /// The thread.
    pub thread: Thread,
    /// Memory that is accessed, or the object of an operation.
    pub address: u64,
    /// Bytes that are accessed.
    pub size: u64,
    /// What is in the memory before.
    pub value: u64,
    /// The first argument, of `enter` and `start`.
    pub arg0: u64,
    /// The second argument, of `enter`.
    pub arg1: u64,
    /// What is returned, of `return`.
    pub returned: u64,
    /// Where the function was called from, of `enter`.
    pub caller: u64,
    /// The number of a control point.
    pub control: u64,
}

impl Event {
    pub(super) fn new(mut answer: Answer) -> Event {
        Event {
            number: answer.number(),
            kind: answer.text(),
            function: answer.text(),
            thread: answer.thread(),
            address: answer.number(),
            size: answer.number(),
            value: answer.number(),
            arg0: answer.number(),
            arg1: answer.number(),
            returned: answer.number(),
            caller: answer.number(),
            control: answer.number(),
        }
    }

    /// Whether it is one of a predicate.
    #[track_caller]
    pub fn satisfies(&self, predicate: impl Into<Predicate>) -> bool {
        ask(format!("event({}).satisfies({})", self.number, predicate.into().0)).bool()
    }

    /// The file of its place in the source; empty if nobody knows.
    #[track_caller]
    pub fn file(&self) -> String {
        ask(format!("event({}).file", self.number)).text()
    }

    /// The line of its place in the source; 0 if nobody knows.
    #[track_caller]
    pub fn line(&self) -> u64 {
        ask(format!("event({}).line", self.number)).number()
    }
}
