//! System V semaphores and messages. They belong to the kernel and may be shared with other processes. A call
//! is first tried without waiting. If it has to wait, it is made on a kernel thread of its own (see
//! `crate::blocking::kernel_calls`).

use crate::blocking::descriptors;
use crate::blocking::kernel_calls;
use crate::platform::glibc;
use crate::platform::sys;
use crate::sched;
use crate::shim::shims;
use core::ffi::{c_int, c_long};
use heisen_trace::Op;

const IPC_NOWAIT: c_int = 0o4000;
const ENOMSG: i32 = 42;
/// The kernel's usual limit of operations in one call.
const MOST: usize = 500;

/// `struct sembuf`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Change {
    number: u16,
    by: i16,
    flags: i16,
}

/// Makes the call `now`, which does not wait. If it would have to, makes the call `later` on a kernel thread of
/// its own.
fn call(number: usize, now: [usize; 6], later: [usize; 6], pc: usize) -> isize {
    sched::point(Op::SystemV, now[0], pc);
    descriptors::says(descriptors::NOBODY);
    let mut got = sys::call(number, now);
    if now != later && matches!(-got as i32, sys::EAGAIN | ENOMSG) {
        got = kernel_calls::call(Op::SystemV, now[0], number, later, pc);
    }
    descriptors::hears(descriptors::NOBODY);
    glibc::kernel_result(got)
}

/// Changes semaphores. Invalid requests go to the kernel, which returns the error.
fn change(set: c_int, changes: *const Change, count: usize, time: usize, pc: usize) -> c_int {
    let later = [set as usize, changes as usize, count, time, 0, 0];
    if changes.is_null() || count == 0 || count > MOST {
        return glibc::kernel_result(sys::call(sys::SYS_SEMTIMEDOP, later)) as c_int;
    }
    change_some(later, pc)
}

/// A function of its own, because it needs stack for the changes.
#[inline(never)]
fn change_some(later: [usize; 6], pc: usize) -> c_int {
    // SAFETY: the program passes so many changes.
    let asked = unsafe { core::slice::from_raw_parts(later[1] as *const Change, later[2]) };
    let mut own = [Change { number: 0, by: 0, flags: 0 }; MOST];
    for (own, asked) in own.iter_mut().zip(asked) {
        *own = Change { flags: asked.flags | IPC_NOWAIT as i16, ..*asked };
    }
    let mut now = later;
    // One change with IPC_NOWAIT makes the call non-blocking; then `now` is already the call.
    if asked.iter().all(|change| change.flags & IPC_NOWAIT as i16 == 0) {
        now[1] = own.as_ptr() as usize;
    }
    call(sys::SYS_SEMTIMEDOP, now, later, pc) as c_int
}

shims! {
    /// Waits for the semaphores while other threads run. A scheduling point.
    fn semop(set: c_int, changes: *const Change, count: usize) -> c_int = pc { change(set, changes, count, 0, pc) }

    /// As `semop`; the time-out is real time, not virtual time.
    fn semtimedop(set: c_int, changes: *const Change, count: usize, time: usize) -> c_int = pc {
        change(set, changes, count, time, pc)
    }

    /// Waits until there is room for the message while other threads run. A scheduling point.
    fn msgsnd(queue: c_int, message: usize, length: usize, flags: c_int) -> c_int = pc {
        let args = |flags: c_int| [queue as usize, message, length, flags as usize, 0, 0];
        call(sys::SYS_MSGSND, args(flags | IPC_NOWAIT), args(flags), pc) as c_int
    }

    /// Waits for a message of this type while other threads run. A scheduling point.
    fn msgrcv(queue: c_int, message: usize, length: usize, kind: c_long, flags: c_int) -> isize = pc {
        let args = |flags: c_int| [queue as usize, message, length, kind as usize, flags as usize, 0];
        call(sys::SYS_MSGRCV, args(flags | IPC_NOWAIT), args(flags), pc)
    }
}
