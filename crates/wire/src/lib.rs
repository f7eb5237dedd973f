//! The shared memory between the engine and the runtime: one mapping for each zygote, laid out as [`Wire`].
//!
//! Layout only, no logic. Every field is an atomic so that both sides may hold a plain reference to the mapping; on
//! x86-64 a relaxed access is an ordinary load or store. Who may touch what follows from [`Wire::turn`] (engine or
//! zygote) and, while a program runs, from [`Stop::state`]: exactly one side is awake at any time, except that the
//! engine may read [`Report::steps`] whenever it likes to see whether the program still moves.
#![no_std]
#![forbid(unsafe_code)]

mod codes;
pub mod patch;
pub mod script;
mod slot;
pub mod system;

pub use codes::*;
pub use slot::*;

use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

/// Identifies a mapping as ours; changes with every change of the layout.
pub const MAGIC: u64 = 0x4845_4953_454e_000f;

/// The environment variable that names the file descriptor of the mapping.
pub const ENV_FD: &str = "HEISEN_WIRE";

/// The environment variable that names the directory of an execution.
pub const ENV_DIR: &str = "HEISEN_DIR";

/// Most threads that one execution may create.
pub const MAX_THREADS: usize = 1 << 14;
/// Most overrides a plan may have.
pub const MAX_OVERRIDES: usize = 1 << 20;
/// Most decisions that are logged.
pub const MAX_DECISIONS: usize = 1 << 20;
/// Most events that are logged.
pub const MAX_EVENTS: usize = 1 << 20;
/// Most executions that the zygote runs in one turn.
pub const MAX_SLOTS: usize = 1024;
/// Most ranges of code that a scope may have.
pub const MAX_SCOPE: usize = 1 << 16;
/// Most bytes of recorded input.
pub const MAX_INPUT: usize = 4 << 20;
/// Most accesses that are scheduling points.
pub const MAX_POINTS: usize = 1 << 14;
/// Most places in memory that are known to be raced for.
pub const MAX_RACY: usize = 1 << 12;
/// Most conflicts of accesses that are told of one execution.
pub const MAX_CONFLICTS: usize = 64;
/// Most pieces of memory for patched code.
pub const MAX_AREAS: usize = 64;
/// Most patched instructions that have no room for a jump.
pub const MAX_TRAPS: usize = 1 << 14;
/// Most threads whose events are counted, and expected.
pub const MAX_COUNTED: usize = 256;
/// Most holds of an execution that is steered.
pub const MAX_HOLDS: usize = 16;
/// Room for the text of a failed assertion.
pub const MAX_TEXT: usize = 1024;

/// "No thread" in a field that names one.
pub const NO_THREAD: u32 = 0xffff;

/// An instruction whose first byte is a breakpoint.
#[derive(Debug)]
#[repr(C)]
pub struct Trap {
    /// Where it is.
    pub at: AtomicU64,
    /// Its trampoline.
    pub trampoline: AtomicU64,
    /// The byte that was there.
    pub byte: AtomicU64,
}

/// A range of code addresses of the scope.
#[derive(Debug)]
#[repr(C)]
pub struct ScopeRange {
    /// The first address.
    pub start: AtomicU64,
    /// The address after the last.
    pub end: AtomicU64,
    /// One of [`scope`].
    pub kind: AtomicU64,
}

/// What the engine asks of all executions; written before the program is started.
#[derive(Debug)]
#[repr(C)]
pub struct World {
    /// Seed of what the program takes for random.
    pub seed: AtomicU64,
    /// How many processors it sees; 0: the real ones.
    pub cpus: AtomicU32,
    /// Bits of [`world`].
    pub flags: AtomicU32,
    /// With [`world::FREE`]: the descriptor of the [`system::System`], plus 1; 0 if there is none yet.
    pub system: AtomicU32,
    /// The process whose descriptor that is; 0 for the program's own.
    pub script: AtomicU32,
    /// With [`world::FREE`]: the number of the program among those of a script, and in the high half whether its accesses of
    /// memory are events.
    pub program: AtomicU32,
}

