//! Semaphores and messages of System V, which belong to the kernel and may be shared with other processes. A call is tried
//! without waiting; one that has to wait does so aside (see `crate::blocking::kernel_calls`).

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

/// Makes a call: `now`, which does not wait, or, if it would have to, `later` aside.
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

/// Changes semaphores; with more changes than the kernel takes, it is asked for the error.
fn change(set: c_int, changes: *const Change, count: usize, time: usize, pc: usize) -> c_int {
    let later = [set as usize, changes as usize, count, time, 0, 0];
    if changes.is_null() || count == 0 || count > MOST {
        return glibc::kernel_result(sys::call(sys::SYS_SEMTIMEDOP, later)) as c_int;
    }
    change_some(later, pc)
}

/// Apart, as it needs room for the changes.
#[inline(never)]
fn change_some(later: [usize; 6], pc: usize) -> c_int {
    // SAFETY: the program passes so many changes.
    let asked = unsafe { core::slice::from_raw_parts(later[1] as *const Change, later[2]) };
    let mut own = [Change { number: 0, by: 0, flags: 0 }; MOST];
    for (own, asked) in own.iter_mut().zip(asked) {
        *own = Change { flags: asked.flags | IPC_NOWAIT as i16, ..*asked };
    }
    let mut now = later;
    // With a change that is not to wait, the whole call does not, and nothing is left to do.
    if asked.iter().all(|change| change.flags & IPC_NOWAIT as i16 == 0) {
        now[1] = own.as_ptr() as usize;
    }
    call(sys::SYS_SEMTIMEDOP, now, later, pc) as c_int
}

shims! {
    /// A scheduling point; waits for the semaphores aside, so that other threads go on.
    fn semop(set: c_int, changes: *const Change, count: usize) -> c_int = pc { change(set, changes, count, 0, pc) }

    /// As `semop`; the time is the kernel's, not the virtual one.
    fn semtimedop(set: c_int, changes: *const Change, count: usize, time: usize) -> c_int = pc {
        change(set, changes, count, time, pc)
    }

    /// A scheduling point; waits aside until there is room for the message.
    fn msgsnd(queue: c_int, message: usize, length: usize, flags: c_int) -> c_int = pc {
        let args = |flags: c_int| [queue as usize, message, length, flags as usize, 0, 0];
        call(sys::SYS_MSGSND, args(flags | IPC_NOWAIT), args(flags), pc) as c_int
    }

    /// A scheduling point; waits aside until there is a message of the kind.
    fn msgrcv(queue: c_int, message: usize, length: usize, kind: c_long, flags: c_int) -> isize = pc {
        let args = |flags: c_int| [queue as usize, message, length, kind as usize, flags as usize, 0];
        call(sys::SYS_MSGRCV, args(flags | IPC_NOWAIT), args(flags), pc)
    }
}
