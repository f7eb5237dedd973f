//! Atomic instructions of code that is not instrumented; see `engine::patch`.
//!
//! The code of such an instruction was moved to a *trampoline*, which first calls the runtime with the address of the
//! memory that it is about to access in `rdi` and that of a [`Site`] in `rsi`; both registers and the red zone were put
//! aside.

/// Bytes between the stack pointer of the program's code and that of the trampoline at the call: the red zone, and
/// two registers.
pub const ASIDE: i32 = 128 + 16;

/// One instruction, as its trampoline describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Site {
    /// The address after it, which is where a call would return to.
    pub pc: u64,
    /// One of [`RMW`] and its like.
    pub kind: u8,
    /// How many bytes it accesses.
    pub size: u8,
    /// The register that it writes, where the kind says so: its number in the order of the processor, plus
    /// [`HIGH`] for the second byte of one.
    pub register: u8,
    /// Which bit it sets, where the kind says so.
    pub bit: u8,
    /// What a script calls the place, if that is all it is.
    pub mark: u32,
}

/// Reads and writes.
pub const RMW: u8 = 0;
/// Compares with `rax`, or `rdx` and `rax`, and exchanges.
pub const CAS: u8 = 1;
/// Exchanges with [`Site::register`].
pub const XCHG: u8 = 2;
/// Sets [`Site::bit`].
pub const SET: u8 = 3;
/// As [`SET`], and the number of the bit is in [`Site::register`].
pub const SET_BY: u8 = 4;

/// Only reads.
pub const LOAD: u8 = 6;
/// Only writes.
pub const STORE: u8 = 7;

/// As [`CAS`], and locks a word that is 0 while it is free.
pub const LOCK: u8 = 8;
/// As [`XCHG`], and unlocks it.
pub const UNLOCK: u8 = 9;

/// Functions of the runtime that calls are led to: one that locks such a word, and one that unlocks it.
pub const LOCK_CALLS: usize = 2;

/// No atomic instruction, but a place that a script names: [`Site::mark`] is its number, times 4, and one of [`ENTRY`],
/// [`RETURN`] and [`LINE`]. Instead of the address of memory, the program's stack pointer is told.
pub const MARK: u8 = 5;
/// The first instruction of a function.
pub const ENTRY: u32 = 0;
/// One by which it is left.
pub const RETURN: u32 = 1;
/// The first one of a line.
pub const LINE: u32 = 2;

/// See [`Site::register`].
pub const HIGH: u8 = 16;

/// Functions by which the C library gets memory, also while it holds a lock of its own.
pub const ALLOCATION: [&str; 7] =
    ["malloc", "calloc", "realloc", "free", "memalign", "aligned_alloc", "posix_memalign"];
