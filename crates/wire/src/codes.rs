//! The values of the wire's fields: one module for each field that holds one of several values, or bits.
//!
//! They are constants and not enums, because the fields are atomics in memory that a faulty program can
//! overwrite.

/// Values of [`Wire::turn`](crate::Wire::turn), a futex word.
pub mod turn {
    /// The program has not reached `main` yet.
    pub const BOOTING: u32 = 0;
    /// The zygote is parked and the engine may write a plan.
    pub const ENGINE: u32 = 1;
    /// The zygote runs the plans.
    pub const ZYGOTE: u32 = 2;
    /// The zygote ends, after the last plan.
    pub const QUIT: u32 = 3;
    /// The zygote maps [`Wire::patch_areas`](crate::Wire::patch_areas) and gets ready for
    /// [`Wire::patch_traps`](crate::Wire::patch_traps).
    pub const PATCH: u32 = 4;
    /// For a program with [`LISTENS`](super::world::LISTENS): a script begins. [`World::system`](crate::World::system) names
    /// its memory.
    pub const JOIN: u32 = 5;
    /// The script is over.
    pub const LEAVE: u32 = 6;
}

/// Values of [`Wire::park`](crate::Wire::park).
pub mod park {
    /// The program parks before `main`.
    pub const MAIN: u32 = 0;
    /// The program parks where it calls `heisen_ready`.
    pub const READY: u32 = 1;
}

/// Values of [`Wire::boot`](crate::Wire::boot).
pub mod boot {
    /// The program has not reached `main`.
    pub const START: u32 = 0;
    /// The program has reached `main`.
    pub const MAIN: u32 = 1;
    /// The program has called `heisen_ready` while it had several threads, and was ended.
    pub const THREADS: u32 = 2;
}

/// Executions in one process: values of [`Wire::runner`](crate::Wire::runner), [`Wire::reset`](crate::Wire::reset) and
/// [`Wire::reset_reason`](crate::Wire::reset_reason).
pub mod runner {
    /// There is no runner.
    pub const NONE: u32 = 0;
    /// The runner has been forked.
    pub const BEGINS: u32 = 1;
    /// The runner runs an execution.
    pub const RUNS: u32 = 2;
    /// The runner is between two executions.
    pub const WAITS: u32 = 3;

    /// The engine does not want a runner.
    pub const UNASKED: u32 = 0;
    /// The engine wants a runner.
    pub const ASKED: u32 = 1;
    /// The runtime has tried, and has given up.
    pub const REFUSED: u32 = 2;

    /// There is no room for the snapshot.
    pub const NO_MEMORY: u32 = 1;
    /// The kernel does not support dispatching system calls to user space.
    pub const NO_DISPATCH: u32 = 2;
    /// The program has more memory than is worth saving.
    pub const TOO_LARGE: u32 = 4;
    /// An execution crashed.
    pub const CRASH: u32 = 6;
    /// The restored memory differed from the snapshot.
    pub const DAMAGED: u32 = 5;
    /// An execution opened more descriptors than the runtime records.
    pub const FILES: u32 = 7;
    /// A signal came from outside the program.
    pub const SIGNAL: u32 = 8;
    /// This value plus the number of a system call that cannot be undone.
    pub const CALL: u32 = 1 << 16;
}

/// Bits of [`World::flags`](crate::World::flags).
pub mod world {
    /// Time is real.
    pub const REAL_TIME: u32 = 1;
    /// Each execution begins in the directory that the environment variable [`DIR`](crate::ENV_DIR) names.
    pub const DIR: u32 = 2;
    /// Each execution reads its standard input, a file, from the position at which the program was parked.
    pub const STDIN: u32 = 4;
    /// System mode: threads run in parallel, and only a script holds them; see [`crate::system`]. The program
    /// is not forked: the zygote itself continues.
    pub const FREE: u32 = 8;
    /// With [`FREE`]: scripts may come and go while the program runs, so a thread listens for them.
    pub const LISTENS: u32 = 16;
}

/// Bits of [`Heap::flags`](crate::Heap::flags).
pub mod heap {
    /// The program uses the checked heap.
    pub const ON: u32 = 1;
    /// Leaks are searched for at the end.
    pub const LEAKS: u32 = 2;
    /// Each thread has an arena of its own, and blocks are not reused.
    pub const DIVIDED: u32 = 4;
}

