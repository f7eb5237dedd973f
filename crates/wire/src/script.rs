//! Scripts: what the engine wants held, and what is told of threads that are. See `runtime::script::unit_mode`.
//!
//! While a script is at work, [`Script::turn`] says whose turn it is: the script's, which is run by the engine, or the
//! program's. Both sides wait for it as for a futex.

use crate::MAX_THREADS;
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

/// Most threads that a script may know.
pub const MAX_SCRIPTED: usize = 256;
/// Most words of a predicate.
pub const MAX_CODE: usize = 1024;
/// Most functions and lines that a script may name.
pub const MAX_NAMED: usize = 64;

/// Most things that a script may have promised and that have not come yet.
pub const MAX_PROMISES: usize = 64;
/// In place of a thread: any.
pub const ANYONE: u32 = u32::MAX;

/// Values of [`Script::turn`], a futex word.
pub mod turn {
    /// The program runs.
    pub const PROGRAM: u32 = 0;
    /// The script does.
    pub const SCRIPT: u32 = 1;
}

/// Values of [`Script::command`].
pub mod command {
    /// Release some threads, and go on until one of those that are selected has an event.
    pub const SELECT: u32 = 1;
    /// Release all of them. The script is over.
    pub const FINISH: u32 = 2;
}

/// Values of [`Script::answer`].
pub mod answer {
    /// An execution begins.
    pub const BEGINS: u32 = 0;
    /// A selected thread has an event.
    pub const EVENT: u32 = 1;
    /// No thread can go on that is not held.
    pub const NOBODY: u32 = 2;
    /// All threads that are selected have ended.
    pub const ENDED: u32 = 3;
}

/// Kinds of events.
pub mod kind {
    /// About to read memory.
    pub const READ: u8 = 0;
    /// About to write it.
    pub const WRITE: u8 = 1;
    /// At the beginning of a function that the script names.
    pub const ENTER: u8 = 2;
    /// About to return from it.
    pub const RETURN: u8 = 3;
    /// At the beginning of any function that is instrumented.
    pub const CALL: u8 = 4;
    /// At a control point.
    pub const POINT: u8 = 5;
    /// About to acquire something.
    pub const LOCK: u8 = 6;
    /// About to release it.
    pub const UNLOCK: u8 = 7;
    /// A thread begins.
    pub const START: u8 = 8;
    /// It has ended.
    pub const END: u8 = 9;
    /// `heisen_test_start`.
    pub const TEST_START: u8 = 10;
    /// `heisen_test_end`.
    pub const TEST_END: u8 = 11;
    /// At a line that the script names.
    pub const LINE: u8 = 12;
    /// Any other operation of a thread that is a scheduling point.
    pub const OTHER: u8 = 13;
}

/// Predicates on events: programs for a stack of truth values. The low byte of a word is one of these, the rest what goes
/// with it; some have another word, or two.
pub mod code {
    /// The kind is one of those in the bits that go with it.
    pub const KINDS: u8 = 1;
    /// The address is in the range that the next two words tell, from the first up to the second.
    pub const ADDRESS: u8 = 2;
    /// The function, or line, has this number.
    pub const NAMED: u8 = 3;
    /// The thread is in the function of this number (the low byte), at least so often (the rest).
    pub const INSIDE: u8 = 4;
    /// The number of the control point is the next word.
    pub const CONTROL: u8 = 5;
    /// The first argument is the next word.
    pub const ARG0: u8 = 6;
    /// The second one is.
    pub const ARG1: u8 = 7;
    /// The value is the next word.
    pub const VALUE: u8 = 8;
    /// What is returned is the next word.
    pub const RETURNS: u8 = 9;
    /// The operation has this number.
    pub const OP: u8 = 10;
    /// The thread is one of the program with this number.
    pub const PROGRAM: u8 = 11;
    /// The thread is one of the process with this number.
    pub const PROCESS: u8 = 12;
    /// Both of the last two.
    pub const AND: u8 = 16;
    /// One of them.
    pub const OR: u8 = 17;
    /// Not the last one.
    pub const NOT: u8 = 18;
}

/// What a thread is about to do.
#[derive(Debug)]
#[repr(C)]
pub struct Event {
    /// One of [`kind`].
    pub kind: AtomicU32,
    /// How many bytes are accessed.
    pub size: AtomicU32,
    /// Memory or object.
    pub address: AtomicU64,
    /// What is there.
    pub value: AtomicU64,
    /// The number of the function or line that the script names; of the control point.
    pub number: AtomicU64,
    /// Arguments of a function.
    pub args: [AtomicU64; 2],
    /// What it returns.
    pub returned: AtomicU64,
    /// Where it is called from.
    pub caller: AtomicU64,
    /// The place in the code.
    pub pc: AtomicU64,
    /// The step.
    pub step: AtomicU32,
    /// The operation, for those that are [`kind::OTHER`], [`kind::LOCK`] and [`kind::UNLOCK`].
    pub op: AtomicU32,
    /// How often the thread is in each of the functions that the script names.
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

/// What a decision on something else than the next thread will be, as the script says: which waiter is woken, whether a wait
/// ends early, whether a call fails, which value is chosen.
#[derive(Debug)]
#[repr(C)]
pub struct Promise {
    /// The number of the kind of decision. 0, which is the choice of a thread, if there is no promise here.
    pub kind: AtomicU32,
    /// The thread that the decision is one of, or [`ANYONE`].
    pub thread: AtomicU32,
    /// What is chosen, by the name that schedules have for it.
    pub value: AtomicU32,
    /// How many such decisions come before, and this one.
    pub nth: AtomicU32,
}

/// A set of threads.
pub type Set = [AtomicU64; MAX_THREADS / 64];

/// A script at work.
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
    /// Kinds of events that the script mentions, as bits: no other is looked at.
    pub kinds: AtomicU32,
    /// Events that were looked at.
    pub events: AtomicU32,
    /// Threads that go on.
    pub release: Set,
    /// Threads whose events are waited for, also of those that do not exist yet.
    pub select: Set,
    /// Threads that the script knows: they stop at every event that it mentions.
    pub known: Set,
    /// Threads that are held; told by the runtime.
    pub held: Set,
    /// The events that are waited for.
    pub until: Predicate,
    /// The events that the script mentions.
    pub mentioned: Predicate,
    /// How many promises there are: they are the first of those that follow.
    pub promised: AtomicU32,
    /// Unused.
    pub pad: AtomicU32,
    /// What was promised.
    pub promises: [Promise; MAX_PROMISES],
    /// Where each thread is that is held.
    pub at: [Event; MAX_SCRIPTED],
}
