//! Refuses system calls that change the machine: the calls that `heisen_trace::machine` refuses fail with
//! `EPERM`.

use crate::platform::sys;
use crate::sched::SCHED;
use crate::wire_log;
use core::ffi::c_int;
use heisen_trace::Note;
use heisen_trace::machine::{self, Control, REFUSED_REQUESTS};

/// For a system call instruction of the program: an error number if the call must not reach the kernel. This
/// also refuses calls that the functions of the C library make virtual. The seccomp filter does the same in
/// processes where only the kernel sees the instruction.
pub fn refuse_instruction(number: usize, args: [usize; 6]) -> Option<c_int> {
    match machine::control(number) {
        Control::Virtual => Some(sys::EPERM),
        _ => refuse(number, args),
    }
}

/// For any system call: an error number if the machine table refuses it. A refusal is noted for the verdict.
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

/// Notes for the verdict that a call was refused, if this process is controlled.
pub fn noted(note: Note) {
    if SCHED.active.get() {
        wire_log::note(note);
    }
}