/// A pause of the program in which the engine may look at it.
#[derive(Debug)]
#[repr(C)]
pub struct Stop {
    /// [`stop::RUNNING`] or [`stop::STOPPED`].
    pub state: AtomicU32,
    /// Why.
    pub reason: AtomicU32,
    /// The thread that runs.
    pub thread: AtomicU32,
    /// The operation it is about to do.
    pub op: AtomicU32,
    /// The step.
    pub step: AtomicU32,
    /// For a decision: what was chosen, by name as in [`Override::choice`].
    pub to: AtomicU32,
    /// For a decision: its kind, and in bit 8 whether it is preemptive.
    pub kind: AtomicU32,
    /// For a decision: the number of choices.
    pub options: AtomicU32,
    /// The object of the operation.
    pub object: AtomicU64,
    /// For a crash: the signal. The number of the stop otherwise.
    pub signal: AtomicU64,
    /// For a crash: the address that was touched.
    pub address: AtomicU64,
    /// rip, rsp, rbp, rbx, r12, r13, r14, r15 of the running thread.
    pub registers: [AtomicU64; 8],
}

/// One thread, as filled in at a stop.
#[derive(Debug)]
#[repr(C)]
pub struct Thread {
    /// One of [`state`].
    pub state: AtomicU32,
    /// The operation it is about to do.
    pub op: AtomicU32,
    /// The thread that created it.
    pub parent: AtomicU32,
    /// Its number among the threads its parent created, from 1.
    pub child: AtomicU32,
    /// The object of the operation.
    pub object: AtomicU64,
    /// Where it called the operation.
    pub pc: AtomicU64,
    /// Its start function.
    pub start: AtomicU64,
    /// Its saved stack pointer, which points at a [`saved`] frame; 0 for the running thread.
    pub sp: AtomicU64,
    /// The object that must be free before it can go on; 0 if none.
    pub needs: AtomicU64,
    /// Its `pthread_t`.
    pub handle: AtomicU64,
    /// The id of the kernel thread it runs on.
    pub kernel_id: AtomicU32,
    /// Unused.
    pub pad: AtomicU32,
    /// Its stack, from the lowest address to the one after the highest; 0 for the main thread and for stacks of the program's.
    pub stack: AtomicU64,
    /// See `stack`.
    pub stack_end: AtomicU64,
}

/// Whether an execution that does not end comes back to the same state: what a close look asks, and what it compares at
/// [`stop::STATE`]; see `runtime::sched::recurrence`.
#[derive(Debug)]
#[repr(C)]
pub struct Recurrence {
    /// Set by the engine: not 0 while it wants to compare states.
    pub wanted: AtomicU32,
    /// At a stop: the number of the state that is kept, or compared with.
    pub anchor: AtomicU32,
    /// At a stop: the step of that state; that of now if it is to be kept.
    pub since: AtomicU32,
    /// Unused.
    pub pad: AtomicU32,
    /// Where the program has this very memory.
    pub wire: AtomicU64,
    /// Where the kernel writes to by itself; 0 if nowhere.
    pub rseq: AtomicU64,
}

/// Where a mutex keeps the thread that holds it: offset of a 32-bit word, which is [`TID_BASE`] plus its number.
pub const MUTEX_OWNER: usize = 8;

/// In [`Thread::needs`]: the thread waits for a lock at this address, less this bit, which does not say who holds it.
pub const WITHOUT_OWNER: u64 = 1;

/// Thread ids as the program sees them: this plus the thread's number. The main thread's is also the process id. The
/// kernel never gives out ids above 4194304, so one of these that goes astray hits nobody.
pub const TID_BASE: i32 = 5_000_000;

/// What lies on the stack of a thread that is switched out: offsets in words from its saved stack pointer.
pub mod saved {
    /// Floating-point control words.
    pub const CONTROL: usize = 0;
    /// r15.
    pub const R15: usize = 1;
    /// r14.
    pub const R14: usize = 2;
    /// r13.
    pub const R13: usize = 3;
    /// r12.
    pub const R12: usize = 4;
    /// rbx.
    pub const RBX: usize = 5;
    /// rbp.
    pub const RBP: usize = 6;
    /// The return address.
    pub const RIP: usize = 7;
    /// Number of words; the thread's own stack pointer is this far above.
    pub const WORDS: usize = 8;
}

/// The signal by which the engine tells a thread that it waits in a loop for memory to change, and shall yield. It is the
/// one by which glibc cancels threads, which Heisen does by itself; programs cannot use it.
pub const SPINS: i32 = 32;

