//! The end of an execution, by a shorter way: the C library ends a process with a system call, whose signal costs as much as all
//! that a small execution does. In a runner its `_exit` begins with a jump to here.

use super::{calls, control, finished};
use crate::platform::glibc::Real;
use crate::platform::sys;
use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;

/// `jmp [rip]`, with the address behind it.
const JUMP: [u8; 6] = [0xff, 0x25, 0, 0, 0, 0];
const LENGTH: usize = JUMP.len() + size_of::<usize>();

/// Puts the jump there, in this process only. Where that is not allowed, `_exit` stays as it is.
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
    // SAFETY: the function is longer than that, nobody is in it, and nobody comes by its other instructions any more. The C library
    // is not called before it is executable again.
    unsafe {
        (at as *mut [u8; JUMP.len()]).write_volatile(JUMP);
        ((at + JUMP.len()) as *mut usize).write_unaligned(exits as *const () as usize);
    }
    sys::set_code_writable(first, size, false);
}

/// `_exit`, in a runner.
pub(super) extern "C" fn exits(status: c_int) -> ! {
    let c = control();
    if c.left.get() {
        sys::exit_group(status);
    }
    c.selector.store(calls::UNSEEN, Relaxed);
    finished(status)
}
