//! Explanations: why an execution fails, by comparison with one that passes.

use crate::op::Op;
use crate::thread::ThreadId;
use crate::vector_clock::Clock;
use serde::{Deserialize, Serialize};

/// The class of a bug, in words that a developer uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BugClass {
    /// Another thread came between two accesses that should have been one step.
    AtomicityViolation,
    /// An access ran before the one that it needs.
    OrderViolation,
    /// Threads wait for each other.
    Deadlock,
    /// A wake-up did not reach the thread that waits: it came before the wait, or woke another thread.
    LostWakeUp,
    /// A thread went on after a wait although what it waited for was not true.
    MissedRecheck,
    /// Memory was used after it was freed, or freed twice.
    UseAfterFree,
    /// Two accesses that nothing orders, at least one of them a write.
    DataRace,
    /// Threads run for ever without getting anywhere.
    Livelock,
    /// The two executions differ, but in no pattern that has a name.
    #[default]
    Unclassified,
}

impl BugClass {
    /// Its name in a sentence.
    pub const fn name(self) -> &'static str {
        match self {
            BugClass::AtomicityViolation => "atomicity violation",
            BugClass::OrderViolation => "order violation",
            BugClass::Deadlock => "deadlock",
            BugClass::LostWakeUp => "lost wake-up",
            BugClass::MissedRecheck => "missed re-check of a condition",
            BugClass::UseAfterFree => "use after free",
            BugClass::DataRace => "data race",
            BugClass::Livelock => "livelock",
            BugClass::Unclassified => "unclassified",
        }
    }
}

/// One operation of an execution, with its names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// The step.
    pub step: u32,
    /// The thread.
    pub thread: ThreadId,
    /// The operation.
    pub op: Op,
    /// The name of its object; empty if it has none.
    pub object: String,
    /// For an access of memory: the value that was read or written.
    pub value: Option<u64>,
    /// The size of that value in bytes; 0 if there is none.
    pub size: u8,
    /// That value as its type shows it: `100`, `true`, `READY`, `&queue`. Empty if there is none, and for a wrong access.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Its place in the source; empty if unknown.
    pub place: String,
}

impl Moment {
    /// Whether it reads or writes memory.
    pub fn is_access(&self) -> bool {
        self.value.is_some()
    }

    /// The value of an access as its type shows it. A wrong access, such as one to freed memory, has none.
    pub fn shown_value(&self) -> Option<&str> {
        self.value.and(Some(self.text.as_str())).filter(|text| !text.is_empty())
    }

    /// Whether it writes memory.
    pub fn writes(&self) -> bool {
        self.is_access() && !matches!(self.op, Op::MemRead | Op::AtomicLoad)
    }
}

/// A value of unknown type: a signed number, or in hexadecimal if it looks like an address.
pub fn untyped(value: u64, size: u8) -> String {
    let signed = signed(value, size);
    if signed.unsigned_abs() > 1 << 32 { format!("{value:#x}") } else { signed.to_string() }
}

/// A value of `size` bytes as a signed number.
pub fn signed(value: u64, size: u8) -> i64 {
    match size {
        1 => i64::from(value as u8 as i8),
        2 => i64::from(value as u16 as i16),
        4 => i64::from(value as u32 as i32),
        _ => value as i64,
    }
}

/// What would prevent the bug, as far as locks show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Remedy {
    /// All three accesses hold the lock, but the thread releases it between its two accesses.
    ReleasedBetween {
        /// The lock.
        lock: String,
        /// The thread that releases it.
        thread: ThreadId,
        /// Where it releases the lock; empty if that is not in the program's own code.
        place: String,
    },
    /// The access of the other thread holds a lock that this one does not hold.
    LockMissing {
        /// The lock.
        lock: String,
        /// The thread that does not hold it.
        thread: ThreadId,
        /// Where it accesses the memory.
        place: String,
    },
    /// The threads acquire the locks in different orders.
    LockOrder {
        /// The locks of the cycle.
        locks: Vec<String>,
    },
    /// A wait must be in a loop that checks its condition again.
    WaitInLoop {
        /// The thread that did not check again.
        thread: ThreadId,
        /// The variable of the condition.
        variable: String,
        /// Where it waits.
        place: String,
    },
    /// A signal woke a thread that only waited again, while another one waited for the same condition variable.
    Broadcast {
        /// The condition variable.
        condition: String,
        /// The thread that the signal woke.
        woken: ThreadId,
        /// The thread that goes on waiting.
        thread: ThreadId,
        /// Where it was signalled.
        place: String,
    },
    /// A thread compares a variable with what it read before. It finds the same value, but in between there was another
    /// one (the ABA problem).
    SameValueAgain {
        /// The variable.
        variable: String,
        /// The value.
        value: String,
        /// The thread that compares.
        thread: ThreadId,
        /// Where it compares.
        place: String,
    },
}

impl Remedy {
    /// Replaces a place, if it is this one.
    pub fn move_place(&mut self, from: &str, to: &str) {
        let place = match self {
            Remedy::ReleasedBetween { place, .. }
            | Remedy::LockMissing { place, .. }
            | Remedy::WaitInLoop { place, .. }
            | Remedy::Broadcast { place, .. }
            | Remedy::SameValueAgain { place, .. } => place,
            Remedy::LockOrder { .. } => return,
        };
        if place == from {
            to.clone_into(place);
        }
    }
}