/// The heap: what the engine asks of it and, where an execution ends by a misuse of it, which block that is about.
#[derive(Debug)]
#[repr(C)]
pub struct Heap {
    /// Bits of [`heap`]; written before the program is started.
    pub flags: AtomicU32,
    /// The thread that allocated the block.
    pub alloc_thread: AtomicU32,
    /// The thread that freed it; [`NO_THREAD`] if none did.
    pub free_thread: AtomicU32,
    /// Unused.
    pub pad: AtomicU32,
    /// The number of a block at whose allocation an execution with [`flag::STOPS`] stops; 0 if none. Blocks are numbered
    /// from 1 in the order of their allocation, those before `main` included.
    pub stop_at_alloc: AtomicU64,
    /// The number of a block that it stops at before it is freed; 0 if none.
    pub stop_at_free: AtomicU64,
    /// The number of the block; 0 if there is none that it is about.
    pub serial: AtomicU64,
    /// Bytes of the block.
    pub size: AtomicU64,
    /// Where it was allocated.
    pub alloc_pc: AtomicU64,
    /// Where it was freed.
    pub free_pc: AtomicU64,
    /// Bytes of the access; 0 if it is none.
    pub access: AtomicU64,
    /// Where in the block the error is: beyond its size is behind it, a negative number before it.
    pub offset: AtomicU64,
    /// Blocks that were leaked; the block is the first of them.
    pub leaked_blocks: AtomicU64,
    /// Their bytes.
    pub leaked_bytes: AtomicU64,
}

/// One event: step, thread, operation and flags in the first word, then object and code address.
pub type Event = [AtomicU64; 3];

