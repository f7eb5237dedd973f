//! Diverted threads: they take their signals first when they are switched to. This builds on the frame that
//! the switch leaves.

use super::block::{read, write};
use crate::sched::{SCHED, Thread, hooks};
use core::arch::global_asm;
use heisen_wire::saved;

unsafe extern "C" {
    fn heisen_diverted();
}

global_asm!(
    // Where a diverted thread continues: it takes its signals, then does the rest of `heisen_switch`. The
    // stack pointer is at the thread's previous frame, which the unwinding information describes.
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
    hooks::deliver();
}

/// Makes a thread that is switched out take its signals when it is switched to, by another frame below its
/// own. So the path of a scheduling point needs no test for signals.
pub fn divert(t: &Thread) {
    if SCHED.kernel.get() {
        // The thread waits for the baton somewhere below its frame, and checks this flag itself.
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
