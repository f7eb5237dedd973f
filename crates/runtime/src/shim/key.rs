//! Keys of thread-specific data: remembers their destructors and runs them when a thread ends. The values live
//! in the thread control block, where the real functions find them. The runtime must run the destructors
//! itself, because it cannot call glibc's own clean-up of a thread.

use super::shims;
use crate::platform::glibc::real;
use core::ffi::c_int;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const MAX_KEYS: usize = 1024;
/// PTHREAD_DESTRUCTOR_ITERATIONS.
const ROUNDS: usize = 4;

/// By key. Atomic, because in system mode the threads of a program create keys side by side.
static DESTRUCTORS: [AtomicUsize; MAX_KEYS] = [const { AtomicUsize::new(0) }; MAX_KEYS];

/// One more than the highest key that was ever created. The end of a thread looks at no key beyond it: threads
/// end often, and most programs have no keys.
static MADE: AtomicUsize = AtomicUsize::new(0);

/// Runs the destructors of the running thread's values. As POSIX requires, it repeats this while destructors
/// leave new values.
pub fn run_destructors() {
    for _ in 0..ROUNDS {
        let mut any = false;
        for (key, destructor) in DESTRUCTORS.iter().enumerate().take(MADE.load(Relaxed)) {
            let destructor = destructor.load(Relaxed);
            if destructor == 0 {
                continue;
            }
            let key = key as u32;
            let value = real!(pthread_getspecific, fn(key => u32) -> usize);
            if value == 0 {
                continue;
            }
            any = true;
            real!(pthread_setspecific, fn(key => u32, 0 => usize) -> c_int);
            // SAFETY: the program registered this function for values of this key.
            unsafe {
                let call: extern "C" fn(usize) = core::mem::transmute(destructor);
                call(value);
            }
        }
        if !any {
            return;
        }
    }
}

/// Remembers the destructor, which runs when a thread ends. It runs as part of that thread, so its operations
/// may be scheduling points. Creating the key is not a scheduling point.
///
/// # Safety
/// As glibc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_key_create(key: *mut u32, destructor: usize) -> c_int {
    // Destructors are remembered even before the process is controlled: libraries create keys in constructors
    // that run before this library's.
    let result = real!(pthread_key_create, fn(key => *mut u32, destructor => usize) -> c_int);
    remember(result, key, destructor);
    result
}

/// The C11 form of `pthread_key_create`.
///
/// # Safety
/// As glibc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tss_create(key: *mut u32, destructor: usize) -> c_int {
    let result = real!(tss_create, fn(key => *mut u32, destructor => usize) -> c_int);
    remember(result, key, destructor);
    result
}

/// Remembers the destructor of a key, if the key was created (`result` is 0).
fn remember(result: c_int, key: *const u32, destructor: usize) {
    if result == 0 {
        // SAFETY: the real function has just written it.
        let number = unsafe { *key } as usize;
        DESTRUCTORS[number].store(destructor, Relaxed);
        MADE.fetch_max(number + 1, Relaxed);
    }
}

shims! {
    /// Forgets the destructor. Not a scheduling point.
    fn pthread_key_delete(key: u32) -> c_int = pc {
        let result = real!(pthread_key_delete, fn(key => u32) -> c_int);
        if result == 0 {
            DESTRUCTORS[key as usize].store(0, Relaxed);
        }
        result
    }

    /// The C11 form of `pthread_key_delete`.
    fn tss_delete(key: u32) -> () = pc {
        if let Some(destructor) = DESTRUCTORS.get(key as usize) {
            destructor.store(0, Relaxed);
        }
        real!(tss_delete, fn(key => u32) -> ())
    }
}