/// The whole mapping.
#[derive(Debug)]
#[repr(C)]
pub struct Wire {
    /// [`MAGIC`].
    pub magic: AtomicU64,
    /// Whose turn it is: one of [`turn`], a futex word.
    pub turn: AtomicU32,
    /// Counts whatever the engine should notice: a turn given back, a stop. A futex word.
    pub bell: AtomicU32,
    /// The zygote's process id.
    pub zygote: AtomicU32,
    /// The process of the execution that runs.
    pub child: AtomicU32,
    /// How many slots the zygote is to run.
    pub slots_wanted: AtomicU32,
    /// The slot that runs.
    pub slot: AtomicU32,
    /// How many slots were run: fewer than wanted if the log was nearly full or the engine wanted it so.
    pub slots_run: AtomicU32,
    /// Set by the engine if no further slot shall be run in this turn.
    pub enough: AtomicU32,
    /// Counts while the program waits for time to pass, so that the engine does not take it for stuck.
    pub heartbeat: AtomicU32,
    /// The signal that the engine is about to send to the execution, [`SPINS`] or the question where it is; 0 if none. The runtime
    /// takes it back, and so tells that signal from one of the same number that somebody else sends.
    pub question: AtomicU32,
    /// What surrounds the executions.
    pub world: World,
    /// The pause.
    pub stop: Stop,
    /// The executions of this turn.
    pub slots: [Slot; MAX_SLOTS],
    /// What they have besides.
    pub lists: [Lists; MAX_SLOTS],
    /// Threads, filled in at a stop.
    pub threads: [Thread; MAX_THREADS],
    /// Overrides of the plans.
    pub overrides: [Override; MAX_OVERRIDES],
    /// Decisions, packed as by `heisen_trace::Decision::pack`.
    pub decisions: [[AtomicU64; 2]; MAX_DECISIONS],
    /// Events.
    pub events: [Event; MAX_EVENTS],
    /// Where the program parks, one of [`park`]; set before it starts.
    pub park: AtomicU32,
    /// How far a program has come that has not parked yet: one of [`boot`].
    pub boot: AtomicU32,
    /// What holds for code that is in no range of [`Wire::scope`]: one of [`scope`].
    pub scope_default: AtomicU32,
    /// How many ranges there are.
    pub scope_ranges: AtomicU32,
    /// Ranges of code, sorted, that do not overlap.
    pub scope: [ScopeRange; MAX_SCOPE],
    /// Bytes in use of [`Wire::input`].
    pub input_length: AtomicU32,
    /// Bits of [`input`].
    pub input_state: AtomicU32,
    /// What came from outside; the runtime knows how it is laid out.
    pub input: [AtomicU8; MAX_INPUT],
    // The heap.
    /// What is asked of the heap, and what it tells.
    pub heap: Heap,
    /// Bits of [`access`].
    pub access_flags: AtomicU32,
    /// Set by the program if it has instrumented code.
    pub instrumented: AtomicU32,
    /// Counts whenever the engine has changed one of the following; it does so while the zygote is parked.
    pub points_version: AtomicU32,
    /// How many accesses are scheduling points, and how many places are known to be raced for.
    pub points_count: AtomicU32,
    /// See `points_count`.
    pub racy_count: AtomicU32,
    /// Accesses that are scheduling points: addresses that a call of theirs returns to.
    pub points: [AtomicU64; MAX_POINTS],
    /// Places that were raced for in an execution before, where every access is remembered.
    pub racy: [AtomicU64; MAX_RACY],
    /// In a close look: stop at accesses of this byte, 0 if none,
    pub watch: AtomicU64,
    /// from this place,
    pub watch_pc: AtomicU64,
    /// and at a conflict of such an access with one from this place;
    pub watch_conflicts: AtomicU64,
    /// by the thread of that number.
    pub watch_thread: AtomicU32,
    /// Unused.
    pub pad: AtomicU32,
    // Patched code.
    /// Where trampolines call the runtime; set by the runtime.
    pub patch_entry: AtomicU64,
    /// How many pieces of memory the engine wants for trampolines, and after that how many there are.
    pub patch_areas: AtomicU32,
    /// How many instructions are breakpoints.
    pub patch_traps: AtomicU32,
    /// The allocation functions of the program, if it brings any, in the order of [`patch::ALLOCATION`]; 0 for those that
    /// it does not.
    pub patch_own: [AtomicU64; patch::ALLOCATION.len()],
    /// What the C library shall call instead of them; set by the runtime.
    pub patch_quiet: [AtomicU64; patch::ALLOCATION.len()],
    /// What takes the place of a call that locks or unlocks a word, in the order of [`patch::LOCK_CALLS`]; set by the runtime.
    pub patch_lock: [AtomicU64; patch::LOCK_CALLS],
    /// Address and size of each piece of memory.
    pub patch_area: [[AtomicU64; 2]; MAX_AREAS],
    /// The breakpoints, in order of their addresses.
    pub patch_trap: [Trap; MAX_TRAPS],
    // Executions in one process.
    /// Whether the engine wants them, or the runtime has given up: one of [`runner`].
    pub reset: AtomicU32,
    /// Why the last execution could not be undone, if one could not: one of [`runner`].
    pub reset_reason: AtomicU32,
    /// What the runner does: one of [`runner`].
    pub runner: AtomicU32,
    /// How many executions were undone.
    pub resets: AtomicU32,
    /// How many runners ended in an execution.
    pub runners: AtomicU32,
    /// How many executions, the latest ones, began in memory that was put back by guess and not compared since; see
    /// `runtime::lifecycle::in_process`.
    pub unverified: AtomicU32,
    /// After how many of the next executions nothing is guessed.
    pub careful: AtomicU32,
    /// The step of the choice at which the executions of this turn part, where it is worth while to begin there; else 0.
    pub parting: AtomicU32,
    /// How many runners ended because a plan did not fit where they had been moved ahead to.
    pub misfits: AtomicU32,
    /// What a script wants.
    pub script: script::Script,
    /// Whether the program comes back to the same state.
    pub recurrence: Recurrence,
    /// What is known of the loop that a thread waits in: one of [`spin`].
    pub spin: AtomicU32,
}

/// So many steps must be saved by beginning executions of a turn further ahead. To save the program there takes as long as that.
pub const WORTH: u64 = 1 << 16;

/// Size of the mapping in bytes.
pub const SIZE: usize = size_of::<Wire>();

/// Bit of an [`Event`]'s first word: the operation did not succeed (lock not acquired, timed out).
pub const EVENT_FAILED: u64 = 1 << 56;

/// The first word of an [`Event`].
pub const fn pack_event(step: u32, thread: u16, op: u8) -> u64 {
    (step as u64) | ((thread as u64) << 32) | ((op as u64) << 48)
}

/// Step, thread and operation from the first word of an [`Event`].
pub const fn unpack_event(word: u64) -> (u32, u16, u8) {
    (word as u32, (word >> 32) as u16, (word >> 48) as u8)
}
