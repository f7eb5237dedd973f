//! Scripts on whole systems: the memory that all processes share whose threads a script may hold. See `runtime::script::system_mode`.
//!
//! Threads run in parallel, so there are no turns as in [`crate::script`]. The script alternates between *thinking*, when
//! [`System::round`] is even, and having a command *out*, when it is odd. A command is answered by the thread that *claims* it:
//! that changes [`System::claim`] from the round alone to the round and its own number. What a thread has found out by the
//! command that was out holds if nobody had claimed that in the meantime.

use crate::script::{Event, MAX_SCRIPTED, Predicate};
use core::sync::atomic::{AtomicU32, AtomicU64};

/// Identifies a mapping as ours; changes with every change of the layout.
pub const MAGIC: u64 = 0x4845_4953_4653_0001;

/// A set of threads.
pub type Few = [AtomicU64; MAX_SCRIPTED / 64];

/// Values of [`Thread::state`], in its low bits. A futex word.
pub mod state {
    /// It runs.
    pub const RUNS: u32 = 0;
    /// It stops at an event, if nobody has claimed the command of the round that is in the other bits.
    pub const STOPS: u32 = 1;
    /// It is held: said by the script, which has seen it stop.
    pub const HELD: u32 = 2;
    /// It has ended.
    pub const ENDED: u32 = 3;
    /// How far the number of a round is shifted.
    pub const SHIFT: u32 = 2;
}

/// The low half of [`System::claim`] if the script has withdrawn its command.
pub const WITHDRAWN: u32 = u32::MAX;

/// A thread of some process.
#[derive(Debug)]
#[repr(C)]
pub struct Thread {
    /// The id of the kernel thread; 0 while this is nobody's.
    pub tid: AtomicU32,
    /// The process.
    pub pid: AtomicU32,
    /// Which of the programs it runs.
    pub program: AtomicU32,
    /// One of [`state`].
    pub state: AtomicU32,
    /// Events of it that were looked at.
    pub events: AtomicU64,
    /// The event that it stops at.
    pub at: Event,
}

/// The whole mapping.
#[derive(Debug)]
#[repr(C)]
pub struct System {
    /// [`MAGIC`].
    pub magic: AtomicU64,
    /// Counts whatever the script should notice. A futex word.
    pub bell: AtomicU32,
    /// Whether the script thinks or has a command out. A futex word.
    pub round: AtomicU32,
    /// The round, in the high half, and who has claimed its command, plus 1.
    pub claim: AtomicU64,
    /// Not 0 while a script is at work.
    pub on: AtomicU32,
    /// Kinds of events that the command mentions, as bits: while it is out, no other is looked at.
    pub kinds: AtomicU32,
    /// Threads for which there was no room.
    pub left_out: AtomicU32,
    /// Counts executions: numbers of threads are of one of them only.
    pub generation: AtomicU32,
    /// The process of the script. If that is gone, nobody is held.
    pub script: AtomicU32,
    /// Unused.
    pub pad: AtomicU32,
    /// Threads whose events are waited for.
    pub select: Few,
    /// Threads that the script knows: they stop at every event that it mentions.
    pub known: Few,
    /// The events that are waited for.
    pub until: Predicate,
    /// The events that the script mentions.
    pub mentioned: Predicate,
    /// The threads.
    pub threads: [Thread; MAX_SCRIPTED],
}

/// Size of the mapping in bytes.
pub const SIZE: usize = size_of::<System>();
