//! The events that [`select`](super::select) returns.

use super::predicate::Predicate;
use super::session::{Answer, ask};
use super::threads::Thread;

/// The next operation of a thread. Which fields have a meaning depends on its kind.
#[derive(Clone, Debug)]
pub struct Event {
    number: u64,
    /// `read`, `write`, `enter`, `return`, `call`, `control`, `lock`, `unlock`, `start`, `end`, `test_start`, `test_end`, `line` or
    /// `operation`.
    pub kind: String,
    /// The function of `enter` and `return`, as the script names it. For `line`, the line.
    pub function: String,
    /// The thread that the event belongs to.
    pub thread: Thread,
    /// The address of the memory access, or of the object of the operation.
    pub address: u64,
    /// The size of the memory access in bytes.
    pub size: u64,
    /// The value in memory before the access.
    pub value: u64,
    /// The first argument of the function or of the thread, for `enter` and `start`.
    pub arg0: u64,
    /// The second argument of the function, for `enter`.
    pub arg1: u64,
    /// The returned value, for `return`.
    pub returned: u64,
    /// The address from which the function was called, for `enter`.
    pub caller: u64,
    /// The number of the control point ([`crate::point_at`]), for `control`.
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

    /// Returns whether the event belongs to a predicate.
    #[track_caller]
    pub fn satisfies(&self, predicate: impl Into<Predicate>) -> bool {
        ask(format!("event({}).satisfies({})", self.number, predicate.into().0)).bool()
    }

    /// The source file of the event; empty without debug information.
    #[track_caller]
    pub fn file(&self) -> String {
        ask(format!("event({}).file", self.number)).text()
    }

    /// The source line of the event; 0 without debug information.
    #[track_caller]
    pub fn line(&self) -> u64 {
        ask(format!("event({}).line", self.number)).number()
    }
}
