//! The shared memory between the engine and the runtime: one mapping for each zygote, laid out as [`Wire`].
//!
//! This crate holds the layout and no logic. Every field is an atomic, so that both sides may hold a plain
//! reference to the mapping; on x86-64 a relaxed access is an ordinary load or store. [`Wire::turn`] says
//! which side may access the mapping, engine or zygote; while a program runs, [`Stop::state`] does. Exactly
//! one side is awake at any time. The only exception: the engine may read [`Report::steps`] at any time, to
//! see whether the program makes progress.
#![no_std]
#![forbid(unsafe_code)]

mod codes;
pub mod patch;
pub mod script;
mod slot;
pub mod symbolic;
pub mod system;

pub use codes::*;
pub use slot::*;

use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

/// Identifies the mapping. It changes with every change of the layout.
pub const MAGIC: u64 = 0x4845_4953_454e_0010;

/// The environment variable that names the file descriptor of the mapping.
pub const ENV_FD: &str = "HEISEN_WIRE";

/// The environment variable that names the directory of an execution.
pub const ENV_DIR: &str = "HEISEN_DIR";

/// The largest number of threads in one execution.
pub const MAX_THREADS: usize = 1 << 14;
/// The largest number of overrides of a plan.
pub const MAX_OVERRIDES: usize = 1 << 20;
/// The largest number of logged decisions.
pub const MAX_DECISIONS: usize = 1 << 20;
/// The largest number of logged events.
pub const MAX_EVENTS: usize = 1 << 20;
/// The largest number of executions that the zygote runs in one turn.
pub const MAX_SLOTS: usize = 1024;
/// The largest number of code ranges of a scope.
pub const MAX_SCOPE: usize = 1 << 16;
/// The largest size of recorded input in bytes.
pub const MAX_INPUT: usize = 4 << 20;
/// The largest number of access points.
pub const MAX_POINTS: usize = 1 << 14;
/// The largest number of memory locations that are known to be in data races.
pub const MAX_RACY: usize = 1 << 12;
/// The largest number of conflicts that one execution reports.
pub const MAX_CONFLICTS: usize = 64;
/// The largest number of memory areas for patched code.
pub const MAX_AREAS: usize = 64;
/// The largest number of patched instructions without room for a jump.
pub const MAX_TRAPS: usize = 1 << 14;
/// The largest number of threads whose events are counted and expected.
pub const MAX_COUNTED: usize = 256;
/// The largest number of holds of a directed execution.
pub const MAX_HOLDS: usize = 16;
/// The size of the text of a failed assertion, in bytes.
pub const MAX_TEXT: usize = 1024;
/// The most events at which one close-up stops.
pub const MAX_STOPS: usize = 1 << 12;

/// "No thread" in a field that names one.
pub const NO_THREAD: u32 = 0xffff;

