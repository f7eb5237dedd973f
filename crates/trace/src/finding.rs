//! Findings: bugs that were seen, replayed and described.

use crate::cycle::Cycle;
use crate::fault::Fault;
use crate::op::Op;
use crate::race::Race;
use crate::schedule::Schedule;
use crate::target::Prediction;
use crate::thread::ThreadId;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What kind of bug a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// An `assert` failed.
    Assertion,
    /// A signal killed the process.
    Crash,
    /// Threads wait for each other, or for something that can no longer happen.
    Deadlock,
    /// The program does not end under a fair schedule.
    Livelock,
    /// The program does not end, and a thread of it runs on and on without ever giving way to the others.
    GoodSamaritan,
    /// The process ended with another exit status than expected.
    ExitStatus,
    /// A Rust panic ended the process.
    Panic,
    /// A synchronisation object was used in a way that its specification leaves undefined.
    Misuse,
    /// Two accesses of the same memory that nothing orders.
    DataRace,
    /// Memory was used after it was freed.
    UseAfterFree,
    /// A block of memory was freed twice.
    DoubleFree,
    /// What was freed is no block of memory.
    InvalidFree,
    /// Memory before or behind a block was used.
    HeapOverflow,
    /// Blocks were unreachable at the end.
    Leak,
}

impl FindingKind {
    /// Every kind.
    pub const ALL: [FindingKind; 14] = [
        FindingKind::Assertion,
        FindingKind::Crash,
        FindingKind::Deadlock,
        FindingKind::Livelock,
        FindingKind::GoodSamaritan,
        FindingKind::ExitStatus,
        FindingKind::Panic,
        FindingKind::Misuse,
        FindingKind::DataRace,
        FindingKind::UseAfterFree,
        FindingKind::DoubleFree,
        FindingKind::InvalidFree,
        FindingKind::HeapOverflow,
        FindingKind::Leak,
    ];

    /// How the kind is written in files.
    pub const fn name(self) -> &'static str {
        match self {
            FindingKind::Assertion => "assertion",
            FindingKind::Crash => "crash",
            FindingKind::Deadlock => "deadlock",
            FindingKind::Livelock => "livelock",
            FindingKind::GoodSamaritan => "good-samaritan",
            FindingKind::ExitStatus => "exit-status",
            FindingKind::Panic => "panic",
            FindingKind::Misuse => "misuse",
            FindingKind::DataRace => "data-race",
            FindingKind::UseAfterFree => "use-after-free",
            FindingKind::DoubleFree => "double-free",
            FindingKind::InvalidFree => "invalid-free",
            FindingKind::HeapOverflow => "heap-overflow",
            FindingKind::Leak => "leak",
        }
    }

    /// Whether it is an error in the use of the heap.
    pub const fn is_of_memory(self) -> bool {
        matches!(
            self,
            FindingKind::UseAfterFree
                | FindingKind::DoubleFree
                | FindingKind::InvalidFree
                | FindingKind::HeapOverflow
                | FindingKind::Leak
        )
    }

    /// The kind with this name.
    pub fn from_name(name: &str) -> Option<FindingKind> {
        FindingKind::ALL.into_iter().find(|k| k.name() == name)
    }
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One frame of a stack, symbolised as far as the program's debug information allows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// Demangled function name, or `module+0xoffset`.
    pub function: String,
    /// Source file as the compiler recorded it.
    pub file: Option<String>,
    /// Line in it, from 1.
    pub line: Option<u32>,
    /// Whether the code belongs to the program rather than to a language's library.
    pub own: bool,
    /// The file that the code is in, by its name.
    #[serde(default)]
    pub module: String,
}

impl Frame {
    /// `file:line`, or the function where there is no line.
    pub fn place(&self) -> String {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => format!("{file}:{line}"),
            _ => self.function.clone(),
        }
    }
}

/// A stack, innermost frame first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stack(pub Vec<Frame>);

impl Stack {
    /// The innermost frame that a person would call the place in the program: the first in the program's own code,
    /// else the first with a source line, else the first.
    pub fn place(&self) -> Option<&Frame> {
        self.0
            .iter()
            .find(|f| f.own && f.line.is_some())
            .or_else(|| self.0.iter().find(|f| f.line.is_some()))
            .or_else(|| self.0.first())
    }
}

