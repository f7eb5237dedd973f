//! What symbolic builds need: the pointer to the frame, and the table of the runtime's callbacks.

use core::arch::{asm, global_asm};
use core::cell::UnsafeCell;
use core::mem::offset_of;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::Relaxed};
use heisen_abi::symbolic::{ARGUMENTS, COUNT, Frame, RESULTS, Table, VERSION};
use heisen_abi::symbolic_callbacks;

/// A frame that nobody ever writes: without a runtime there are no expressions.
struct Unused(UnsafeCell<Frame>);

// SAFETY: `live` is 0, so no code writes it.
unsafe impl Sync for Unused {}

static UNUSED: Unused = Unused(UnsafeCell::new(Frame {
    live: 0,
    pad: 0,
    callee: 0,
    returner: 0,
    arguments: [0; ARGUMENTS],
    results: [0; RESULTS],
    place: 0,
}));

/// The frame: the runtime's, if there is one.
static FRAME: AtomicPtr<Frame> = AtomicPtr::new(UNUSED.0.get());

/// `heisen_sym_loaded`.
static LOADED: AtomicU32 = AtomicU32::new(0);

/// A module is initialised while the runtime is loaded.
pub fn wake() {
    LOADED.store(1, Relaxed);
}

// `heisen_sym_run` returns at once while there are no expressions; otherwise it stores the place of its caller in the frame.
// It keeps all general registers, so that its calls, which are rarely reached, do not disturb the code before and after them.
global_asm!(
    ".weak heisen_sym_loaded",
    ".hidden heisen_sym_loaded",
    ".set heisen_sym_loaded, {loaded}",
    ".pushsection .text.heisen_stub_symbolic, \"ax\", @progbits",
    ".p2align 4",
    ".weak heisen_sym_run",
    ".hidden heisen_sym_run",
    ".type heisen_sym_run, @function",
    "heisen_sym_run:",
    ".cfi_startproc",
    "mov {frame}(%rip), %r11",
    "cmpl $0, {live}(%r11)",
    "jne 5f",
    "ret",
    "5: push %rax",
    "push %rcx",
    "push %rdx",
    "push %rsi",
    "push %rdi",
    "push %r8",
    "push %r9",
    "push %r10",
    "sub $8, %rsp",
    ".cfi_def_cfa_offset 80",
    "mov 72(%rsp), %rax",
    "mov %rax, {place}(%r11)",
    "call {run}",
    "add $8, %rsp",
    "pop %r10",
    "pop %r9",
    "pop %r8",
    "pop %rdi",
    "pop %rsi",
    "pop %rdx",
    "pop %rcx",
    "pop %rax",
    ".cfi_def_cfa_offset 8",
    "ret",
    ".cfi_endproc",
    ".popsection",
    frame = sym FRAME,
    loaded = sym LOADED,
    live = const offset_of!(Frame, live),
    place = const offset_of!(Frame, place),
    run = sym crate::steps::run,
    options(att_syntax)
);

/// The frame.
pub fn frame() -> *mut Frame {
    FRAME.load(Relaxed)
}

extern "C" fn nothing() -> usize {
    0
}

macro_rules! callbacks {
    ($($name:ident($($argument:ident: $ty:ty),*) -> $result:ty;)*) => {
        /// The places of the callbacks in the table.
        #[allow(non_camel_case_types)]
        enum Place {
            $($name),*
        }

        /// The runtime's functions.
        static TABLE: [AtomicPtr<()>; COUNT] =
            [$({
                let _ = Place::$name;
                AtomicPtr::new(nothing as *mut ())
            }),*];

        $(
            /// Calls the runtime's function of this name.
            #[allow(clippy::too_many_arguments)]
            pub fn $name($($argument: $ty),*) -> $result {
                let function = TABLE[Place::$name as usize].load(Relaxed);
                // SAFETY: the entry is a function with the signature of the list. Without a runtime it is `nothing`, which
                // takes anything, and whose result is 0 as any integer.
                unsafe { core::mem::transmute::<*mut (), extern "C" fn($($ty),*) -> $result>(function)($($argument),*) }
            }
        )*
    };
}

symbolic_callbacks!(callbacks);

/// Fills the table and the pointer with the runtime's, if the runtime is loaded and has the same list of callbacks.
pub fn take() {
    let theirs: *const Table;
    // SAFETY: see `table::take`.
    unsafe {
        asm!(
            ".weak heisen_symbolic_table",
            "mov {}, qword ptr [rip + heisen_symbolic_table@GOTPCREL]",
            out(reg) theirs,
            options(nostack, readonly, preserves_flags, pure)
        );
    }
    // SAFETY: the pointer is null or points to the runtime's table. Version and length have the same place in all
    // versions of the table.
    let Some(theirs) = (unsafe { theirs.as_ref() }) else { return };
    if theirs.version != VERSION || theirs.length as usize != COUNT {
        return;
    }
    for (ours, &theirs) in TABLE.iter().zip(&theirs.callbacks) {
        ours.store(theirs.cast_mut(), Relaxed);
    }
    FRAME.store(theirs.frame, Relaxed);
    wake();
}