/// An instruction whose first byte is a breakpoint.
#[derive(Debug)]
#[repr(C)]
pub struct Trap {
    /// Its address.
    pub at: AtomicU64,
    /// The address of its trampoline.
    pub trampoline: AtomicU64,
    /// The original byte.
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

/// What the engine asks of all executions. It writes this before it starts the program.
#[derive(Debug)]
#[repr(C)]
pub struct World {
    /// Seed of the bytes that the program reads as random.
    pub seed: AtomicU64,
    /// How many processors the program sees; 0 for the real number.
    pub cpus: AtomicU32,
    /// Bits of [`world`].
    pub flags: AtomicU32,
    /// With [`world::FREE`]: the descriptor of the [`system::System`] plus 1; 0 if there is none yet.
    pub system: AtomicU32,
    /// The process that owns the descriptor; 0 for the program's own.
    pub script: AtomicU32,
    /// With [`world::FREE`]: the number of the program among those of a script. The high half says whether
    /// memory accesses are events.
    pub program: AtomicU32,
}

/// A pause of the program in which the engine may inspect it.
#[derive(Debug)]
#[repr(C)]
pub struct Stop {
    /// [`stop::RUNNING`] or [`stop::STOPPED`].
    pub state: AtomicU32,
    /// The reason, one of [`stop`].
    pub reason: AtomicU32,
    /// The running thread.
    pub thread: AtomicU32,
    /// The operation that it is about to do.
    pub op: AtomicU32,
    /// The step.
    pub step: AtomicU32,
    /// For a decision: the chosen thing, as in [`Override::choice`] by name.
    pub to: AtomicU32,
    /// For a decision: its kind, and in bit 8 whether it is preemptive.
    pub kind: AtomicU32,
    /// For a decision: the number of choices.
    pub options: AtomicU32,
    /// The object of the operation.
    pub object: AtomicU64,
    /// For a crash: the signal. Otherwise the number of the stop.
    pub signal: AtomicU64,
    /// For a crash: the address of the fault.
    pub address: AtomicU64,
    /// rip, rsp, rbp, rbx, r12, r13, r14, r15 of the running thread.
    pub registers: [AtomicU64; 8],
}

/// One thread. The runtime fills this in at a stop.
#[derive(Debug)]
#[repr(C)]
pub struct Thread {
    /// One of [`state`].
    pub state: AtomicU32,
    /// The operation that it is about to do.
    pub op: AtomicU32,
    /// The thread that created it.
    pub parent: AtomicU32,
    /// Its number among the threads that its parent created, from 1.
    pub child: AtomicU32,
    /// The object of the operation.
    pub object: AtomicU64,
    /// The place of the call of the operation.
    pub pc: AtomicU64,
    /// Its start function.
    pub start: AtomicU64,
    /// Its saved stack pointer, which points at a [`saved`] frame; 0 for the running thread.
    pub sp: AtomicU64,
    /// The object that must be released before it is enabled; 0 if none.
    pub needs: AtomicU64,
    /// Its `pthread_t`.
    pub handle: AtomicU64,
    /// The id of the kernel thread it runs on.
    pub kernel_id: AtomicU32,
    /// Unused.
    pub pad: AtomicU32,
    /// The lowest address of its stack; 0 for the main thread and for stacks that the program provides.
    pub stack: AtomicU64,
    /// The address after the highest of its stack.
    pub stack_end: AtomicU64,
}

/// A search for a repeated state in an execution that does not end. The runtime stops at [`stop::STATE`], and
/// the close-up compares states; see `runtime::sched::recurrence`.
#[derive(Debug)]
#[repr(C)]
pub struct Recurrence {
    /// Not 0 while the engine wants to compare states.
    pub wanted: AtomicU32,
    /// At a stop: the number of the state that is saved, or compared with.
    pub anchor: AtomicU32,
    /// At a stop: the step of that state; the current step if it has to be saved.
    pub since: AtomicU32,
    /// Unused.
    pub pad: AtomicU32,
    /// The address of this mapping in the program.
    pub wire: AtomicU64,
    /// The address of the area that the kernel writes by itself (restartable sequences); 0 if there is none.
    pub rseq: AtomicU64,
}

/// The offset in a mutex of the thread that holds it: a 32-bit word, [`TID_BASE`] plus the thread's number.
pub const MUTEX_OWNER: usize = 8;

/// In [`Thread::needs`]: a bit that is set if the lock at this address does not say which thread holds it.
pub const WITHOUT_OWNER: u64 = 1;

/// The thread ids that the program sees are this plus the thread's number. That of the main thread is also
/// the process id. The kernel never uses ids above 4194304, so such an id that leaks to the kernel names no
/// thread.
pub const TID_BASE: i32 = 5_000_000;

/// The saved frame of a thread that does not run: offsets in words from its saved stack pointer.
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
    /// The number of words; the thread's own stack pointer is this far above.
    pub const WORDS: usize = 8;
}

/// The signal by which the engine makes a thread yield that waits in a loop for memory to change. It is the
/// signal that glibc uses to cancel threads. Heisen implements cancellation itself, and programs cannot use
/// the signal.
pub const SPINS: i32 = 32;

