//! The executions of a turn: what the engine asks of each, and what the runtime has to tell of it.

use crate::*;

/// One execution: what is asked of it, and what came of it.
#[derive(Debug)]
#[repr(C)]
pub struct Slot {
    /// The plan.
    pub plan: Plan,
    /// The report.
    pub report: Report,
    /// The wait status of its process; `u32::MAX` if it could not be forked.
    pub status: AtomicU32,
    /// Not 0 if all that it changed was undone, in one process with the next: 1 if it began at `main`, 2 if at a choice.
    pub undone: AtomicU32,
    /// The steps that were done before it began, by another one.
    pub skipped: AtomicU32,
}

/// What an execution has besides, mostly nothing; apart from its slot, so that slots lie close together.
#[derive(Debug)]
#[repr(C)]
pub struct Lists {
    /// Text of a failed assertion: expression, file, function, each ended by a zero byte.
    pub text: [AtomicU8; MAX_TEXT],
    /// Conflicts of its accesses, each once.
    pub conflicts: [Conflict; MAX_CONFLICTS],
    /// For [`policy::SURW`]: what is expected of its threads,
    pub expected: [Expected; MAX_COUNTED],
    /// and what they had, by their numbers.
    pub counted: [Counted; MAX_COUNTED],
    /// For [`policy::DIRECTED`]: who waits for what.
    pub holds: [Hold; MAX_HOLDS],
}

/// What the engine asks of an execution.
#[derive(Debug)]
#[repr(C)]
pub struct Plan {
    /// One of [`policy`].
    pub policy: AtomicU32,
    /// Bits of [`flag`].
    pub flags: AtomicU32,
    /// Seed of a random policy.
    pub seed: AtomicU64,
    /// The hash to be reached before the last override, 0 if unknown.
    pub expect: AtomicU64,
    /// How many nanoseconds away a deadline may be for a timeout while other threads can go on.
    pub horizon: AtomicU64,
    /// Depth of [`policy::PCT`] and [`policy::FAIR_PCT`], mean burst of [`policy::BURST`] and [`policy::DIRECTED`], delays of
    /// [`policy::DELAY`], part of the objects of [`policy::SURW`].
    pub parameter: AtomicU32,
    /// Steps that are expected; how long runs are in [`policy::SURW`].
    pub expected_steps: AtomicU32,
    /// How many of [`Slot::expected`] there are.
    pub expected: AtomicU32,
    /// How many of [`Slot::holds`] there are.
    pub holds: AtomicU32,
    /// Steps after which the execution is ended.
    pub step_limit: AtomicU32,
    /// How many of [`Wire::overrides`] belong to it.
    pub overrides: AtomicU32,
    /// The first of them.
    pub first_override: AtomicU32,
    /// How many of [`Wire::overrides`], after those, tell which threads the default policy leaves aside after the last
    /// override, and what these touch: the thread is in [`Override::expect`], the object in [`Override::step`] and, its high
    /// half, [`Override::choice`], and [`Override::kind`] is one of [`sleeper`].
    pub sleepers: AtomicU32,
    /// The step from which on they sleep.
    pub sleep_from: AtomicU32,
    /// For how many milliseconds a program that waits for input from outside, and for nothing else, is let wait.
    pub patience: AtomicU32,
    /// Most spurious wake-ups.
    pub spurious: AtomicU32,
    /// Most faults.
    pub faults: AtomicU32,
    /// Bits of `heisen_trace::Fault`: those that may happen.
    pub fault_kinds: AtomicU32,
}

/// One override of a plan.
#[derive(Debug)]
#[repr(C)]
pub struct Override {
    /// The step of the decision.
    pub step: AtomicU32,
    /// The choice: an index, or what it stands for if [`Override::by_name`] says so.
    pub choice: AtomicU32,
    /// Low 16 bits: expected number of choices, 0 if unknown. High 16 bits: the thread that must be running,
    /// [`NO_THREAD`] if unknown.
    pub expect: AtomicU32,
    /// Kind of the decision.
    pub kind: AtomicU8,
    /// One of [`named`].
    pub by_name: AtomicU8,
    /// The operation the running thread must be about to do, 0 if unknown.
    pub op: AtomicU8,
    /// Unused.
    pub pad: AtomicU8,
}

/// What is expected of a thread that is at some place in the tree of creation. The first is the main thread.
#[derive(Debug)]
#[repr(C)]
pub struct Expected {
    /// Events of it and of all that it creates, and so on.
    pub events: AtomicU64,
    /// Where its children are, one after the other.
    pub first_child: AtomicU32,
    /// How many they are.
    pub children: AtomicU32,
}

