//! The schedule file: what makes one execution happen again, as text a person can read, edit and commit.
//!
//! ```text
//! heisen schedule 1
//! program "/home/me/account"
//! arg "--fast"
//! binary 5f0c…                          hash of the executable
//! steps-limit 1000000
//! expect-exit 0
//! seed 0                                of what the program takes for random
//! patch "default"                       modules whose atomic instructions are scheduling points
//! spurious 1                            the budgets, where they are not 0
//! faults 1:malloc
//! access "account" 0x11d9 "account.c:23 deposit"    an access of memory that is a scheduling point
//! outcome assertion "balance == 200"
//! signature 8c1d0f6b2a7e4c55
//! mark stdin 4                          bytes from outside that are inputs
//! input 0.1 0 32 42 "amount"            an input: creation path of its thread, number, bits, value, name
//! thread T1 0.1 deposit                 creation path and start function, for the reader
//! at 12 T1 -> T2 preempt lock 2 "lock" "account.c:23 deposit"
//! at 30 T0 -> T3 wake cond_signal 2 "ready" "account.c:40 main"
//! at 31 T1 choose 2 of 5 "account.c:22 deposit"
//! at 35 T1 spurious cond_wait "ready" "account.c:27 deposit"
//! at 40 T2 fault malloc alloc "24 bytes" "account.c:31 deposit"
//! end 5
//! ```
//!
//! Only decisions that differ from the default are listed. `end` carries their number, so that a truncated file is
//! noticed. `#` starts a comment. Strings are quoted with `\"`, `\\`, `\n`, `\t` and `\xHH` as escapes.

mod parse;
#[cfg(test)]
mod tests;
mod words;
mod write;

use crate::fault::Faults;
use crate::finding::{FindingKind, SwitchKind};
use crate::hash::{EMPTY, thread_key};
use crate::op::Op;
use crate::symbolic::{ChosenInput, InputKey};
use crate::thread::ThreadId;
use crate::world::World;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The version of the format that this crate writes, and the only one it reads.
pub const VERSION: u32 = 1;

/// One decision of a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The step of the decision.
    pub step: u32,
    /// The thread that is running.
    pub from: ThreadId,
    /// The thread that runs, or is woken, instead of the default one. The same as `from` if the decision is
    /// not about threads.
    pub to: ThreadId,
    /// How the decision differs from the default.
    pub kind: SwitchKind,
    /// The operation that `from` is about to do.
    pub op: Op,
    /// How many choices there were; 0 if unknown.
    pub options: u16,
    /// The object of the operation, for the reader.
    pub object: String,
    /// The code location, for the reader.
    pub place: String,
}

/// A thread of the schedule, for the reader.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadLine {
    /// Its number in order of creation.
    pub thread: ThreadId,
    /// Its path of creation indices from the main thread.
    pub path: String,
    /// Its start function.
    pub start: String,
}

/// The value of an input of the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputLine {
    /// The path of creation indices of the thread that reads it.
    pub path: String,
    /// Its number among the inputs of that thread, from 0.
    pub number: u64,
    /// Its bits.
    pub width: u32,
    /// Its value.
    pub value: u64,
    /// Its name, for the reader.
    pub name: String,
}

impl InputLine {
    /// The input as a plan chooses it. `None` if the path is not one of a thread.
    pub fn chosen(&self) -> Option<ChosenInput> {
        let mut indices = self.path.split('.');
        let main = indices.next().filter(|first| *first == "0").map(|_| EMPTY);
        let thread =
            indices.try_fold(main?, |parent, index| Some(thread_key(parent, index.parse().ok()?)))?;
        Some(ChosenInput { key: InputKey { thread, number: self.number }, value: self.value })
    }
}

/// A schedule file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// The executable.
    pub program: Vec<u8>,
    /// Its arguments.
    pub args: Vec<Vec<u8>>,
    /// The source file it was compiled from by `heisen check FILE`.
    pub source: Option<Vec<u8>>,
    /// Whether that build was instrumented.
    #[serde(default)]
    pub instrumented: bool,
    /// Whether Rust's standard library was instrumented, too.
    #[serde(default)]
    pub with_std: bool,
    /// Whether that build was symbolic.
    #[serde(default)]
    pub symbolic: bool,
    /// Hash of the executable.
    pub binary: String,
    /// Whether steps are counted from `heisen_ready` rather than from `main`.
    #[serde(default)]
    pub at_ready: bool,
    /// The step limit of the execution.
    pub steps_limit: u32,
    /// The exit status that counts as success.
    pub expect_exit: i32,
    /// Whether of interchangeable threads only the first may continue (`--symmetry`).
    #[serde(default)]
    pub symmetry: bool,
    /// How many spurious wake-ups the execution may have.
    #[serde(default)]
    pub spurious: u32,
    /// The faults that it may have.
    #[serde(default)]
    pub faults: Faults,
    /// The environment of the execution.
    pub world: World,
    /// Name and hash of the file beside it with the recorded input.
    #[serde(default)]
    pub input: Option<(String, String)>,
    /// The inputs that the program asks for.
    #[serde(default)]
    pub inputs: Vec<InputLine>,
    /// The outcome it leads to: kind and message.
    pub outcome: Option<(FindingKind, String)>,
    /// The signature of that outcome.
    pub signature: String,
    /// The threads of the execution.
    pub threads: Vec<ThreadLine>,
    /// The decisions, in order of their steps.
    pub entries: Vec<Entry>,
}

impl Schedule {
    /// The number of preemptions among the entries.
    pub fn preemptions(&self) -> u32 {
        self.entries.iter().filter(|e| e.kind == SwitchKind::Preempt).count() as u32
    }

    /// The inputs as a plan chooses them.
    pub fn chosen_inputs(&self) -> Vec<ChosenInput> {
        self.inputs.iter().filter_map(InputLine::chosen).collect()
    }
}

/// Why a text is not a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub what: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl std::error::Error for ParseError {}