/// Bits of [`Wire::access_flags`](crate::Wire::access_flags).
pub mod access {
    /// Accesses are checked for conflicts that nothing orders.
    pub const CHECK: u32 = 1;
    /// Every memory access is a scheduling point, not only those at [`Wire::points`](crate::Wire::points).
    pub const ALL: u32 = 2;
    /// Rust's standard library must not install its handlers for overflows of the stack. With them it keeps a table of all
    /// threads, under a lock, which has nothing to do with the program.
    pub const NO_OVERFLOW_HANDLER: u32 = 4;
}

/// Values of [`Wire::scope_default`](crate::Wire::scope_default) and
/// [`ScopeRange::kind`](crate::ScopeRange::kind): whether an enabled thread may be preempted at a scheduling
/// point that this code calls.
pub mod scope {
    /// There is no scope: every scheduling point is a decision.
    pub const NONE: u32 = 0;
    /// The thread may be preempted.
    pub const FREE: u32 = 1;
    /// The thread continues.
    pub const HELD: u32 = 2;
    /// The caller of this code decides: it is a wrapper in a library of the language.
    pub const GLUE: u32 = 3;
}

/// Values of [`Override::by_name`](crate::Override::by_name): the meaning of the choice.
pub mod named {
    /// An index.
    pub const INDEX: u8 = 0;
    /// The chosen thing itself: a thread, a value, a fault.
    pub const NAME: u8 = 1;
    /// A preferred thread, at the first thread decision from the step on. If the thread is not a candidate,
    /// the default is chosen; that is not a divergence.
    pub const PREFERENCE: u8 = 2;
}

/// Values of [`Override::kind`](crate::Override::kind) in an override that stands for a sleeping thread: what
/// its next step touches.
pub mod sleeper {
    /// Nothing.
    pub const NOTHING: u8 = 0;
    /// It reads the object.
    pub const READS: u8 = 1;
    /// It writes the object.
    pub const WRITES: u8 = 2;
    /// Every object.
    pub const EVERYTHING: u8 = 3;
}

/// Values of [`Plan::policy`](crate::Plan::policy).
pub mod policy {
    /// Choice 0 everywhere.
    pub const DEFAULT: u32 = 0;
    /// Uniformly random choices.
    pub const RANDOM: u32 = 1;
    /// Probabilistic concurrency testing.
    pub const PCT: u32 = 2;
    /// Random choices, but the running thread continues for a while.
    pub const BURST: u32 = 3;
    /// As [`PCT`] for the expected steps, then as [`RANDOM`].
    pub const FAIR_PCT: u32 = 4;
    /// Partial-order sampling.
    pub const POS: u32 = 5;
    /// Selectively uniform random walk.
    pub const SURW: u32 = 6;
    /// The default with a few delays.
    pub const DELAY: u32 = 7;
    /// As [`DEFAULT`] or [`BURST`], with threads held; see [`Lists::holds`](crate::Lists::holds).
    pub const DIRECTED: u32 = 8;
    /// The default, except that threads which a script waits for run first.
    pub const SCRIPT: u32 = 9;
}

/// Bits of [`Plan::flags`](crate::Plan::flags).
pub mod flag {
    /// Log decisions.
    pub const DECISIONS: u32 = 1;
    /// Log events.
    pub const EVENTS: u32 = 2;
    /// Stop for the engine at decisions other than the default, at the end and at a crash.
    pub const STOPS: u32 = 4;
    /// Run the threads of the program on kernel threads rather than as fibers.
    pub const KERNEL: u32 = 1 << 16;
    /// Wait at the start for a debugger to attach, then stop where it asks. Only with [`KERNEL`].
    pub const DEBUGGER: u32 = 1 << 17;
    /// Record input from outside.
    pub const RECORD_INPUT: u32 = 1 << 18;
    /// Replay recorded input.
    pub const REPLAY_INPUT: u32 = 1 << 19;
    /// Compute the hash of the happens-before graph, [`Report::graph`](crate::Report::graph). With
    /// [`DECISIONS`], also log it and the candidates at each decision; see `heisen_trace::Touch`.
    pub const STATES: u32 = 1 << 20;
    /// Log all touches (`heisen_trace::Touch`). Only with [`DECISIONS`].
    pub const TOUCHES: u32 = 1 << 21;
    /// Log also the places of touches. Only with [`TOUCHES`].
    pub const PLACES: u32 = 1 << 22;
    /// Of interchangeable threads only the first may continue.
    pub const SYMMETRY: u32 = 1 << 23;
    /// A script controls the execution; see [`script`](crate::script).
    pub const SCRIPT: u32 = 1 << 24;
    /// Log decisions only from the last override on. Before it the plan fixes them, or the execution
    /// diverges.
    pub const LATE: u32 = 1 << 25;
    /// Log also every access of memory by instrumented or patched code, with its value. Only with [`EVENTS`].
    pub const ACCESSES: u32 = 1 << 26;
    /// Log a symbolic trace; see [`symbolic`](crate::symbolic). All accesses of memory are scheduling points.
    pub const SYMBOLIC: u32 = 1 << 27;
}

