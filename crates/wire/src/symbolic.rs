//! The layout of the symbolic trace: a mapping of its own, which the engine makes if it wants symbolic traces. The engine
//! reads it while the program does not run.
//!
//! ```text
//! Header | shared granules | nodes ... | events ...
//! ```
//!
//! The engine writes `nodes_room`, `events_room` and the shared granules; the runtime writes everything else. The counts
//! are set to 0 at the start of an execution.

use core::sync::atomic::{AtomicU32, AtomicU64};

/// The environment variable that names the file descriptor of the mapping.
pub const ENV_FD: &str = "HEISEN_SYMBOLIC";

/// Identifies the mapping.
pub const MAGIC: u64 = 0x4845_4953_594d_0001;

/// Memory is shared in granules of this many bytes.
pub const GRANULE: u64 = 4;
/// The largest number of shared granules.
pub const MAX_SHARED: usize = 1 << 20;
/// The number of reasons for which an expression is replaced by its value; see `heisen_trace::symbolic::PinReason`.
pub const REASONS: usize = 16;

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
    /// The address of the name's bytes among the names, value, unknown, size in bits.
    pub const INPUT: u8 = 5;
    /// Value, condition.
    pub const ASSUME: u8 = 6;
    /// Object; the size is 0 if the operation failed.
    pub const SYNC: u8 = 7;
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
/// An access has the operation of its step: `AtomicRmw` and `AtomicCas` for updates, whose read and write belong
/// together.
pub type Event = [AtomicU64; 5];

/// The first word of an event.
pub const fn pack(step: u32, thread: u16, kind: u8, op: u8) -> u64 {
    step as u64 | (thread as u64) << 32 | (kind as u64) << 48 | (op as u64) << 56
}

/// Step, thread, kind and operation from the first word of an event.
pub const fn unpack(word: u64) -> (u32, u16, u8, u8) {
    (word as u32, (word >> 32) as u16, (word >> 48) as u8, (word >> 56) as u8)
}

/// The size of a mapping with room for this many nodes and events.
pub const fn size(nodes: u64, events: u64) -> u64 {
    size_of::<Header>() as u64 + nodes * size_of::<Node>() as u64 + events * size_of::<Event>() as u64
}
