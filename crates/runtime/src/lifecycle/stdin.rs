//! Standard input that the engine has given to the program, as a file. Forked processes share where they are in a file;
//! each execution opens it anew, so that it reads from where the parked program was, whatever others have read.

use crate::platform::sys;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

/// Which file it is, plus 1; 0 if there is none. No other file has the number of this one while it is open.
static FILE: AtomicU64 = AtomicU64::new(0);

/// Remembers which file it is.
pub fn init() {
    FILE.store(sys::file_number(0).map_or(0, |number| number.wrapping_add(1)), Relaxed);
}

/// In an execution that was just forked: opens the file anew, unless the program has put something else in its place.
/// Whether that was possible.
pub fn renew() -> bool {
    let file = FILE.load(Relaxed);
    if file == 0 || sys::file_number(0).map(|number| number.wrapping_add(1)) != Some(file) {
        return true;
    }
    sys::open_anew(0, c"/proc/self/fd/0")
}

/// Whether there is such a file.
pub fn is_renewed() -> bool {
    FILE.load(Relaxed) != 0
}
