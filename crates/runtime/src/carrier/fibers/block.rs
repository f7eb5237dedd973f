//! The control block that glibc has for each thread, at its `fs` base, which is also its `pthread_t`: the list of all of
//! them, and the thread ids in them.

use crate::platform::glibc::tcb;
use crate::platform::sys;
use crate::sched::{S, Thread, thread};
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

/// Adds a control block to glibc's list of threads, after the main thread's: a child of `fork` takes its own off there,
/// and `dlopen` goes through it to initialise thread-local variables of fixed place in threads that exist already.
pub(super) fn add_to_list(fs: usize) {
    let (link, main) = (fs + tcb::LIST, thread(0).fs.get() + tcb::LIST);
    let next = read::<usize>(main);
    write(link, next);
    write(link + 8, main);
    write(next + 8, link);
    write(main, link);
}

/// Takes a control block off that list.
pub fn take_off_list(fs: usize) {
    let link = fs + tcb::LIST;
    let (next, previous) = (read::<usize>(link), read::<usize>(link + 8));
    write(previous, next);
    write(next + 8, previous);
}

/// The process id that a mutex recorded, as a thread's number.
pub fn thread_of_tid(tid: i32) -> Option<usize> {
    usize::try_from(tid.wrapping_sub(TID_BASE)).ok().filter(|&n| n < S.count.get())
}

/// Calls `ask` with the id of the kernel thread in the control block of a thread, for functions that hand it on to the
/// kernel.
pub fn with_kernel_id<R>(handle: usize, ask: impl FnOnce() -> R) -> R {
    if S.kernel.get() {
        return ask();
    }
    let id = read::<i32>(handle + tcb::TID);
    write(handle + tcb::TID, sys::gettid());
    let answer = ask();
    write(handle + tcb::TID, id);
    answer
}

/// Puts the id of the kernel thread into the running thread's control block, where glibc keeps it.
pub fn keep_kernel_id() {
    write(fs_base() + tcb::TID, sys::gettid());
}

/// Where glibc keeps the id of the kernel thread in a control block.
pub fn kernel_id_at(t: &Thread) -> usize {
    t.fs.get() + tcb::TID
}