/// Values of [`Wire::spin`](crate::Wire::spin). The engine sets the first two before it sends [`SPINS`](crate::SPINS).
pub mod spin {
    /// The loop writes in each round what it wrote before, or nothing.
    pub const SAME: u32 = 0;
    /// The loop writes different values in each round.
    pub const WRITES: u32 = 1;
    /// The same, and the runtime does not make it yield, because no other thread would do anything.
    pub const ALONE: u32 = 2;
    /// It is unknown whether the loop waits; it has run for too long.
    pub const FORCED: u32 = 3;
}

/// Values of [`Report::end`](crate::Report::end).
pub mod end {
    /// The runtime did not see the end.
    pub const NONE: u32 = 0;
    /// `exit`, `_exit`, or a return from `main`.
    pub const EXIT: u32 = 1;
    /// No thread was enabled.
    pub const DEADLOCK: u32 = 2;
    /// The step limit was reached.
    pub const STEP_LIMIT: u32 = 3;
    /// `__assert_fail`.
    pub const ASSERT: u32 = 4;
    /// `abort`.
    pub const ABORT: u32 = 5;
}

/// Values of [`Report::misuse`](crate::Report::misuse).
pub mod misuse {
    /// No misuse was seen.
    pub const NONE: u32 = 0;
    /// A mutex was unlocked by a thread that does not hold it.
    pub const UNLOCK_NOT_OWNER: u32 = 1;
    /// A mutex was unlocked that nobody holds.
    pub const UNLOCK_FREE: u32 = 2;
    /// A mutex was destroyed while held.
    pub const DESTROY_HELD: u32 = 3;
    /// A mutex or condition variable was destroyed while a thread waits on it.
    pub const DESTROY_WAITED: u32 = 4;
    /// A thread was joined twice, or joined after it was detached.
    pub const DOUBLE_JOIN: u32 = 5;
    /// A condition variable was waited on with a mutex that the caller does not hold.
    pub const WAIT_UNLOCKED: u32 = 6;
    /// A thread was detached twice.
    pub const DOUBLE_DETACH: u32 = 7;
    /// A synchronisation object was used after it was destroyed.
    pub const USE_DESTROYED: u32 = 8;
    /// A barrier was used that is not initialised.
    pub const NOT_INITIALISED: u32 = 9;
    /// A synchronisation object was initialised while a thread waits on it.
    pub const INIT_WAITED: u32 = 10;
    /// A barrier was initialised that is initialised already.
    pub const INIT_TWICE: u32 = 11;
    /// A block of more than `PTRDIFF_MAX` bytes was asked for.
    pub const ALLOCATION_SIZE: u32 = 12;
    /// A block was asked for with an alignment that is not a power of two.
    pub const ALIGNMENT: u32 = 13;
    /// Memory of a stack was used after its function had returned, or its thread had ended.
    pub const DEAD_STACK: u32 = 14;
    /// An input of more than 512 KiB was asked for.
    pub const INPUT_SIZE: u32 = 15;
    /// The first code that concerns the heap; see [`crate::Heap`].
    pub const HEAP: u32 = 50;
    /// Freed memory was read.
    pub const USE_AFTER_FREE_READ: u32 = 50;
    /// Freed memory was written.
    pub const USE_AFTER_FREE_WRITE: u32 = 51;
    /// A block was freed twice.
    pub const DOUBLE_FREE: u32 = 52;
    /// An address was freed that is not that of a block.
    pub const INVALID_FREE: u32 = 53;
    /// Memory next to a block was read.
    pub const HEAP_OVERFLOW_READ: u32 = 54;
    /// Memory next to a block was written.
    pub const HEAP_OVERFLOW_WRITE: u32 = 55;
    /// Memory next to a block was found overwritten when the block was freed.
    pub const HEAP_TRAMPLED: u32 = 56;
    /// A freed block was reallocated.
    pub const REALLOC_FREED: u32 = 57;
    /// Blocks were left at the end that no pointer reaches.
    pub const LEAK: u32 = 58;
    /// The last code that concerns the heap.
    pub const HEAP_LAST: u32 = 59;
    /// `heisen_no_preempt_end` without a `heisen_no_preempt_begin` before it.
    pub const NO_PREEMPT_END: u32 = 40;
    /// `heisen_atomic_end` without a `heisen_atomic_begin` before it.
    pub const ATOMIC_END: u32 = 41;
}

