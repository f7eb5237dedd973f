//! Registers: the switch from one stack to another, the registers of a frame for the engine to unwind from, and
//! the return address of an intercepted function.

use core::arch::{asm, global_asm};
use core::cell::Cell;
use core::sync::atomic::AtomicU64;

unsafe extern "C" {
    fn heisen_switch(save: *const Cell<usize>, to: usize, fs: usize);
}

global_asm!(
    // heisen_switch(save, to, fs): saves the registers that a function must preserve, with the layout of
    // `heisen_wire::saved`.
    ".globl heisen_switch",
    ".hidden heisen_switch",
    ".type heisen_switch, @function",
    "heisen_switch:",
    // The slowest instruction comes first, so that the rest overlaps with it.
    "wrfsbase rdx",
    "push rbp",
    "push rbx",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "sub rsp, 8",
    "stmxcsr [rsp]",
    "fnstcw [rsp + 4]",
    "mov [rdi], rsp",
    // Loading the control words is slow and rarely needed: threads rarely differ in them.
    "mov eax, [rsp]",
    "cmp eax, [rsi]",
    "jne 3f",
    "mov ax, [rsp + 4]",
    "cmp ax, [rsi + 4]",
    "je 4f",
    "3:",
    "ldmxcsr [rsi]",
    "fldcw [rsi + 4]",
    "4:",
    "mov rsp, rsi",
    "add rsp, 8",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbx",
    "pop rbp",
    "ret",
    ".size heisen_switch, . - heisen_switch",
);

/// Pushes the registers that a function must preserve, stores the stack pointer in `save`, and continues at the
/// frame at `to`, with `fs` as the base of thread-local storage. Returns when that frame is switched to again.
///
/// # Safety
/// At `to` is a frame that this function has left, or one of that layout; `fs` is a live control block of
/// glibc.
#[inline(always)]
pub unsafe fn switch(save: *const Cell<usize>, to: usize, fs: usize) {
    // SAFETY: the caller's.
    unsafe { heisen_switch(save, to, fs) };
}

/// Stores the registers of the caller's frame in `out`, in the order of `Stop::registers`.
#[inline(always)]
pub fn capture(out: &[AtomicU64; 8]) {
    // SAFETY: stores eight words to an array of that size.
    unsafe {
        asm!(
            "lea {scratch}, [rip]",
            "mov [{out}], {scratch}",
            "mov [{out} + 8], rsp",
            "mov [{out} + 16], rbp",
            "mov [{out} + 24], rbx",
            "mov [{out} + 32], r12",
            "mov [{out} + 40], r13",
            "mov [{out} + 48], r14",
            "mov [{out} + 56], r15",
            out = in(reg) out.as_ptr(),
            scratch = out(reg) _,
            options(nostack, preserves_flags),
        );
    }
}

/// The return address of the intercepted function: where the program called it. It is only valid directly in
/// the body of an exported function, and only with frame pointers, which the engine's build script asks for.
///
/// A function that may return before it needs a frame has none at its beginning: the compiler makes the frame where it
/// first needs one. To preserve a register it does.
macro_rules! caller {
    () => {{
        let pc: usize;
        // SAFETY: with frame pointers, the return address lies just above the saved rbp; the function preserves r12 for
        // its caller.
        unsafe {
            core::arch::asm!(
                "mov {}, [rbp + 8]",
                out(reg) pc,
                out("r12") _,
                options(nostack, readonly, preserves_flags)
            )
        };
        pc
    }};
}
pub(crate) use caller;