/// The checked heap: what the engine asks of it and, if an execution ends with a misuse of it, the block
/// concerned.
#[derive(Debug)]
#[repr(C)]
pub struct Heap {
    /// Bits of [`heap`]. The engine writes them before it starts the program.
    pub flags: AtomicU32,
    /// The thread that allocated the block.
    pub alloc_thread: AtomicU32,
    /// The thread that freed the block; [`NO_THREAD`] if none did.
    pub free_thread: AtomicU32,
    /// Unused.
    pub pad: AtomicU32,
    /// The number of the block at whose allocation an execution with [`flag::STOPS`] stops; 0 if none. Blocks
    /// are numbered from 1 in the order of allocation, including those before `main`.
    pub stop_at_alloc: AtomicU64,
    /// The number of the block before whose free it stops; 0 if none.
    pub stop_at_free: AtomicU64,
    /// The number of the block concerned; 0 if there is none.
    pub serial: AtomicU64,
    /// The size of the block in bytes.
    pub size: AtomicU64,
    /// The place of the allocation.
    pub alloc_pc: AtomicU64,
    /// The place of the free.
    pub free_pc: AtomicU64,
    /// The size of the access in bytes; 0 if the error is not an access.
    pub access: AtomicU64,
    /// The offset of the error: at least the size if it is after the block, negative if before.
    pub offset: AtomicU64,
    /// The number of leaked blocks; the block concerned is the first of them.
    pub leaked_blocks: AtomicU64,
    /// The number of leaked bytes.
    pub leaked_bytes: AtomicU64,
}

/// One event: step, thread, operation and flags in the first word, then object and code address, and for an access of
/// memory its value.
pub type Event = [AtomicU64; 4];

