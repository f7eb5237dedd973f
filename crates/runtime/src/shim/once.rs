//! `pthread_once`. The real function runs the initialiser, since it alone can undo a half-done one when an exception
//! passes through it; here a thread only waits until nobody is in the middle of it. Nobody tells us when that is over
//! (an exception leaves the real function without passing this code), so the scheduler looks again at each step while
//! anyone is about to call it.

use crate::glibc::Real;
use crate::sched::{self, S};
use core::arch::naked_asm;
use heisen_trace::Op;

static REAL: Real = Real::new(c"pthread_once");

/// glibc sets this bit of the control word while the initialiser runs.
const IN_PROGRESS: i32 = 1;

fn in_progress(control: usize) -> bool {
    // SAFETY: the program passes a `pthread_once_t`.
    unsafe { *(control as *const i32) & IN_PROGRESS != 0 }
}

/// `pthread_once`: first [`before`], then the real one, in the place of this function, so that an exception finds no
/// frame of ours on its way.
///
/// # Safety
/// As glibc's.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn pthread_once() {
    naked_asm!(
        ".cfi_startproc",
        "push rdi",
        ".cfi_adjust_cfa_offset 8",
        "push rsi",
        ".cfi_adjust_cfa_offset 8",
        "mov rsi, [rsp + 16]",
        "sub rsp, 8",
        ".cfi_adjust_cfa_offset 8",
        "call {before}",
        "add rsp, 8",
        ".cfi_adjust_cfa_offset -8",
        "pop rsi",
        ".cfi_adjust_cfa_offset -8",
        "pop rdi",
        ".cfi_adjust_cfa_offset -8",
        "jmp rax",
        ".cfi_endproc",
        before = sym before,
    )
}

/// Waits for its turn; the address of the real function.
extern "C" fn before(control: usize, pc: usize) -> usize {
    if S.active.get() {
        S.once_waiters.set(S.once_waiters.get() + 1);
        sched::wait_for(Op::Once, control, pc, !in_progress(control), u64::MAX);
        S.once_waiters.set(S.once_waiters.get() - 1);
    }
    REAL.address()
}

/// Enables the waiters of every `pthread_once` that is no longer in progress, and disables those of one that is.
#[cold]
pub fn recheck() {
    for (number, t) in sched::threads() {
        let control = sched::needs(number);
        if t.op() == Op::Once && control != 0 {
            if in_progress(control) { sched::taken(control) } else { sched::freed(control) }
        }
    }
}
