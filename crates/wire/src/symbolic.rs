//! The layout of the symbolic trace: a mapping of its own, which the engine makes if it wants symbolic traces. The engine
//! reads it while the program does not run.
//!
//! ```text
//! Header | nodes ... | events ...
//! ```
//!
//! The engine writes `nodes_room`, `events_room`, the shared granules and the chosen inputs; the runtime writes everything
//! else. The runtime sets its counts to 0 at the start of an execution that logs a symbolic trace.

use crate::MAX_THREADS;
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

/// The environment variable that names the file descriptor of the mapping.
pub const ENV_FD: &str = "HEISEN_SYMBOLIC";

/// Identifies the mapping.
pub const MAGIC: u64 = 0x4845_4953_594d_0003;

/// Memory is shared in granules of this many bytes.
pub const GRANULE: u64 = 4;
/// The largest number of shared granules.
pub const MAX_SHARED: usize = 1 << 20;
/// The largest number of chosen inputs.
pub const MAX_CHOSEN: usize = 1 << 16;
/// The largest number of bytes of an input.
pub const MAX_INPUT_BYTES: usize = 8 * MAX_CHOSEN;
/// The most bytes of names of inputs.
pub const MAX_NAMES: usize = 1 << 16;
/// The most functions without instrumentation that are listed.
pub const MAX_CALLED: usize = 64;
/// A bit of the address of such a name: the only thread has called the function, after it has read inputs.
pub const CALLED_ALONE: u64 = 1 << 63;
/// The number of reasons for which an expression is replaced by its value; see `heisen_trace::symbolic::PinReason`.
pub const REASONS: usize = 16;

/// The most sources of bytes that are inputs, and the most bytes of all of them.
pub const MAX_MARKED: usize = 16;
/// See [`MAX_MARKED`].
pub const MAX_MARKED_BYTES: usize = 4096;
/// The most bytes of the names and paths of these sources.
pub const MAX_MARKED_TEXT: usize = 1 << 16;

/// The first bytes of a source outside of the program, which are inputs (`--input`).
#[derive(Debug)]
#[repr(C)]
pub struct Marked {
    /// One of [`source`].
    pub source: AtomicU32,
    /// The number of an argument.
    pub index: AtomicU32,
    /// How many bytes.
    pub bytes: AtomicU32,
    /// Where the name begins in [`Header::marked_text`], and its length.
    pub name: AtomicU32,
    /// See `name`.
    pub name_length: AtomicU32,
    /// Where the path of a file begins there, a C string.
    pub path: AtomicU32,
}

/// Sources of [`Marked`] bytes.
pub mod source {
    /// Standard input.
    pub const STDIN: u32 = 0;
    /// An argument.
    pub const ARGUMENT: u32 = 1;
    /// A file.
    pub const FILE: u32 = 2;
}

/// A value that the engine has chosen for an input. Executions use it whether they log a trace or not.
#[derive(Debug)]
#[repr(C)]
pub struct Chosen {
    /// The key of the thread that reads the input, see `heisen_trace::hash::thread_key`.
    pub thread: AtomicU64,
    /// Its number among the inputs of that thread, from 0. An input of more than 8 bytes counts as one for each 8 bytes
    /// and one for the rest.
    pub number: AtomicU64,
    /// The value.
    pub value: AtomicU64,
    /// With how many bits the program has read it; 0 if it has not.
    pub read: AtomicU64,
}

/// The start of the mapping.
#[derive(Debug)]
#[repr(C)]
pub struct Header {
    /// [`MAGIC`].
    pub magic: AtomicU64,
    /// How many nodes there is room for, and how many events.
    pub nodes_room: AtomicU64,
    /// See `nodes_room`.
    pub events_room: AtomicU64,
    /// The number of nodes. Ids begin at 1, so the first node has id 1.
    pub nodes: AtomicU64,
    /// The number of events.
    pub events: AtomicU64,
    /// Not 0 if there was no room for a node or event. Nothing was logged after that.
    pub full: AtomicU32,
    /// Not 0 if a granule became shared that was not listed when the execution began.
    pub incomplete: AtomicU32,
    /// How often memory no longer held the value of its expression.
    pub overwritten: AtomicU64,
    /// How often expressions were replaced by their values, by the number of the reason.
    pub pinned: [AtomicU64; REASONS],
    /// How many functions without instrumentation were called while there was more than one thread, or an input was read,
    /// or looked up.
    pub called_count: AtomicU64,
    /// The addresses of their names, each once. If there are more, the count says so.
    pub called: [AtomicU64; MAX_CALLED],
    /// The number of threads.
    pub threads: AtomicU64,
    /// For each thread: the number of the thread that created it, and from bit 16 on its number among the threads of that
    /// thread, from 1. The main thread has [`NO_THREAD`](crate::NO_THREAD).
    pub parents: [AtomicU32; MAX_THREADS],
    /// How many inputs are chosen. They are sorted by thread and number.
    pub chosen_count: AtomicU64,
    /// The chosen inputs.
    pub chosen: [Chosen; MAX_CHOSEN],
    /// How many inputs the program has read that are not chosen.
    pub unchosen: AtomicU64,
    /// How many sources have bytes that are inputs.
    pub marked_count: AtomicU64,
    /// These sources.
    pub marked: [Marked; MAX_MARKED],
    /// Their names and paths.
    pub marked_text: [AtomicU8; MAX_MARKED_TEXT],
    /// How many bytes of names there are.
    pub names_length: AtomicU64,
    /// The names of inputs, one behind the other.
    pub names: [AtomicU8; MAX_NAMES],
    /// The number of shared granules. The runtime appends those that it finds; they stay for later executions.
    pub shared_count: AtomicU64,
    /// The numbers of shared granules: their address divided by [`GRANULE`].
    pub shared: [AtomicU64; MAX_SHARED],
}

