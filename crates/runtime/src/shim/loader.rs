//! Looking functions up at run time. A library that asks for the next `pthread_create` after itself, as jemalloc does to
//! start its helpers, would get glibc's, pass this library by and make a thread that nobody schedules.

use super::detours;
use crate::platform::glibc;
use crate::platform::glibc::RTLD_NEXT;
use crate::sched::S;
use core::ffi::{CStr, c_char, c_void};

/// Families of functions that are found here by whoever asks for them.
const FAMILIES: [&[u8]; 2] = [b"pthread_", b"sem_"];

detours! {
    /// Threads and semaphores are found in Heisen's runtime, also by libraries that ask for what comes after themselves.
    fn dlsym = before;
}

/// The function to go on with: glibc's, or one that gives ours.
extern "C" fn before(handle: *mut c_void, name: *const c_char) -> usize {
    super::alloc::look_up();
    if S.active.get() && handle == RTLD_NEXT && !name.is_null() {
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
