//! The switch from one thread to another, and what builds on the frame that it leaves: threads that take signals first
//! when they are switched to, registers for the engine to unwind from.

use super::block::{read, write};
use crate::carrier::kernel_threads;
use crate::sched::{S, Thread};
use crate::shim;
use core::arch::{asm, global_asm};
use core::cell::Cell;
use core::sync::atomic::AtomicU64;
use heisen_wire::saved;

unsafe extern "C" {
    fn heisen_switch(save: *const Cell<usize>, to: usize, fs: usize);
    fn heisen_diverted();
}

global_asm!(
    // heisen_switch(save, to, fs): saves what a function must preserve, with the layout of `heisen_wire::saved`.
    ".globl heisen_switch",
    ".hidden heisen_switch",
    ".type heisen_switch, @function",
    "heisen_switch:",
    // The slowest first, so that the rest overlaps with it.
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
    // Loading the control words is slow and hardly ever needed: threads rarely differ in them.
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

/// Switches to another thread; returns when `from` is switched to again.
#[inline]
pub fn switch(from: &Thread, to: &Thread) {
    if S.kernel.get() {
        return kernel_threads::switch(from, to);
    }
    // SAFETY: `to` is not running, so its saved stack pointer points at a frame that `heisen_switch`, or `create`,
    // laid down; its fs base is a live control block.
    unsafe { heisen_switch(&raw const from.sp, to.sp.get(), to.fs.get()) };
}

global_asm!(
    // Where a thread goes on that was diverted: it takes its signals, then does what `heisen_switch` would have done.
    // The stack pointer is at the frame that was there before, which the unwinding information describes.
    ".globl heisen_diverted",
    ".hidden heisen_diverted",
    ".type heisen_diverted, @function",
    "heisen_diverted:",
    ".cfi_startproc",
    ".cfi_def_cfa rsp, 64",
    ".cfi_offset r15, -56",
    ".cfi_offset r14, -48",
    ".cfi_offset r13, -40",
    ".cfi_offset r12, -32",
    ".cfi_offset rbx, -24",
    ".cfi_offset rbp, -16",
    "call {deliver}",
    "add rsp, 8",
    ".cfi_def_cfa_offset 56",
    "pop r15",
    ".cfi_def_cfa_offset 48",
    "pop r14",
    ".cfi_def_cfa_offset 40",
    "pop r13",
    ".cfi_def_cfa_offset 32",
    "pop r12",
    ".cfi_def_cfa_offset 24",
    "pop rbx",
    ".cfi_def_cfa_offset 16",
    "pop rbp",
    ".cfi_def_cfa_offset 8",
    "ret",
    ".cfi_endproc",
    ".size heisen_diverted, . - heisen_diverted",
    deliver = sym diverted,
);

extern "C" fn diverted() {
    shim::signal::deliver();
}

/// Makes a thread that is switched out take its signals when it is switched to: lays another frame below its own. So
/// the path of a scheduling point needs no test for signals.
pub fn divert(t: &Thread) {
    if S.kernel.get() {
        // It waits for the baton somewhere below its frame, and looks by itself.
        t.diverted.set(true);
        return;
    }
    let old = t.sp.get();
    let new = old - 8 * saved::WORDS;
    for word in 0..saved::WORDS {
        write(new + 8 * word, read::<usize>(old + 8 * word));
    }
    write(new + 8 * saved::RIP, heisen_diverted as *const () as usize);
    t.sp.set(new);
}

/// Puts the registers of the caller's frame, as they are now, into `out`; in the order of `Stop::registers`.
#[inline(always)]
pub fn registers(out: &[AtomicU64; 8]) {
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