/// The layout of the mapping.
#[derive(Debug)]
#[repr(C)]
pub struct Wire {
    /// [`MAGIC`].
    pub magic: AtomicU64,
    /// Whose turn it is: one of [`turn`], a futex word.
    pub turn: AtomicU32,
    /// A counter of everything that the engine should notice: a turn given back, a stop. A futex word.
    pub bell: AtomicU32,
    /// The zygote's process id.
    pub zygote: AtomicU32,
    /// The process of the running execution.
    pub child: AtomicU32,
    /// How many slots the zygote has to run.
    pub slots_wanted: AtomicU32,
    /// The slot that runs.
    pub slot: AtomicU32,
    /// How many slots were run. Fewer than wanted if the log was nearly full or the engine asked to stop.
    pub slots_run: AtomicU32,
    /// The engine sets this if the zygote shall run no further slot in this turn.
    pub enough: AtomicU32,
    /// A counter that increases while the program waits for time to pass, so that the engine does not
    /// consider it stuck.
    pub heartbeat: AtomicU32,
    /// The signal that the engine is about to send to the execution, [`SPINS`] or the question where it is; 0
    /// if none. The runtime clears it. This distinguishes the signal from one of the same number that another
    /// process sends.
    pub question: AtomicU32,
    /// The environment of the executions.
    pub world: World,
    /// The pause.
    pub stop: Stop,
    /// The executions of this turn.
    pub slots: [Slot; MAX_SLOTS],
    /// Their lists, which are rarely used.
    pub lists: [Lists; MAX_SLOTS],
    /// Threads, filled in at a stop.
    pub threads: [Thread; MAX_THREADS],
    /// Overrides of the plans.
    pub overrides: [Override; MAX_OVERRIDES],
    /// Decisions, packed as by `heisen_trace::Decision::pack`.
    pub decisions: [[AtomicU64; 2]; MAX_DECISIONS],
    /// Events.
    pub events: [Event; MAX_EVENTS],
    /// Where the program parks, one of [`park`]. Set before it starts.
    pub park: AtomicU32,
    /// How far a program that has not parked yet has come: one of [`boot`].
    pub boot: AtomicU32,
    /// The rule for code in no range of [`Wire::scope`]: one of [`scope`].
    pub scope_default: AtomicU32,
    /// The number of ranges.
    pub scope_ranges: AtomicU32,
    /// Code ranges, sorted and disjoint.
    pub scope: [ScopeRange; MAX_SCOPE],
    /// The number of used bytes of [`Wire::input`].
    pub input_length: AtomicU32,
    /// Bits of [`input`].
    pub input_state: AtomicU32,
    /// The recorded input. The runtime defines its format.
    pub input: [AtomicU8; MAX_INPUT],
    // The heap.
    /// The checked heap.
    pub heap: Heap,
    /// Bits of [`access`].
    pub access_flags: AtomicU32,
    /// Set by the program if it has instrumented code.
    pub instrumented: AtomicU32,
    /// A counter that the engine increases when it changes one of the following fields, while the zygote is
    /// parked.
    pub points_version: AtomicU32,
    /// The number of access points.
    pub points_count: AtomicU32,
    /// The number of locations in [`Wire::racy`].
    pub racy_count: AtomicU32,
    /// Access points: the addresses that their calls return to.
    pub points: [AtomicU64; MAX_POINTS],
    /// Locations that were in a data race before. The runtime remembers every access there.
    pub racy: [AtomicU64; MAX_RACY],
    /// In a close-up: stop at accesses of this byte; 0 if none.
    pub watch: AtomicU64,
    /// Stop only at accesses from this place.
    pub watch_pc: AtomicU64,
    /// Stop also at a conflict of such an access with one from this place.
    pub watch_conflicts: AtomicU64,
    /// Stop only for accesses of this thread.
    pub watch_thread: AtomicU32,
    /// Unused.
    pub pad: AtomicU32,
    // Patched code.
    /// The address in the runtime that trampolines call. Set by the runtime.
    pub patch_entry: AtomicU64,
    /// The number of memory areas for trampolines: first as the engine wants, then as many as there are.
    pub patch_areas: AtomicU32,
    /// The number of breakpoints.
    pub patch_traps: AtomicU32,
    /// The allocation functions that the program itself defines, in the order of [`patch::ALLOCATION`]; 0 for
    /// the others.
    pub patch_own: [AtomicU64; patch::ALLOCATION.len()],
    /// The functions that the C library shall call instead of them. Set by the runtime.
    pub patch_uncontrolled: [AtomicU64; patch::ALLOCATION.len()],
    /// The functions that replace calls which lock or unlock a word, in the order of [`patch::LOCK_CALLS`].
    /// Set by the runtime.
    pub patch_lock: [AtomicU64; patch::LOCK_CALLS],
    /// Address and size of each memory area.
    pub patch_area: [[AtomicU64; 2]; MAX_AREAS],
    /// The breakpoints, in order of address.
    pub patch_trap: [Trap; MAX_TRAPS],
    // Executions in one process.
    /// Whether the engine wants a runner, or the runtime has given up: one of [`runner`].
    pub reset: AtomicU32,
    /// Why the last execution could not be undone, if it could not: one of [`runner`].
    pub reset_reason: AtomicU32,
    /// The state of the runner: one of [`runner`].
    pub runner: AtomicU32,
    /// How many executions were undone.
    pub resets: AtomicU32,
    /// How many runners ended in an execution.
    pub runners: AtomicU32,
    /// How many of the latest executions began in memory that was restored by prediction and not verified
    /// since; see `runtime::lifecycle::in_process`.
    pub unverified: AtomicU32,
    /// For how many of the next executions memory is not restored by prediction.
    pub careful: AtomicU32,
    /// The step of the decision at which the plans of this turn begin to differ, if starting there is
    /// worthwhile; else 0.
    pub shared_until: AtomicU32,
    /// How many runners ended because a plan did not fit the later snapshot that they had taken.
    pub misfits: AtomicU32,
    /// The commands of a script.
    pub script: script::Script,
    /// The search for a repeated state.
    pub recurrence: Recurrence,
    /// What is known of the loop that a thread waits in: one of [`spin`].
    pub spin: AtomicU32,
    /// In a close-up: how many entries of `stops_at` there are.
    pub stops_count: AtomicU32,
    /// The entry of `stops_at` that comes next.
    pub stops_next: AtomicU32,
    /// Stop after the events with these numbers, from 1, in ascending order.
    pub stops_at: [AtomicU32; MAX_STOPS],
}

/// A later snapshot must save at least this many steps in a turn. Taking it costs as much time as that.
pub const WORTH: u64 = 1 << 16;

/// Size of the mapping in bytes.
pub const SIZE: usize = size_of::<Wire>();

/// A bit of the first word of an [`Event`]: the operation did not succeed (lock not acquired, timed out).
pub const EVENT_FAILED: u64 = 1 << 56;

/// A bit of the first word of an [`Event`]: an access of memory, with its value in the last word. Its size is 2 to the
/// power of the bits from [`EVENT_SIZE`] on.
pub const EVENT_ACCESS: u64 = 1 << 57;
/// The position of the size of an access in the first word of an [`Event`].
pub const EVENT_SIZE: u32 = 58;

/// The first word of an [`Event`].
pub const fn pack_event(step: u32, thread: u16, op: u8) -> u64 {
    (step as u64) | ((thread as u64) << 32) | ((op as u64) << 48)
}

/// Step, thread and operation from the first word of an [`Event`].
pub const fn unpack_event(word: u64) -> (u32, u16, u8) {
    (word as u32, (word >> 32) as u16, (word >> 48) as u8)
}
