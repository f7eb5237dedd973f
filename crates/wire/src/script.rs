//! The commands of a script to the runtime, and the state of held threads. See `runtime::script`.
//!
//! While a script controls an execution, [`Script::turn`] says whose turn it is: that of the script, which
//! the engine runs, or that of the program. Both sides wait for it as a futex.

use crate::MAX_THREADS;
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

/// The largest number of threads that a script may know.
pub const MAX_SCRIPTED: usize = 256;
/// The largest number of words of a predicate.
pub const MAX_CODE: usize = 1024;
/// The largest number of functions and lines that a script may name.
pub const MAX_NAMED: usize = 64;

/// The largest number of promises that are not fulfilled yet.
pub const MAX_PROMISES: usize = 64;
/// In place of a thread: any thread.
pub const ANYONE: u32 = u32::MAX;

/// Values of [`Script::turn`], a futex word.
pub mod turn {
    /// The program runs.
    pub const PROGRAM: u32 = 0;
    /// The script runs.
    pub const SCRIPT: u32 = 1;
}

/// Values of [`Script::command`].
pub mod command {
    /// Release some threads, and continue until a selected thread has an event.
    pub const SELECT: u32 = 1;
    /// Release all threads. The script is over.
    pub const FINISH: u32 = 2;
}

/// Values of [`Script::answer`].
pub mod answer {
    /// An execution begins.
    pub const BEGINS: u32 = 0;
    /// A selected thread has an event.
    pub const EVENT: u32 = 1;
    /// No thread that is not held is enabled.
    pub const NOBODY: u32 = 2;
    /// All selected threads have ended.
    pub const ENDED: u32 = 3;
}

/// Kinds of events.
pub mod kind {
    /// About to read memory.
    pub const READ: u8 = 0;
    /// About to write memory.
    pub const WRITE: u8 = 1;
    /// At the start of a function that the script names.
    pub const ENTER: u8 = 2;
    /// About to return from such a function.
    pub const RETURN: u8 = 3;
    /// At the start of any instrumented function.
    pub const CALL: u8 = 4;
    /// At a control point.
    pub const POINT: u8 = 5;
    /// About to acquire a lock or semaphore.
    pub const LOCK: u8 = 6;
    /// About to release a lock or semaphore.
    pub const UNLOCK: u8 = 7;
    /// A thread starts.
    pub const START: u8 = 8;
    /// A thread has ended.
    pub const END: u8 = 9;
    /// `heisen_test_start`.
    pub const TEST_START: u8 = 10;
    /// `heisen_test_end`.
    pub const TEST_END: u8 = 11;
    /// At a line that the script names.
    pub const LINE: u8 = 12;
    /// Any other operation that is a scheduling point.
    pub const OTHER: u8 = 13;
}

/// Predicates on events: programs for a stack of truth values. The low byte of a word is one of these codes,
/// the other bytes are its operand. Some codes have one or two more words.
pub mod code {
    /// The kind is one of those in the bits of the operand.
    pub const KINDS: u8 = 1;
    /// The address is in the range of the next two words, from the first up to the second.
    pub const ADDRESS: u8 = 2;
    /// The function or line has the number of the operand.
    pub const NAMED: u8 = 3;
    /// The thread is in the function with this number (low byte), at least this many calls deep (rest).
    pub const INSIDE: u8 = 4;
    /// The number of the control point is the next word.
    pub const CONTROL: u8 = 5;
    /// The first argument is the next word.
    pub const ARG0: u8 = 6;
    /// The second argument is the next word.
    pub const ARG1: u8 = 7;
    /// The value is the next word.
    pub const VALUE: u8 = 8;
    /// The returned value is the next word.
    pub const RETURNS: u8 = 9;
    /// The operation has this number.
    pub const OP: u8 = 10;
    /// The thread belongs to the program with this number.
    pub const PROGRAM: u8 = 11;
    /// The thread belongs to the process with this number.
    pub const PROCESS: u8 = 12;
    /// Both of the last two values.
    pub const AND: u8 = 16;
    /// One of the last two values.
    pub const OR: u8 = 17;
    /// The negation of the last value.
    pub const NOT: u8 = 18;
}

/// The next operation of a thread.
#[derive(Debug)]
#[repr(C)]
pub struct Event {
    /// One of [`kind`].
    pub kind: AtomicU32,
    /// The size of the access in bytes.
    pub size: AtomicU32,
    /// The address of the memory or object.
    pub address: AtomicU64,
    /// The value in memory.
    pub value: AtomicU64,
    /// The number of the function or line that the script names, or of the control point.
    pub number: AtomicU64,
    /// The first two arguments of the function.
    pub args: [AtomicU64; 2],
    /// The returned value.
    pub returned: AtomicU64,
    /// The address from which the function was called.
    pub caller: AtomicU64,
    /// The address of the code.
    pub pc: AtomicU64,
    /// The step.
    pub step: AtomicU32,
    /// The operation, for [`kind::OTHER`], [`kind::LOCK`] and [`kind::UNLOCK`].
    pub op: AtomicU32,
    /// For each function that the script names: how many calls deep the thread is in it.
    pub inside: [AtomicU8; MAX_NAMED],
}

/// A predicate.
#[derive(Debug)]
#[repr(C)]
pub struct Predicate {
    /// How many words there are.
    pub length: AtomicU32,
    /// Unused.
    pub pad: AtomicU32,
    /// The words.
    pub words: [AtomicU64; MAX_CODE],
}

/// A decision, not about threads, that the script fixes in advance: which waiter wakes, whether a wait ends
/// early, whether a call fails, which value is chosen.
#[derive(Debug)]
#[repr(C)]
pub struct Promise {
    /// The number of the kind of decision. 0, the choice of a thread, if this promise is unused.
    pub kind: AtomicU32,
    /// The thread that makes the decision, or [`ANYONE`].
    pub thread: AtomicU32,
    /// The choice, by its name in schedules.
    pub value: AtomicU32,
    /// Which of these decisions is meant, from 1, counted from now on.
    pub nth: AtomicU32,
}

/// A set of threads.
pub type Set = [AtomicU64; MAX_THREADS / 64];

/// The commands and answers of a script.
#[derive(Debug)]
#[repr(C)]
pub struct Script {
    /// One of [`turn`].
    pub turn: AtomicU32,
    /// One of [`command`].
    pub command: AtomicU32,
    /// One of [`answer`].
    pub answer: AtomicU32,
    /// The thread that has an event.
    pub thread: AtomicU32,
    /// The kinds of events that the script mentions, as bits. The runtime ignores all others.
    pub kinds: AtomicU32,
    /// How many events the runtime examined.
    pub events: AtomicU32,
    /// The threads that continue.
    pub release: Set,
    /// The threads whose events are awaited, including future ones.
    pub select: Set,
    /// The threads that the script knows. They stop at every event that it mentions.
    pub known: Set,
    /// The threads that are held. Set by the runtime.
    pub held: Set,
    /// The awaited events.
    pub until: Predicate,
    /// The events that the script mentions.
    pub mentioned: Predicate,
    /// How many promises there are: the first of [`Script::promises`].
    pub promised: AtomicU32,
    /// Unused.
    pub pad: AtomicU32,
    /// The promises.
    pub promises: [Promise; MAX_PROMISES],
    /// The event of each held thread.
    pub at: [Event; MAX_SCRIPTED],
}
