//! Calls that change the machine: they fail with `EPERM`, in the program and in its forked children.
//! `heisen_trace::machine` decides which calls these are.

use super::{detours, pid};
use crate::lifecycle::refused_calls::refuse;
use crate::platform::glibc;
use crate::platform::glibc::Real;
use crate::platform::sys;
use core::ffi::c_int;

/// Runs in place of a refused function.
extern "C" fn fails() -> c_int {
    glibc::result(sys::EPERM)
}

/// The function to call for a glibc function that makes this system call: the real one, or [`fails`].
fn instead(number: usize, request: usize, real: &Real) -> usize {
    let refused = pid::known() && refuse(number, [0, request, 0, 0, 0, 0]).is_some();
    if refused { fails as *const () as usize } else { real.address() }
}

/// Exports functions that are refused, with the number of their system call.
macro_rules! refused {
    ($($(#[$doc:meta])* $name:ident = $number:literal;)*) => {$(
        detours! {
            $(#[$doc])*
            fn $name = before::$name;
        }
    )*
        mod before {
            use super::*;
            $(pub extern "C" fn $name(_first: usize, second: usize) -> usize {
                static REAL: Real = Real::new($crate::platform::glibc::name_of!($name));
                instead($number, second, &REAL)
            })*
        }
    };
}

refused! {
    /// Refused with `EPERM`, which is noted. Not a scheduling point.
    reboot = 169;
    /// Refused with `EPERM`, which is noted. Not a scheduling point.
    sethostname = 170;
    /// Refused with `EPERM`, which is noted. Not a scheduling point.
    setdomainname = 171;
    /// Refused with `EPERM`, which is noted. Not a scheduling point.
    mount = 165;
    /// Refused with `EPERM`, which is noted. Not a scheduling point.
    umount = 166;
    /// Refused with `EPERM`, which is noted. Not a scheduling point.
    umount2 = 166;
    /// Refused with `EPERM`, which is noted. Not a scheduling point.
    swapon = 167;
    /// Refused with `EPERM`, which is noted. Not a scheduling point.
    swapoff = 168;
    /// Refused with `EPERM`, which is noted. Not a scheduling point.
    quotactl = 179;
    /// Refused with `EPERM`, which is noted. Not a scheduling point.
    acct = 163;
    /// Refused with `EPERM`, which is noted. Not a scheduling point.
    iopl = 172;
    /// Refused with `EPERM`, which is noted. Not a scheduling point.
    ioperm = 173;
    /// Refused with `EPERM`, which is noted. Not a scheduling point.
    klogctl = 103;
    /// Refused with `EPERM`, which is noted. Not a scheduling point.
    vhangup = 153;
    /// Refuses requests that take over a terminal, with `EPERM`, which is noted; makes other requests
    /// unchanged. Not a scheduling point.
    ioctl = 16;
}
