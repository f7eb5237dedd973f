//! The shared memory of system mode: all processes whose threads a script may hold map it. See
//! `runtime::script::system_mode`.
//!
//! Threads run in parallel, so there are no turns as in [`crate::script`]. The script alternates between
//! *thinking*, while [`System::round`] is even, and having a command *out*, while it is odd. The thread that
//! *claims* a command answers it. It changes [`System::claim`] from the round alone to the round and its own
//! number. What a thread has found out while a command was out is valid if no other thread had claimed the
//! command in the meantime.

use crate::script::{Event, MAX_SCRIPTED, Predicate};
use core::sync::atomic::{AtomicU32, AtomicU64};

/// Identifies the mapping. It changes with every change of the layout.
pub const MAGIC: u64 = 0x4845_4953_4653_0001;

/// A set of threads.
pub type Few = [AtomicU64; MAX_SCRIPTED / 64];

/// Values of [`Thread::state`], in its low bits. A futex word.
pub mod state {
    /// It runs.
    pub const RUNS: u32 = 0;
    /// It stops at an event, unless another thread has claimed the command of the round in the other bits.
    pub const STOPS: u32 = 1;
    /// It is held. The script sets this after it has seen the thread stop.
    pub const HELD: u32 = 2;
    /// It has ended.
    pub const ENDED: u32 = 3;
    /// The shift of the round number.
    pub const SHIFT: u32 = 2;
}

/// The low half of [`System::claim`] if the script has withdrawn its command.
pub const WITHDRAWN: u32 = u32::MAX;

/// A thread of some process.
#[derive(Debug)]
#[repr(C)]
pub struct Thread {
    /// The id of the kernel thread; 0 while this entry is unused.
    pub tid: AtomicU32,
    /// The process.
    pub pid: AtomicU32,
    /// The number of its program.
    pub program: AtomicU32,
    /// One of [`state`].
    pub state: AtomicU32,
    /// How many of its events were examined.
    pub events: AtomicU64,
    /// The event at which it stops.
    pub at: Event,
}

/// The layout of the mapping.
#[derive(Debug)]
#[repr(C)]
pub struct System {
    /// [`MAGIC`].
    pub magic: AtomicU64,
    /// A counter of everything that the script should notice. A futex word.
    pub bell: AtomicU32,
    /// Whether the script is thinking or has a command out. A futex word.
    pub round: AtomicU32,
    /// The round in the high half; in the low half the thread that has claimed its command, plus 1.
    pub claim: AtomicU64,
    /// Not 0 while a script controls the system.
    pub on: AtomicU32,
    /// The kinds of events that the command mentions, as bits. While it is out, threads ignore all others.
    pub kinds: AtomicU32,
    /// How many threads found no free entry.
    pub left_out: AtomicU32,
    /// A counter of executions: a thread number is valid in one execution only.
    pub generation: AtomicU32,
    /// The process of the script. If it is gone, no thread is held.
    pub script: AtomicU32,
    /// Unused.
    pub pad: AtomicU32,
    /// The threads whose events are awaited.
    pub select: Few,
    /// The threads that the script knows. They stop at every event that it mentions.
    pub known: Few,
    /// The awaited events.
    pub until: Predicate,
    /// The events that the script mentions.
    pub mentioned: Predicate,
    /// The threads.
    pub threads: [Thread; MAX_SCRIPTED],
}

/// Size of the mapping in bytes.
pub const SIZE: usize = size_of::<System>();
