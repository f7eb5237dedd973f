//! Lets each execution read a standard input file from the same position.
//!
//! The engine gives the program a file as standard input. Forked processes share the position in an open
//! file. So each execution opens the file anew and reads from where the zygote was parked, whatever other
//! executions have read.

use crate::platform::sys;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

/// The inode number of the file plus 1; 0 if there is no such file. While the file is open, no other file of
/// its file system has this number.
static FILE: AtomicU64 = AtomicU64::new(0);

/// Records which file standard input is.
pub fn init() {
    FILE.store(sys::file_number(0).map_or(0, |number| number.wrapping_add(1)), Relaxed);
}

/// Called in an execution that was just forked: opens the file anew, unless the program has replaced standard
/// input. Returns false if the file cannot be opened.
pub fn renew() -> bool {
    let file = FILE.load(Relaxed);
    if file == 0 || sys::file_number(0).map(|number| number.wrapping_add(1)) != Some(file) {
        return true;
    }
    sys::open_anew(0, c"/proc/self/fd/0")
}

/// Whether standard input is such a file.
pub fn is_renewed() -> bool {
    FILE.load(Relaxed) != 0
}