/// Something that a thread does.
#[derive(Debug)]
#[repr(C)]
pub struct Deed {
    /// On what.
    pub object: AtomicU64,
    /// The how manieth time.
    pub nth: AtomicU32,
    /// The thread, and in the high half the operation, 0 for an access of memory.
    pub who: AtomicU32,
}

/// One hold: a thread that does not go on until another has come to something.
#[derive(Debug)]
#[repr(C)]
pub struct Hold {
    /// What is held.
    pub at: Deed,
    /// What the other is to come to.
    pub until: Deed,
    /// Not 0 if the other is to have done it.
    pub past: AtomicU64,
}

/// What the runtime tells of an execution.
#[derive(Debug)]
#[repr(C)]
pub struct Report {
    /// Scheduling points passed so far; the engine watches it while the program runs.
    pub steps: AtomicU32,
    /// Threads created, the main thread included.
    pub threads: AtomicU32,
    /// How many of [`Wire::decisions`] belong to it.
    pub decisions: AtomicU32,
    /// The first of them.
    pub first_decision: AtomicU32,
    /// Events logged. They go round in [`Wire::events`] with [`flag::STOPS`], else those that do not fit are left out.
    pub events: AtomicU32,
    /// Bits of `heisen_trace::Note`.
    pub notes: AtomicU64,
    /// Where [`flag::STATES`] or [`flag::TOUCHES`] is asked for: the hash of all that was done so far, the same for equivalent
    /// executions.
    pub graph: AtomicU64,
    /// One of [`end`].
    pub end: AtomicU32,
    /// The exit status. For [`end::STEP_LIMIT`]: the thread that never gave way to others, plus 1; 0 if none; -1 if the
    /// limit was not reached but every thread that can run waits for memory that nobody changes.
    pub end_code: AtomicU32,
    /// The thread that ended the execution.
    pub end_thread: AtomicU32,
    /// One of [`misuse`]: the first that was seen.
    pub misuse: AtomicU32,
    /// Where the end was called.
    pub end_pc: AtomicU64,
    /// Where the misuse was called.
    pub misuse_pc: AtomicU64,
    /// The object of the misuse.
    pub misuse_object: AtomicU64,
    /// The thread of the misuse.
    pub misuse_thread: AtomicU32,
    /// The thread of the last Rust panic, plus 1.
    pub panic_thread: AtomicU32,
    /// One of [`diverged`].
    pub diverged: AtomicU32,
    /// The step of the override that was not followed.
    pub diverged_step: AtomicU32,
    /// The thread that was running there.
    pub diverged_thread: AtomicU32,
    /// The operation it was about to do.
    pub diverged_op: AtomicU32,
    /// How many choices there were.
    pub diverged_options: AtomicU32,
    /// Its object.
    pub diverged_object: AtomicU64,
    /// Where it was called.
    pub diverged_pc: AtomicU64,
    /// Length of [`Slot::text`].
    pub text: AtomicU32,
    /// Overrides that were followed.
    pub followed: AtomicU32,
    /// How many of [`Slot::conflicts`] there are.
    pub conflicts: AtomicU32,
    /// How many of [`Slot::counted`] there are.
    pub counted: AtomicU32,
}

/// Two accesses of the same memory by two threads, of which at least one writes, and which nothing orders. A data race,
/// unless both are atomic.
#[derive(Debug)]
#[repr(C)]
pub struct Conflict {
    /// The first byte that both touch.
    pub address: AtomicU64,
    /// Where the earlier access is, as an address that a call returns to.
    pub first_pc: AtomicU64,
    /// Where the later one is.
    pub second_pc: AtomicU64,
    /// The thread of the earlier one, and in the high half that of the later.
    pub threads: AtomicU32,
    /// Bits of [`kind`] of the earlier one, and in the high half of the later.
    pub kinds: AtomicU32,
    /// How many bytes the earlier one has, and in the high half the later.
    pub sizes: AtomicU32,
    /// The step at which it was seen.
    pub step: AtomicU32,
}

/// What was counted of a thread.
#[derive(Debug)]
#[repr(C)]
pub struct Counted {
    /// The thread that created it, [`NO_THREAD`] if none, and in the high half its number among the threads of that one,
    /// from 1.
    pub place: AtomicU32,
    /// Events that it came to, of those that count.
    pub events: AtomicU32,
}
