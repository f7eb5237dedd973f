//! Looking up functions at run time: makes `dlsym` find the runtime's thread functions. A library may ask for
//! the next `pthread_create` after itself, as jemalloc does to start its helper threads. Without this it would
//! get glibc's, and create a thread that the scheduler does not control.

use super::detours;
use crate::memory::symbolic;
use crate::platform::glibc;
use crate::platform::glibc::RTLD_NEXT;
use crate::sched::SCHED;
use core::ffi::{CStr, c_char, c_void};

/// Prefixes of the functions that are always found in this library.
const FAMILIES: [&[u8]; 2] = [b"pthread_", b"sem_"];

detours! {
    /// Finds functions for threads and semaphores in Heisen's runtime, also for libraries that ask for the next
    /// definition after themselves. Not a scheduling point.
    fn dlsym = before;
}

/// The function to continue with: glibc's `dlsym`, or one that returns the runtime's function.
extern "C" fn before(handle: *mut c_void, name: *const c_char) -> usize {
    super::alloc::look_up();
    symbolic::looks_up(name);
    if SCHED.active.get() && handle == RTLD_NEXT && !name.is_null() {
        // SAFETY: the program passes a C string.
        let name = unsafe { CStr::from_ptr(name) };
        let wanted = FAMILIES.iter().any(|family| name.to_bytes().starts_with(family));
        if wanted && glibc::own_symbol(name) != 0 {
            return ours as *const () as usize;
        }
    }
    glibc::real_dlsym()
}

extern "C" fn ours(_handle: *mut c_void, name: *const c_char) -> usize {
    // SAFETY: as above.
    glibc::own_symbol(unsafe { CStr::from_ptr(name) })
}
