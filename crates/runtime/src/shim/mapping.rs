//! Mappings: makes the race check treat newly mapped memory as new. Accesses from before the mapping cannot
//! race with later ones.
//!
//! The functions make the system calls themselves, as glibc does: allocators call them very early.

use crate::memory::race::shadow;
use crate::platform::{glibc, sys};

/// Marks the memory of a mapping as new to the race check, if the system call succeeded.
fn begins(at: isize, bytes: usize) -> usize {
    const PAGE: usize = 4096;
    let at = glibc::kernel_result(at);
    if at != -1 {
        shadow::renew(at as usize, bytes.next_multiple_of(PAGE));
    }
    at as usize
}

/// Maps memory, which is new to the race check. Not a scheduling point.
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
    let args = [at, bytes, rights as usize, flags as usize, fd as usize, offset as usize];
    begins(sys::call(sys::SYS_MMAP, args), bytes)
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

/// Unmaps memory; whatever is mapped there later is new to the race check. Not a scheduling point.
///
/// # Safety
/// The program calls it with what the function of that name in glibc takes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn munmap(at: usize, bytes: usize) -> i32 {
    match glibc::kernel_result(sys::call(sys::SYS_MUNMAP, [at, bytes, 0, 0, 0, 0])) {
        0 => {
            begins(at as isize, bytes);
            0
        }
        error => error as i32,
    }
}

/// Moves or resizes a mapping. A new address, or the part that was added, is new to the race check. Not a
/// scheduling point.
///
/// # Safety
/// The program calls it with what the function of that name in glibc takes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mremap(at: usize, old: usize, bytes: usize, flags: i32, to: usize) -> usize {
    let got = sys::call(sys::SYS_MREMAP, [at, old, bytes, flags as usize, to, 0]);
    if got as usize == at {
        begins((at + old) as isize, bytes.saturating_sub(old));
        return at;
    }
    begins(got, bytes)
}
