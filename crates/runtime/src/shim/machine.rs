//! Calls that change the machine: those that `heisen_trace::machine` refuses fail with `EPERM`, in the program and in its forked
//! children.

use super::{detours, pid};
use crate::lifecycle::report;
use crate::platform::glibc;
use crate::platform::glibc::Real;
use crate::platform::sys;
use crate::sched::S;
use core::ffi::c_int;
use heisen_trace::Note;
use heisen_trace::machine::{self, Control, REFUSED_REQUESTS};

/// A system call instruction of the program: an error number if it does not reach the kernel. What the functions of the C library
/// make virtual is refused here, as it is where nobody sees the instruction but the kernel.
pub fn refuse_instruction(number: usize, args: [usize; 6]) -> Option<c_int> {
    match machine::control(number) {
        Control::Virtual => Some(sys::EPERM),
        _ => refuse(number, args),
    }
}

/// A system call: an error number if it is refused whatever it is for, which is noted.
pub fn refuse(number: usize, args: [usize; 6]) -> Option<c_int> {
    let note = match machine::control(number) {
        Control::Refused(note) => note,
        _ if number == machine::IOCTL && REFUSED_REQUESTS.contains(&args[1]) => Note::Devices,
        _ if number == machine::KILL && args[0] as c_int == machine::EVERYONE && args[1] != 0 => {
            Note::OtherProcess
        }
        _ => return None,
    };
    noted(note);
    Some(sys::EPERM)
}

/// Something was refused, which the verdict says if this process is controlled.
pub fn noted(note: Note) {
    if S.active.get() {
        report::note(note);
    }
}

/// What is called instead of a function that is refused.
extern "C" fn fails() -> c_int {
    glibc::result(sys::EPERM)
}

/// What is called for a function of the C library that makes this system call.
fn instead(number: usize, request: usize, real: &Real) -> usize {
    let refused = pid::known() && refuse(number, [0, request, 0, 0, 0, 0]).is_some();
    if refused { fails as *const () as usize } else { real.address() }
}

/// Functions that are refused, with the number of their system call.
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
    /// Refused with `EPERM`, which the verdict says; not a scheduling point.
    reboot = 169;
    /// Refused with `EPERM`, which the verdict says; not a scheduling point.
    sethostname = 170;
    /// Refused with `EPERM`, which the verdict says; not a scheduling point.
    setdomainname = 171;
    /// Refused with `EPERM`, which the verdict says; not a scheduling point.
    mount = 165;
    /// Refused with `EPERM`, which the verdict says; not a scheduling point.
    umount = 166;
    /// Refused with `EPERM`, which the verdict says; not a scheduling point.
    umount2 = 166;
    /// Refused with `EPERM`, which the verdict says; not a scheduling point.
    swapon = 167;
    /// Refused with `EPERM`, which the verdict says; not a scheduling point.
    swapoff = 168;
    /// Refused with `EPERM`, which the verdict says; not a scheduling point.
    quotactl = 179;
    /// Refused with `EPERM`, which the verdict says; not a scheduling point.
    acct = 163;
    /// Refused with `EPERM`, which the verdict says; not a scheduling point.
    iopl = 172;
    /// Refused with `EPERM`, which the verdict says; not a scheduling point.
    ioperm = 173;
    /// Refused with `EPERM`, which the verdict says; not a scheduling point.
    klogctl = 103;
    /// Refused with `EPERM`, which the verdict says; not a scheduling point.
    vhangup = 153;
    /// Requests that take over a terminal are refused with `EPERM`, which the verdict says; others are made as they are. Not a
    /// scheduling point.
    ioctl = 16;
}
