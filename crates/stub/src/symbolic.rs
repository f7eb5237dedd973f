//! What symbolic builds call: the callbacks of `heisen_abi::symbolic`, as jumps through a table of their own, and the
//! pointer to the frame.
//!
//! A jump for an operation, a branch or a pin first looks whether an id is other than 0, so that code need not.

use core::arch::{asm, global_asm};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};
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
}));

/// `heisen_sym_frame`.
static FRAME: AtomicPtr<Frame> = AtomicPtr::new(UNUSED.0.get());

extern "C" fn nothing() -> usize {
    0
}

macro_rules! answers {
    ($($name:ident($($argument:ident: $ty:ty),*) -> $result:ty;)*) => {
        [$({
            const _: &str = stringify!($name);
            AtomicPtr::new(nothing as *mut ())
        }),*]
    };
}

/// The functions to which the callbacks jump, in the order of the list.
static TABLE: [AtomicPtr<()>; COUNT] = symbolic_callbacks!(answers);

/// What stands before the jump. `5f` is the jump; without one the function returns 0.
#[rustfmt::skip]
macro_rules! check {
    (heisen_sym_unary) => { "test %esi, %esi\njne 5f\nxor %eax, %eax\nret" };
    (heisen_sym_binary) => { "mov %esi, %eax\nor %edx, %eax\njne 5f\nret" };
    (heisen_sym_select) => { "test %esi, %esi\njne 5f\nmov %r8d, %eax\ntest %edx, %edx\ncmovne %ecx, %eax\nret" };
    (heisen_sym_branch) => { "test %edi, %edi\njne 5f\nret" };
    (heisen_sym_pin) => { "test %edi, %edi\njne 5f\nret" };
    ($other:ident) => { "" };
}

macro_rules! jumps {
    ($($name:ident($($argument:ident: $ty:ty),*) -> $result:ty;)*) => {
        global_asm!(
            ".pushsection .text.heisen_stub_symbolic, \"ax\", @progbits",
            ".p2align 4",
            ".cfi_startproc",
            ".set heisen_stub_symbolic_at, 0",
            $(
                concat!(".weak ", stringify!($name)),
                concat!(".hidden ", stringify!($name)),
                concat!(".type ", stringify!($name), ", @function"),
                concat!(stringify!($name), ":"),
                check!($name),
                "5: jmp *{table} + heisen_stub_symbolic_at(%rip)",
                ".set heisen_stub_symbolic_at, heisen_stub_symbolic_at + 8",
            )*
            ".cfi_endproc",
            ".popsection",
            ".weak heisen_sym_frame",
            ".hidden heisen_sym_frame",
            ".set heisen_sym_frame, {frame}",
            table = sym TABLE,
            frame = sym FRAME,
            options(att_syntax)
        );
    };
}

symbolic_callbacks!(jumps);

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
}
