//! Findings: bugs that were seen, replayed and described.

use crate::cycle::Cycle;
use crate::explanation::Explanation;
use crate::fault::Fault;
use crate::op::Op;
use crate::race::Race;
use crate::schedule::Schedule;
use crate::target::Prediction;
use crate::thread::ThreadId;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The kind of bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// An `assert` failed.
    Assertion,
    /// A signal killed the process.
    Crash,
    /// Threads wait for each other, or for an event that can no longer happen.
    Deadlock,
    /// The program does not end under a fair schedule.
    Livelock,
    /// The program does not end, and one of its threads runs without ever yielding to the others.
    GoodSamaritan,
    /// The process ended with another exit status than expected.
    ExitStatus,
    /// A Rust panic ended the process.
    Panic,
    /// A synchronisation object was used in a way that its specification leaves undefined.
    Misuse,
    /// Two accesses of the same memory that nothing orders, at least one a write and not both atomic.
    DataRace,
    /// Memory was used after it was freed.
    UseAfterFree,
    /// A block of memory was freed twice.
    DoubleFree,
    /// An address was freed that is not that of a block.
    InvalidFree,
    /// Memory before or after a block was accessed.
    HeapOverflow,
    /// Blocks were left at the end that no pointer reaches.
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

/// One frame of a stack, symbolised as far as the debug information allows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// Demangled function name, or `module+0xoffset`.
    pub function: String,
    /// Source file as the compiler recorded it.
    pub file: Option<String>,
    /// The line in it, from 1.
    pub line: Option<u32>,
    /// Whether the code belongs to the program rather than to a library of the language.
    pub own: bool,
    /// Whether the code belongs to a dependency of the program: neither the program itself nor a library of the
    /// language.
    #[serde(default)]
    pub dependency: bool,
    /// The name of the file that holds the code.
    #[serde(default)]
    pub module: String,
}

impl Frame {
    /// Whether the code belongs to the program or one of its dependencies.
    pub fn is_program(&self) -> bool {
        self.own || self.dependency
    }

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
    /// The frame that a person would call the place in the program: the innermost in the program's own code or in a
    /// dependency, else the innermost with a source line, else the innermost.
    pub fn place(&self) -> Option<&Frame> {
        self.0
            .iter()
            .find(|f| f.is_program() && f.line.is_some())
            .or_else(|| self.0.iter().find(|f| f.line.is_some()))
            .or_else(|| self.0.first())
    }

    /// The innermost frame in the program's own code, if the place is in a dependency.
    pub fn caller_of_dependency(&self) -> Option<&Frame> {
        let inner = self.place().filter(|frame| frame.dependency)?;
        let after = self.0.iter().skip_while(|frame| !std::ptr::eq(*frame, inner));
        after.into_iter().find(|frame| frame.own && frame.line.is_some())
    }
}

/// A decision of the schedule other than the default, with the threads on both sides.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Switch {
    /// The step of the decision.
    pub step: u32,
    /// The thread that was running.
    pub from: ThreadId,
    /// The operation that it was about to do.
    pub op: Op,
    /// The object of the operation.
    pub object: String,
    /// The thread that ran, or was woken, instead. The same as `from` if the decision is not about threads.
    pub to: ThreadId,
    /// How the decision differs from the default.
    pub kind: SwitchKind,
    /// How many choices there were.
    #[serde(default)]
    pub options: u16,
    /// The stack of the running thread.
    pub stack: Stack,
}

/// How a decision differs from the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SwitchKind {
    /// The running thread was enabled.
    Preempt,
    /// The running thread blocked, ended or yielded, and another thread than the default one continued.
    Free,
    /// Another waiter than the longest one was woken.
    Wake,
    /// `heisen_choose` returned this value rather than 0.
    Choose(u16),
    /// A wait ended without a wake-up.
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

    /// Whether the decision is not about threads.
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
    /// The operation that it was about to do.
    pub op: Op,
    /// The object of the operation.
    pub object: String,
    /// The thread that holds that object.
    pub holder: Option<ThreadId>,
    /// Whether that thread has already ended.
    pub holder_ended: bool,
    /// Whether waiters of that object were woken when there were none, before this thread began to wait.
    #[serde(default)]
    pub missed_wakeup: bool,
    /// Whether it was disabled.
    pub blocked: bool,
    /// The locks that it holds.
    pub holds: Vec<Held>,
    /// Its stack.
    pub stack: Stack,
}

/// The allocation or the free of a block.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BlockEvent {
    /// The thread.
    pub thread: ThreadId,
    /// The stack of the call.
    pub stack: Stack,
}

/// The block of memory that an error is about.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Block {
    /// Its size in bytes.
    pub size: u64,
    /// Its number, in the order of allocation.
    pub number: u64,
    /// The offset of the error: at least the size if it is after the block, negative if before.
    pub offset: i64,
    /// The allocation.
    pub allocated: BlockEvent,
    /// The free, if the block was freed.
    pub freed: Option<BlockEvent>,
}

/// The values of a global variable, as its type shows them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GlobalValues {
    /// The variable.
    pub name: String,
    /// At each switch.
    pub at_switches: Vec<String>,
    /// At the end of the execution.
    pub at_end: String,
}

/// How a schedule was minimised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Minimised {
    /// The number of preemptions of the schedule that the search found.
    pub from: u32,
    /// The number of executions that were run to find the simplest schedule.
    pub runs: u64,
}

/// A bug that was found and replayed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Finding {
    /// What kind of bug.
    pub kind: FindingKind,
    /// The failure in one sentence.
    pub message: String,
    /// The number of preemptions of the schedule.
    pub preemptions: u32,
    /// The number of the execution in the search, from 1.
    pub executions_to_find: u64,
    /// The thread that failed, if a single thread did.
    pub thread: Option<ThreadId>,
    /// Where it failed.
    pub stack: Stack,
    /// The decisions of the schedule other than the default.
    pub switches: Vec<Switch>,
    /// The live threads at the end.
    pub threads: Vec<ThreadEnd>,
    /// The steps that are repeated, if the program does not end.
    #[serde(default)]
    pub cycle: Option<Cycle>,
    /// The two accesses, if it is a data race.
    #[serde(default)]
    pub race: Option<Race>,
    /// The block of memory, if it is about one.
    #[serde(default)]
    pub block: Option<Block>,
    /// The prediction, if the execution was steered to it.
    #[serde(default)]
    pub predicted: Option<Prediction>,
    /// Set if a simpler schedule than the one that the search found fails in the same way.
    #[serde(default)]
    pub minimised: Option<Minimised>,
    /// For a program that is not instrumented: its global variables that changed between the switches.
    #[serde(default)]
    pub globals: Vec<GlobalValues>,
    /// Why it fails.
    #[serde(default)]
    pub explanation: Option<Box<Explanation>>,
    /// The last lines the program wrote to its standard error.
    pub output: String,
    /// Two findings with the same signature are the same bug.
    pub signature: String,
    /// The schedule that reproduces it.
    pub schedule: Schedule,
    /// The recorded input, for the file beside the schedule.
    #[serde(skip)]
    pub input: Option<std::sync::Arc<[u8]>>,
}
