//! Mappings: makes the race check treat newly mapped memory as new. Accesses from before the mapping cannot
//! race with later ones. Unmapping or protecting memory conflicts with accesses to it.
//!
//! The functions make the system calls themselves, as glibc does: allocators call them very early.

use crate::memory::ending;
use crate::memory::race::shadow;
use crate::platform::registers::caller;
use crate::platform::{glibc, sys};
use crate::sched::SCHED;
use crate::wire_log;
use heisen_trace::Op;

const PAGE: usize = 4096;
const PROT_READ: i32 = 1;
const PROT_WRITE: i32 = 2;
const MAP_FIXED: i32 = 0x10;
const MAP_FIXED_NOREPLACE: i32 = 0x10_0000;
const MREMAP_DONTUNMAP: i32 = 4;

/// Makes a system call that may end memory. Before it, the log gets the value of the last write.
fn call(number: usize, args: [usize; 6]) -> isize {
    if SCHED.active.get() {
        wire_log::settle();
    }
    sys::call(number, args)
}

/// The running thread has unmapped this memory.
fn ends(at: usize, bytes: usize, pc: usize) {
    if SCHED.active.get() && bytes > 0 {
        let bytes = bytes.next_multiple_of(PAGE);
        ending::log(Op::Unmap, at, bytes, pc);
        ending::end(at, bytes, pc);
    }
}

/// Marks the memory of a mapping as new to the race check, if the system call succeeded.
fn begins(at: isize, bytes: usize) -> usize {
    let at = glibc::kernel_result(at);
    if at != -1 {
        shadow::renew(at as usize, bytes.next_multiple_of(PAGE));
    }
    at as usize
}

/// Maps memory, which is new to the race check. With `MAP_FIXED`, unmaps what was there, as `munmap` does. Not a
/// scheduling point.
///
/// # Safety
/// The program calls it with what the function of that name in glibc takes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap(
    at: usize,
    bytes: usize,
    rights: i32,
    flags: i32,
    fd: i32,
    offset: i64,
) -> usize {
    let pc = caller!();
    let args = [at, bytes, rights as usize, flags as usize, fd as usize, offset as usize];
    let got = call(sys::SYS_MMAP, args);
    if flags & (MAP_FIXED | MAP_FIXED_NOREPLACE) == MAP_FIXED && got as usize == at {
        ends(at, bytes, pc);
    }
    begins(got, bytes)
}

/// As `mmap`.
///
/// # Safety
/// The program calls it with what the function of that name in glibc takes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap64(
    at: usize,
    bytes: usize,
    rights: i32,
    flags: i32,
    fd: i32,
    offset: i64,
) -> usize {
    // SAFETY: the same function.
    unsafe { mmap(at, bytes, rights, flags, fd, offset) }
}

/// Unmaps memory. An access to it that nothing orders becomes a scheduling point. Whatever is mapped there later is
/// new to the race check. Not a scheduling point.
///
/// # Safety
/// The program calls it with what the function of that name in glibc takes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn munmap(at: usize, bytes: usize) -> i32 {
    let pc = caller!();
    match glibc::kernel_result(call(sys::SYS_MUNMAP, [at, bytes, 0, 0, 0, 0])) {
        0 => {
            ends(at, bytes, pc);
            begins(at as isize, bytes);
            0
        }
        error => error as i32,
    }
}

/// Changes what the program may do with memory. An access that this forbids, and that nothing orders, becomes a
/// scheduling point. Not a scheduling point.
///
/// # Safety
/// The program calls it with what the function of that name in glibc takes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mprotect(at: usize, bytes: usize, rights: i32) -> i32 {
    let pc = caller!();
    let done = glibc::kernel_result(call(sys::SYS_MPROTECT, [at, bytes, rights as usize, 0, 0, 0])) as i32;
    if done == 0 && rights & PROT_WRITE == 0 && SCHED.active.get() {
        let bytes = bytes.next_multiple_of(PAGE);
        ending::log(Op::Protect, at, bytes, pc);
        ending::conflict(at, bytes, rights & PROT_READ == 0, pc);
    }
    done
}

/// Moves or resizes a mapping. A new address, or the part that was added, is new to the race check. The memory that
/// is no longer mapped is unmapped as by `munmap`. Not a scheduling point.
///
/// # Safety
/// The program calls it with what the function of that name in glibc takes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mremap(at: usize, old: usize, bytes: usize, flags: i32, to: usize) -> usize {
    let pc = caller!();
    let got = call(sys::SYS_MREMAP, [at, old, bytes, flags as usize, to, 0]);
    if got as usize == at {
        let [whole, left] = [old, bytes].map(|bytes| bytes.next_multiple_of(PAGE));
        ends(at + left, whole.saturating_sub(left), pc);
        begins((at + old) as isize, bytes.saturating_sub(old));
        return at;
    }
    let new = begins(got, bytes);
    if new != usize::MAX && flags & MREMAP_DONTUNMAP == 0 {
        ends(at, old, pc);
    }
    new
}
