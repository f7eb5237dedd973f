//! The description of patched instructions: atomic instructions of uninstrumented code; see `engine::patch`.
//!
//! The engine moves such an instruction to a *trampoline*. The trampoline first calls the runtime, with the
//! address of the accessed memory in `rdi` and that of a [`Site`] in `rsi`. It saves both registers and the
//! red zone before.

/// The bytes between the stack pointer of the program's code and that of the trampoline at the call: the red
/// zone and two registers.
pub const ASIDE: i32 = 128 + 16;

/// One instruction, as its trampoline describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Site {
    /// The address after it, where a call would return to.
    pub pc: u64,
    /// One of [`RMW`] and the constants below.
    pub kind: u8,
    /// How many bytes it accesses.
    pub size: u8,
    /// The register that it writes, for kinds that have one: the processor's number of the register, plus
    /// [`HIGH`] for its second byte.
    pub register: u8,
    /// The bit that it sets, for kinds that have one.
    pub bit: u8,
    /// The number of the place in a script, for [`MARK`].
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

/// As [`CAS`], and locks a word that is 0 while unlocked.
pub const LOCK: u8 = 8;
/// As [`XCHG`], and unlocks such a word.
pub const UNLOCK: u8 = 9;

/// The number of runtime functions that replace calls: one that locks such a word, and one that unlocks it.
pub const LOCK_CALLS: usize = 2;

/// Not an atomic instruction, but a place that a script names. [`Site::mark`] is its number times 4, plus one
/// of [`ENTRY`], [`RETURN`] and [`LINE`]. The trampoline passes the program's stack pointer instead of an
/// address.
pub const MARK: u8 = 5;
/// The first instruction of a function.
pub const ENTRY: u32 = 0;
/// An instruction that leaves the function.
pub const RETURN: u32 = 1;
/// The first instruction of a line.
pub const LINE: u32 = 2;

/// See [`Site::register`].
pub const HIGH: u8 = 16;

/// The functions by which the C library allocates memory, also while it holds a lock of its own.
pub const ALLOCATION: [&str; 7] =
    ["malloc", "calloc", "realloc", "free", "memalign", "aligned_alloc", "posix_memalign"];
