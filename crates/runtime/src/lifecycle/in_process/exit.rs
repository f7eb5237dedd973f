//! A short cut for the end of an execution.
//!
//! The C library ends a process with a system call. In a runner that call raises a signal, which costs as
//! much time as a small execution. So in a runner the `_exit` of the C library begins with a jump to
//! [`exits`].

use super::{calls, control, finished};
use crate::platform::glibc::Real;
use crate::platform::sys;
use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;

/// `jmp [rip]`: the address follows the instruction.
const JUMP: [u8; 6] = [0xff, 0x25, 0, 0, 0, 0];
const LENGTH: usize = JUMP.len() + size_of::<usize>();

/// Writes the jump, in this process only. If the code cannot be made writable, `_exit` remains unchanged.
pub fn shorten() {
    static REAL: Real = Real::new(c"_exit");
    let at = REAL.address();
    if at == 0 {
        return;
    }
    let first = at & !(super::snapshot::PAGE - 1);
    let size = (at + LENGTH).next_multiple_of(super::snapshot::PAGE) - first;
    if !sys::set_code_writable(first, size, true) {
        return;
    }
    // SAFETY: the function is longer than the jump. No thread executes it now, and later calls enter it at
    // the jump. Nothing calls the C library until its code is executable again.
    unsafe {
        (at as *mut [u8; JUMP.len()]).write_volatile(JUMP);
        ((at + JUMP.len()) as *mut usize).write_unaligned(exits as *const () as usize);
    }
    sys::set_code_writable(first, size, false);
}

/// Replaces `_exit` in a runner.
pub(super) extern "C" fn exits(status: c_int) -> ! {
    let c = control();
    if c.left.get() {
        sys::exit_group(status);
    }
    c.selector.store(calls::UNSEEN, Relaxed);
    finished(status)
}
