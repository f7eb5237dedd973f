//! System calls that change the machine: those that `heisen_trace::machine` refuses fail with `EPERM`.

use crate::platform::sys;
use crate::sched::S;
use crate::wire_log;
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
        wire_log::note(note);
    }
}