/// A node: the operation's word (see `heisen_abi::symbolic::operation`) and the first operand's id; the ids of the second
/// and the third; the values of the first two operands whose id is 0, in order. For a selection the first operand is the
/// condition, whose id is not 0. A node whose operation has the number 0 is an unknown: the second word is the index of
/// its event, and the operation's word has its bits as those of the result.
pub type Node = [AtomicU64; 4];

/// Reasons that the runtime itself has for replacing an expression by its value, see
/// `heisen_trace::symbolic::PinReason`.
pub mod reason {
    /// It is the address of an access.
    pub const ADDRESS: u32 = 1;
    /// It is the size of a block of memory.
    pub const SIZE: u32 = 2;
    /// An integer of more than 64 bits.
    pub const WIDE: u32 = 5;
    /// The program gives it to a function of the runtime that takes no expression.
    pub const FOREIGN: u32 = 6;
    /// It decides where the program goes on; nothing is lost.
    pub const SWITCH: u32 = 9;
    /// A block of memory has an address that may depend on what other threads allocate.
    pub const ALLOCATION: u32 = 10;
    /// A descriptor gives bytes that are no inputs, or that several threads read.
    pub const DESCRIPTOR: u32 = 11;
}

/// Kinds of events, see `heisen_trace::symbolic::EventKind`.
pub mod kind {
    /// Address, value, unknown, size.
    pub const READ: u8 = 1;
    /// Address, value, expression or 0, size.
    pub const WRITE: u8 = 2;
    /// Value, condition.
    pub const BRANCH: u8 = 3;
    /// Value, expression; the size is the number of the reason.
    pub const PIN: u8 = 4;
    /// The position of the name among the names, and from bit 32 its length; value, unknown, size in bits. For a piece of a
    /// larger input the size has from bit 8 on its first byte plus 1.
    pub const INPUT: u8 = 5;
    /// Value, condition.
    pub const ASSUME: u8 = 6;
    /// Object; the size is 0 if the operation failed. The value is the count of a semaphore or barrier before the
    /// operation.
    pub const SYNC: u8 = 7;
    /// At the end of the execution, the thread was about to do the operation: object; the size is 1 if it could not do it.
    /// The value is as for [`SYNC`].
    pub const PENDING: u8 = 8;
    /// From this step on the thread runs.
    pub const RUNS: u8 = 9;
    /// The word of a futex; the size is one of [`futex`](super::futex). Of a wake: how many threads were woken, the unknown
    /// of that number, and from the fourth bit of the size on, how many at most.
    pub const FUTEX: u8 = 10;
}

/// What a thread does with a futex, in the lowest bits of the size of a [`kind::FUTEX`].
pub mod futex {
    /// It begins to wait, until it is woken.
    pub const WAITS: u32 = 1;
    /// It begins to wait, with a time-out.
    pub const WAITS_TIMED: u32 = 2;
    /// It was woken.
    pub const WOKEN: u32 = 3;
    /// Its wait has timed out.
    pub const TIMED_OUT: u32 = 4;
    /// It wakes others.
    pub const WAKES: u32 = 5;
    /// The bits of the number of threads that were woken.
    pub const COUNT_BITS: u32 = 16;
    /// Where the number of threads that may be woken begins; the largest number that has room means all.
    pub const MOST_SHIFT: u32 = 4;
}

/// An event:
///
/// | word | content |
/// | --- | --- |
/// | 0 | the step; from bit 32 the thread; from bit 48 the kind; from bit 56 the number of a `heisen_trace::Op` |
/// | 1 | the address or object |
/// | 2 | the value |
/// | 3 | the id of the expression; from bit 32 the size |
/// | 4 | the place in the code |
///
/// An access has the operation `MemRead` or `MemWrite`, or for updates, whose read and write belong together,
/// `AtomicRmw` or `AtomicCas`.
pub type Event = [AtomicU64; 5];

/// The first word of an event.
pub const fn pack(step: u32, thread: u16, kind: u8, op: u8) -> u64 {
    step as u64 | (thread as u64) << 32 | (kind as u64) << 48 | (op as u64) << 56
}

/// Step, thread, kind and operation from the first word of an event.
pub const fn unpack(word: u64) -> (u32, u16, u8, u8) {
    (word as u32, (word >> 32) as u16, (word >> 48) as u8, (word >> 56) as u8)
}

/// How many nodes and how many events have room in a mapping of this size. Programs have more nodes than events.
pub const fn rooms(bytes: u64) -> (u64, u64) {
    let left = bytes.saturating_sub(size_of::<Header>() as u64);
    let (node, event) = (size_of::<Node>() as u64, size_of::<Event>() as u64);
    let events = left / (event + 2 * node);
    (2 * events, events)
}

/// The size of a mapping with room for this many nodes and events.
pub const fn size(nodes: u64, events: u64) -> u64 {
    size_of::<Header>() as u64 + nodes * size_of::<Node>() as u64 + events * size_of::<Event>() as u64
}
