//! The slots: one plan each, and the result of its execution.

use crate::*;

/// One execution: its plan and its result.
#[derive(Debug)]
#[repr(C)]
pub struct Slot {
    /// The plan.
    pub plan: Plan,
    /// The report.
    pub report: Report,
    /// The wait status of its process; `u32::MAX` if it could not be forked.
    pub status: AtomicU32,
    /// Not 0 if all its changes were undone, so that the next execution ran in the same process: 1 if it
    /// began at `main`, 2 if it began at a decision.
    pub undone: AtomicU32,
    /// How many steps another execution did before it began.
    pub skipped: AtomicU32,
}

/// The lists of an execution, which are rarely used. They are separate from the slot, so that slots lie close
/// together.
#[derive(Debug)]
#[repr(C)]
pub struct Lists {
    /// The text of a failed assertion: expression, file, function, each terminated by a zero byte.
    pub text: [AtomicU8; MAX_TEXT],
    /// The conflicts of its accesses, each once.
    pub conflicts: [Conflict; MAX_CONFLICTS],
    /// For [`policy::SURW`]: the expected events of its threads.
    pub expected: [Expected; MAX_COUNTED],
    /// For [`policy::SURW`]: the counted events of its threads, by number.
    pub counted: [Counted; MAX_COUNTED],
    /// For [`policy::DIRECTED`]: the holds.
    pub holds: [Hold; MAX_HOLDS],
}

/// The plan of an execution.
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
    /// The time-out horizon: how many nanoseconds ahead a deadline may lie and still fire while other threads
    /// are enabled.
    pub horizon: AtomicU64,
    /// How often a thread may repeat itself in vain, or yield, before it has to give way to the others.
    pub spin_patience: AtomicU32,
    /// The depth of [`policy::PCT`] and [`policy::FAIR_PCT`], the mean burst of [`policy::BURST`] and
    /// [`policy::DIRECTED`], the delays of [`policy::DELAY`], the part of the objects of [`policy::SURW`].
    pub parameter: AtomicU32,
    /// The expected number of steps; for [`policy::SURW`], the mean length of runs.
    pub expected_steps: AtomicU32,
    /// How many of [`Lists::expected`] there are.
    pub expected: AtomicU32,
    /// How many of [`Lists::holds`] there are.
    pub holds: AtomicU32,
    /// The step limit: after this many steps the execution ends.
    pub step_limit: AtomicU32,
    /// How many of [`Wire::overrides`] belong to the plan.
    pub overrides: AtomicU32,
    /// The index of the first of them.
    pub first_override: AtomicU32,
    /// How many of [`Wire::overrides`] after those describe sleeping threads and their touches. The thread is
    /// in [`Override::expect`], the object in [`Override::step`] and, its high half, [`Override::choice`];
    /// [`Override::kind`] is one of [`sleeper`].
    pub sleepers: AtomicU32,
    /// The step from which on they sleep.
    pub sleep_from: AtomicU32,
    /// For how many milliseconds a program may wait for input from outside when it waits for nothing else.
    pub patience: AtomicU32,
    /// The budget of spurious wake-ups.
    pub spurious: AtomicU32,
    /// The budget of faults.
    pub faults: AtomicU32,
    /// The faults that may happen: bits of `heisen_trace::Fault`.
    pub fault_kinds: AtomicU32,
}

/// One override of a plan.
#[derive(Debug)]
#[repr(C)]
pub struct Override {
    /// The step of the decision.
    pub step: AtomicU32,
    /// The choice: an index, or a name, as [`Override::by_name`] says.
    pub choice: AtomicU32,
    /// Low 16 bits: the expected number of choices, 0 if unknown. High 16 bits: the thread that must be
    /// running, [`NO_THREAD`] if unknown.
    pub expect: AtomicU32,
    /// The kind of the decision.
    pub kind: AtomicU8,
    /// One of [`named`].
    pub by_name: AtomicU8,
    /// The operation that the running thread must be about to do; 0 if unknown.
    pub op: AtomicU8,
    /// Unused.
    pub pad: AtomicU8,
}

