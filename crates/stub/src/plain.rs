//! The stub's own answers to all but atomics.

use core::ffi::{c_int, c_void};

/// Ignores the callback. Some of those that are only told something expect a result: 0 says that there is nothing.
pub extern "C" fn nothing() -> usize {
    0
}

unsafe extern "C" {
    /// The program's.
    pub fn memcpy(to: *mut c_void, from: *const c_void, bytes: usize) -> *mut c_void;
    /// The program's.
    pub fn memmove(to: *mut c_void, from: *const c_void, bytes: usize) -> *mut c_void;
    /// The program's.
    pub fn memset(to: *mut c_void, byte: c_int, bytes: usize) -> *mut c_void;
}