/// Values of [`Report::diverged`](crate::Report::diverged).
pub mod diverged {
    /// The plan was followed.
    pub const NO: u32 = 0;
    /// The step passed without a decision, or with a decision of another kind.
    pub const NO_DECISION: u32 = 1;
    /// The number of choices is not the expected one.
    pub const OPTIONS: u32 = 2;
    /// The chosen thread is not among the choices.
    pub const NOT_ENABLED: u32 = 3;
    /// The steps before differ from the expected ones.
    pub const HASH: u32 = 4;
    /// Another thread is running, or it is about to do another operation.
    pub const OTHER_OP: u32 = 5;
    /// The recorded input does not match.
    pub const INPUT: u32 = 6;
}

/// Bits of [`Wire::input_state`](crate::Wire::input_state).
pub mod input {
    /// Input came from outside.
    pub const USED: u32 = 1;
    /// The log of input is incomplete.
    pub const INCOMPLETE: u32 = 2;
}

/// Values of [`Stop::state`](crate::Stop::state), a futex word, and of [`Stop::reason`](crate::Stop::reason).
pub mod stop {
    /// The program runs.
    pub const RUNNING: u32 = 0;
    /// The program waits for the engine to set [`RUNNING`].
    pub const STOPPED: u32 = 1;

    /// A decision other than the default was taken.
    pub const DECISION: u32 = 1;
    /// The execution is about to end.
    pub const END: u32 = 2;
    /// A signal that will kill the process.
    pub const CRASH: u32 = 3;
    /// The engine asked where the program is, because it made no progress.
    pub const STUCK: u32 = 4;
    /// A misuse was noticed.
    pub const MISUSE: u32 = 5;
    /// A panic or exception starts to unwind.
    pub const THROW: u32 = 6;
    /// The state of the program has to be saved or compared; see [`Recurrence`](crate::Recurrence).
    pub const STATE: u32 = 7;
    /// An event of [`Wire::stops_at`](crate::Wire::stops_at) was logged.
    pub const EVENT: u32 = 8;
    /// The block of [`Heap::stop_at_alloc`](crate::Heap::stop_at_alloc) was allocated.
    pub const ALLOCATED: u32 = 30;
    /// The block of [`Heap::stop_at_free`](crate::Heap::stop_at_free) is freed.
    pub const FREED: u32 = 31;
    /// An access that the engine watches for.
    pub const WATCHED: u32 = 20;
    /// A conflict with an access that the engine watches for.
    pub const CONFLICT: u32 = 21;
}

/// Values of [`Thread::state`](crate::Thread::state).
pub mod state {
    /// The slot was never used.
    pub const UNUSED: u32 = 0;
    /// Created, has not run yet.
    pub const NEW: u32 = 1;
    /// Enabled.
    pub const READY: u32 = 2;
    /// Disabled.
    pub const BLOCKED: u32 = 3;
    /// Disabled, but may time out.
    pub const TIMED: u32 = 4;
    /// Ended.
    pub const ENDED: u32 = 5;
}

/// What an access does: bits of [`Conflict::kinds`](crate::Conflict::kinds).
pub mod kind {
    /// It writes.
    pub const WRITE: u32 = 1;
    /// It is atomic.
    pub const ATOMIC: u32 = 2;
    /// It is a patched load or store. Whether it is atomic is unknown, and it counts as atomic.
    pub const PATCHED: u32 = 4;
}

/// Where a debugger wants to stop: bits that it passes to the runtime.
pub mod want {
    /// A switch to another thread.
    pub const SWITCH: u32 = 1;
    /// A preemption.
    pub const PREEMPTION: u32 = 2;
    /// The end of the execution.
    pub const END: u32 = 4;
    /// A panic.
    pub const THROW: u32 = 8;
    /// A misuse.
    pub const MISUSE: u32 = 16;
    /// A step. Not a request, but the reason of a stop at a requested step.
    pub const STEP: u32 = 32;
}