/// The expected events of a thread, by its position in the tree of creation. The first is the main thread.
#[derive(Debug)]
#[repr(C)]
pub struct Expected {
    /// The events of the thread and of all its descendants.
    pub events: AtomicU64,
    /// The index of its first child. The children are adjacent.
    pub first_child: AtomicU32,
    /// The number of children.
    pub children: AtomicU32,
}

/// An operation of a thread.
#[derive(Debug)]
#[repr(C)]
pub struct Deed {
    /// The object.
    pub object: AtomicU64,
    /// The number of this operation among equal ones of the thread, from 1.
    pub nth: AtomicU32,
    /// The thread. The high half is the operation, 0 for a memory access.
    pub who: AtomicU32,
}

/// One hold: a thread that waits until another has reached an operation.
#[derive(Debug)]
#[repr(C)]
pub struct Hold {
    /// The operation that has to wait.
    pub at: Deed,
    /// The operation of the other thread.
    pub until: Deed,
    /// Not 0 if the other thread must have done its operation.
    pub past: AtomicU64,
}

/// The result of an execution, written by the runtime.
#[derive(Debug)]
#[repr(C)]
pub struct Report {
    /// The number of scheduling points passed so far. The engine watches it while the program runs.
    pub steps: AtomicU32,
    /// The number of threads created, the main thread included.
    pub threads: AtomicU32,
    /// How many of [`Wire::decisions`] belong to it.
    pub decisions: AtomicU32,
    /// The index of the first of them.
    pub first_decision: AtomicU32,
    /// The number of logged events. With [`flag::STOPS`], [`Wire::events`] is a ring; otherwise events that
    /// do not fit are dropped.
    pub events: AtomicU32,
    /// Bits of `heisen_trace::Note`.
    pub notes: AtomicU64,
    /// With [`flag::STATES`] or [`flag::TOUCHES`]: the hash of the happens-before graph so far, equal for
    /// equivalent executions.
    pub graph: AtomicU64,
    /// One of [`end`].
    pub end: AtomicU32,
    /// The exit status. For [`end::STEP_LIMIT`]: the thread that never yielded to others, plus 1; 0 if there
    /// is none; -1 if the limit was not reached, but every enabled thread waits for memory that no thread
    /// changes.
    pub end_code: AtomicU32,
    /// The thread that ended the execution.
    pub end_thread: AtomicU32,
    /// The first misuse: one of [`misuse`].
    pub misuse: AtomicU32,
    /// The place of the call that ended it.
    pub end_pc: AtomicU64,
    /// The place of the misuse.
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
    /// The operation that it was about to do.
    pub diverged_op: AtomicU32,
    /// How many choices there were.
    pub diverged_options: AtomicU32,
    /// The object of the operation.
    pub diverged_object: AtomicU64,
    /// The place of the operation.
    pub diverged_pc: AtomicU64,
    /// The length of [`Lists::text`].
    pub text: AtomicU32,
    /// How many overrides were followed.
    pub followed: AtomicU32,
    /// How many of [`Lists::conflicts`] there are.
    pub conflicts: AtomicU32,
    /// How many of [`Lists::counted`] there are.
    pub counted: AtomicU32,
}

/// A conflict: two accesses of one location by two threads that nothing orders, at least one a write. It is a
/// data race unless both are atomic.
#[derive(Debug)]
#[repr(C)]
pub struct Conflict {
    /// The first byte that both access.
    pub address: AtomicU64,
    /// The place of the earlier access, as the address that a call returns to.
    pub first_pc: AtomicU64,
    /// The place of the later access.
    pub second_pc: AtomicU64,
    /// The thread of the earlier access. The high half is that of the later.
    pub threads: AtomicU32,
    /// Bits of [`kind`] of the earlier access. The high half is for the later.
    pub kinds: AtomicU32,
    /// The size of the earlier access in bytes. The high half is that of the later.
    pub sizes: AtomicU32,
    /// The step at which the runtime saw the conflict.
    pub step: AtomicU32,
}

/// The event count of a thread.
#[derive(Debug)]
#[repr(C)]
pub struct Counted {
    /// The thread that created it, [`NO_THREAD`] if none. The high half is its number among the threads of
    /// that thread, from 1.
    pub place: AtomicU32,
    /// The number of selected events that it reached.
    pub events: AtomicU32,
}