/// A switch of the schedule that was not the default, with what both sides were about to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Switch {
    /// The step it happened at.
    pub step: u32,
    /// The thread that was running.
    pub from: ThreadId,
    /// What it was about to do.
    pub op: Op,
    /// On which object.
    pub object: String,
    /// The thread that ran, or was woken, instead; for a choice that is none of threads, the same as `from`.
    pub to: ThreadId,
    /// Why this is not the default.
    pub kind: SwitchKind,
    /// How many choices there were.
    #[serde(default)]
    pub options: u16,
    /// Where the running thread was.
    pub stack: Stack,
}

/// Why a switch is not what would have happened by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SwitchKind {
    /// The running thread could have gone on.
    Preempt,
    /// The running thread blocked, ended or yielded, and not the next in line came after it.
    Free,
    /// Not the longest waiter was woken.
    Wake,
    /// `heisen_choose` returned this value rather than 0.
    Choose(u16),
    /// A wait could end though nobody woke the thread.
    Spurious,
    /// A call failed that could have succeeded.
    Fault(Fault),
}

impl SwitchKind {
    /// How the kind is written in files.
    pub const fn name(self) -> &'static str {
        match self {
            SwitchKind::Preempt => "preempt",
            SwitchKind::Free => "free",
            SwitchKind::Wake => "wake",
            SwitchKind::Choose(_) => "choose",
            SwitchKind::Spurious => "spurious",
            SwitchKind::Fault(_) => "fault",
        }
    }

    /// Whether a value was chosen rather than a thread.
    pub const fn is_value(self) -> bool {
        matches!(self, SwitchKind::Choose(_) | SwitchKind::Spurious | SwitchKind::Fault(_))
    }
}

/// A lock that a thread holds, for the description of a deadlock.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Held {
    /// The lock.
    pub object: String,
    /// Where it was acquired.
    pub place: String,
}

/// A live thread at the end of an execution.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ThreadEnd {
    /// The thread.
    pub thread: ThreadId,
    /// What it was about to do.
    pub op: Op,
    /// On which object.
    pub object: String,
    /// The thread that holds that object.
    pub holder: Option<ThreadId>,
    /// Whether that thread has ended already.
    pub holder_ended: bool,
    /// Whether somebody woke the waiters of that object when there were none, and this thread fell asleep later.
    #[serde(default)]
    pub missed_wakeup: bool,
    /// Whether it could not go on.
    pub blocked: bool,
    /// The locks it holds.
    pub holds: Vec<Held>,
    /// Where it was.
    pub stack: Stack,
}

/// What a thread did with a block of memory, and where.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BlockEvent {
    /// The thread.
    pub thread: ThreadId,
    /// Where it was.
    pub stack: Stack,
}

/// The block of memory that an error is about.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Block {
    /// Its bytes.
    pub size: u64,
    /// Its number, in the order in which blocks were allocated.
    pub number: u64,
    /// Where in it the error is: beyond its size is behind it, negative is before it.
    pub offset: i64,
    /// Who allocated it.
    pub allocated: BlockEvent,
    /// Who freed it.
    pub freed: Option<BlockEvent>,
}

/// A bug that was found and replayed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Finding {
    /// What kind of bug.
    pub kind: FindingKind,
    /// The failure in one sentence.
    pub message: String,
    /// Preemptions of the schedule.
    pub preemptions: u32,
    /// Which execution of the search it was, from 1.
    pub executions_to_find: u64,
    /// The thread that failed, where one did.
    pub thread: Option<ThreadId>,
    /// Where it failed.
    pub stack: Stack,
    /// The switches of the schedule that are not the default.
    pub switches: Vec<Switch>,
    /// The live threads at the end.
    pub threads: Vec<ThreadEnd>,
    /// What is repeated, if the program does not end.
    #[serde(default)]
    pub cycle: Option<Cycle>,
    /// The two accesses, if it is a data race.
    #[serde(default)]
    pub race: Option<Race>,
    /// The block of memory that it is about, if it is about one.
    #[serde(default)]
    pub block: Option<Block>,
    /// What it was predicted from, if the execution was steered to it.
    #[serde(default)]
    pub predicted: Option<Prediction>,
    /// The last lines the program wrote to its standard error.
    pub output: String,
    /// Two findings with the same signature are the same bug.
    pub signature: String,
    /// How to make it happen again.
    pub schedule: Schedule,
    /// What came from outside, for the file beside the schedule.
    #[serde(skip)]
    pub input: Option<std::sync::Arc<[u8]>>,
}
