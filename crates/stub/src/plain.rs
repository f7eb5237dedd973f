//! The stub's own functions for all callbacks except atomics.

use core::arch::asm;
use core::ffi::{c_int, c_void};

/// Ignores the callback. Some callers expect a result: 0 means that there is nothing.
pub extern "C" fn nothing() -> usize {
    0
}

/// A single instruction, because the program may lack its own `memcpy`: the compiler replaced all calls of
/// it.
pub unsafe extern "C" fn memcpy(to: *mut c_void, from: *const c_void, bytes: usize) -> *mut c_void {
    // SAFETY: the caller promises both ranges.
    unsafe {
        asm!(
            "rep movsb",
            inout("rdi") to => _,
            inout("rsi") from => _,
            inout("rcx") bytes => _,
            options(nostack, preserves_flags)
        );
    }
    to
}

pub unsafe extern "C" fn memmove(to: *mut c_void, from: *const c_void, bytes: usize) -> *mut c_void {
    // This also covers a destination before the source.
    if (to as usize).wrapping_sub(from as usize) >= bytes {
        // SAFETY: going upwards, nothing is overwritten that is still to be read.
        return unsafe { memcpy(to, from, bytes) };
    }
    // SAFETY: downwards, likewise; there is at least one byte. The direction is set back as the ABI wants it.
    unsafe {
        asm!(
            "std",
            "rep movsb",
            "cld",
            inout("rdi") to.byte_add(bytes - 1) => _,
            inout("rsi") from.byte_add(bytes - 1) => _,
            inout("rcx") bytes => _,
            options(nostack)
        );
    }
    to
}

pub unsafe extern "C" fn memset(to: *mut c_void, byte: c_int, bytes: usize) -> *mut c_void {
    // SAFETY: the caller promises the range.
    unsafe {
        asm!(
            "rep stosb",
            inout("rdi") to => _,
            inout("rcx") bytes => _,
            in("al") byte as u8,
            options(nostack, preserves_flags)
        );
    }
    to
}
