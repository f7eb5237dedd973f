//! Control blocks: glibc has one for each thread, at its `fs` base, which is also its `pthread_t`. This file
//! handles the list of all control blocks and the thread ids in them.

use crate::platform::glibc::tcb;
use crate::platform::sys;
use crate::sched::{SCHED, Thread, thread};
use core::arch::asm;
use heisen_wire::TID_BASE;

pub(super) fn read<T: Copy>(at: usize) -> T {
    // SAFETY: callers pass addresses inside a thread control block.
    unsafe { *(at as *const T) }
}

pub(super) fn write<T>(at: usize, value: T) {
    // SAFETY: callers pass addresses inside a thread control block or a fresh stack.
    unsafe { *(at as *mut T) = value };
}

pub(super) fn fs_base() -> usize {
    let fs;
    // SAFETY: word 0 of the thread control block points to itself.
    unsafe { asm!("mov {}, fs:[0]", out(reg) fs, options(nostack, readonly, preserves_flags)) };
    fs
}

/// Whether a control block is in glibc's list of threads, a ring of two-word links (next, previous).
pub(super) fn is_in_list(fs: usize) -> bool {
    let link = fs + tcb::LIST;
    let (next, previous) = (read::<usize>(link), read::<usize>(link + 8));
    next != 0 && previous != 0 && read::<usize>(next + 8) == link && read::<usize>(previous) == link
}

/// Adds a control block to glibc's list of threads, after that of the main thread. A child of `fork` removes
/// its own from that list. `dlopen` goes through the list to initialise static thread-local variables in
/// existing threads.
pub(super) fn add_to_list(fs: usize) {
    let (link, main) = (fs + tcb::LIST, thread(0).fs.get() + tcb::LIST);
    let next = read::<usize>(main);
    write(link, next);
    write(link + 8, main);
    write(next + 8, link);
    write(main, link);
}

/// Removes a control block from glibc's list of threads.
pub fn take_off_list(fs: usize) {
    let link = fs + tcb::LIST;
    let (next, previous) = (read::<usize>(link), read::<usize>(link + 8));
    write(previous, next);
    write(next + 8, previous);
}

/// The number of the thread with this thread id, as a mutex records it.
pub fn thread_of_tid(tid: i32) -> Option<usize> {
    usize::try_from(tid.wrapping_sub(TID_BASE)).ok().filter(|&n| n < SCHED.count.get())
}

/// Calls `ask` while the thread's control block has the id of the kernel thread, for functions that pass the
/// id to the kernel.
pub fn with_kernel_id<R>(handle: usize, ask: impl FnOnce() -> R) -> R {
    if SCHED.kernel.get() {
        return ask();
    }
    let id = read::<i32>(handle + tcb::TID);
    write(handle + tcb::TID, sys::gettid());
    let answer = ask();
    write(handle + tcb::TID, id);
    answer
}

/// Writes the id of the kernel thread into the running thread's control block, where glibc expects it.
pub fn keep_kernel_id() {
    write(fs_base() + tcb::TID, sys::gettid());
}

/// The address of the kernel thread's id in a thread's control block.
pub fn kernel_id_at(t: &Thread) -> usize {
    t.fs.get() + tcb::TID
}