/// Two operations whose order matters: with the opposite order the program passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ordering {
    /// The operation that came first, as an index of [`Explanation::story`].
    pub first: usize,
    /// The operation that came second, as an index of [`Explanation::story`].
    pub second: usize,
}

/// How many executions stand behind the orderings of an explanation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// The executions that were run and have all orderings. All of them failed.
    pub failing: usize,
    /// The executions that were run and passed. None of them has all orderings. For each ordering there is one that has
    /// its operations in the opposite order, and has no other ordering reversed.
    pub passing: usize,
}

/// The last decision at which the failure could still be avoided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoReturn {
    /// The operation that was done there. After it every execution that was run failed.
    #[serde(flatten)]
    pub moment: Moment,
    /// The number of these executions.
    pub runs: usize,
    /// Whether there are no others with the scheduling points of this schedule. Accesses that are not scheduling points
    /// may come in another order.
    pub proven: bool,
}

/// How much smaller the differential projection is than the executions (Cortex, PPoPP'16, table 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reduction {
    /// The events of the failing execution.
    pub events: usize,
    /// Those that differ from the passing execution.
    pub events_shown: usize,
    /// The data flows of the failing execution: reads of a value that was written in it.
    pub flows: usize,
    /// Those that the passing execution does not have.
    pub flows_shown: usize,
}

/// One event of a compared execution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compared {
    /// The event.
    #[serde(flatten)]
    pub moment: Moment,
    /// Whether the other execution does not have it.
    pub only_here: bool,
    /// For a read: the index of the write that it saw in the same execution.
    pub from: Option<usize>,
    /// Whether the other execution does not have this data flow.
    pub flow_differs: bool,
    /// The index of the same event in the other execution. `None` if it does not have the event, or has it in the
    /// common beginning.
    #[serde(default)]
    pub partner: Option<usize>,
    /// Whether another thread was preempted just before this event.
    #[serde(default)]
    pub preempts: bool,
    /// The function.
    #[serde(default)]
    pub function: String,
    /// The functions and places of the stack, innermost first. Empty if no stack was taken.
    #[serde(default)]
    pub stack: Vec<String>,
    /// The locks that the thread holds.
    #[serde(default)]
    pub locks: Vec<String>,
    /// The vector clock.
    #[serde(default)]
    pub clock: Clock,
}

impl Compared {
    /// An event about which nothing else is known.
    pub fn new(moment: Moment) -> Compared {
        Compared {
            moment,
            only_here: false,
            from: None,
            flow_differs: false,
            partner: None,
            preempts: false,
            function: String::new(),
            stack: Vec::new(),
            locks: Vec::new(),
            clock: Clock::new(),
        }
    }
}

/// Two executions from their first difference on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comparison {
    /// The events of each execution.
    pub executions: [Vec<Compared>; 2],
    /// How many events both executions have in common before the first difference.
    pub common: usize,
    /// How much of each execution differs.
    pub reductions: [Reduction; 2],
}

/// Why an execution fails.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    /// The class of the bug.
    pub class: BugClass,
    /// What it is about: the names of variables or locks, separated by commas.
    pub object: String,
    /// The few operations that matter, in order.
    pub story: Vec<Moment>,
    /// Indices of operations of the story that the failure prevented: only passing executions have them.
    #[serde(default)]
    pub pending: Vec<usize>,
    /// Operations of the story that a thread waits to do when the execution ends, as indices.
    #[serde(default)]
    pub waiting: Vec<usize>,
    /// The pairs of them that must come in this order for the failure.
    pub orderings: Vec<Ordering>,
    /// What confirms that the orderings are necessary. `None` if they were only seen reversed in a passing execution. With
    /// no orderings: the executions that were run, none of which passed.
    #[serde(default)]
    pub evidence: Option<Evidence>,
    /// The point of no return, if it was found.
    #[serde(default)]
    pub no_return: Option<NoReturn>,
    /// Whether fewer executions were compared than the limit on their number allows, because the time was over. With more
    /// time the orderings and the point of no return may be others.
    #[serde(default)]
    pub out_of_time: bool,
    /// Whether it rests on calls only, because the execution has too many accesses of memory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub calls_only: bool,
    /// What would prevent the bug.
    pub remedies: Vec<Remedy>,
    /// How much of the executions had to be shown.
    pub reduction: Reduction,
    /// The failing execution from the first difference on.
    pub failing: Vec<Compared>,
    /// The passing execution from the first difference on.
    pub passing: Vec<Compared>,
    /// How many events both executions have in common before the first difference.
    pub common: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_unknown_type() {
        let cases = [
            (100, 4, "100"),
            (0xffff_ffff, 4, "-1"),
            (255, 4, "255"),
            (255, 1, "-1"),
            (u64::MAX, 8, "-1"),
            (0x7fff_1234_5678, 8, "0x7fff12345678"),
            (7, 0, "7"),
        ];
        for (value, size, text) in cases {
            assert_eq!(untyped(value, size), text);
        }
    }
}
