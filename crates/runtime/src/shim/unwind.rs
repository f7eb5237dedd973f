//! Panics and exceptions: records their start, on the way to the unwinder.

use super::detours;
use crate::platform::glibc;
use crate::platform::glibc::Real;
use crate::sched::SCHED;
use crate::sched::pause;

static REAL: Real = Real::new(c"_Unwind_RaiseException");

/// The first word of an exception that Rust raised: "MOZ\0RUST".
const RUST: u64 = u64::from_ne_bytes(*b"MOZ\0RUST");

detours! {
    /// Records the start of a panic or an exception, for reports. Not a scheduling point.
    fn _Unwind_RaiseException = before;
}

extern "C" fn before(exception: *const u64) -> usize {
    if SCHED.active.get() && SCHED.running.get() {
        // SAFETY: the unwinder's interface: the class is the first word.
        pause::thrown(unsafe { *exception } == RUST);
    }
    match REAL.address() {
        // The unwinder was loaded privately, for example by a plug-in written in C++.
        0 => glibc::loaded(c"libgcc_s.so.1", c"_Unwind_RaiseException"),
        address => address,
    }
}
