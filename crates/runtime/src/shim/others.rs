//! Decides which processes belong to the program. Signals, priorities and similar calls reach only those: never
//! the shell that started the check, the zygote or any other process of the machine.
//!
//! All processes of an execution descend from the zygote. The zygote adopts processes whose parents have ended,
//! and runs one execution at a time. Ids in this file are the kernel's.

use super::pid;
use crate::lifecycle::refused_calls;
use crate::platform::{glibc, sys};
use crate::wire_log;
use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;
use heisen_trace::Note;

/// The zygote's process id.
fn parked() -> i32 {
    wire_log::wire().zygote.load(Relaxed) as i32
}

/// Whether a process is the program or descends from it.
fn is_own(mut id: i32) -> bool {
    let parked = parked();
    if id == parked || pid::is_known(id) {
        return id != parked;
    }
    // Chains of parents are never longer.
    for _ in 0..1000 {
        match sys::parent_of(id) {
            Some(parent) if parent == parked => return true,
            Some(parent) if parent > 1 => id = parent,
            _ => break,
        }
    }
    false
}

fn refused() -> Option<c_int> {
    refused_calls::noted(Note::OtherProcess);
    Some(sys::EPERM)
}

/// The program wants to change this process (0: itself). Returns an error number if it may not. Invalid ids,
/// and ids of processes that do not exist, are left to the kernel.
fn refuse(id: i32) -> Option<c_int> {
    if id <= 0 || is_own(id) || !sys::exists(id) { None } else { refused() }
}

/// The same for a process group, which belongs to the program if its leader does.
fn refuse_group(group: i32) -> Option<c_int> {
    if is_own(group) || !sys::exists(group.wrapping_neg()) { None } else { refused() }
}

/// The process group of the execution. It starts in the zygote's group, and moves into a group of its own here.
fn own_group() -> i32 {
    if sys::group_of(0) == sys::group_of(parked()) {
        sys::setpgid_self();
    }
    sys::group_of(0)
}

/// The process, or as a negative number the process group, that a signal to `id` reaches; or an error number.
pub fn target(id: i32, signal: c_int) -> Result<i32, c_int> {
    let refusal = match id {
        // Signal 0 only asks whether the process exists.
        _ if signal == 0 => None,
        -1 => refused(),
        0 => return Ok(-own_group()),
        ..-1 if [sys::group_of(parked()), sys::group_of(0)].contains(&id.wrapping_neg()) => {
            return Ok(-own_group());
        }
        ..-1 => refuse_group(id.wrapping_neg()),
        _ => refuse(id),
    };
    refusal.map_or(Ok(id), Err)
}

/// Whether a signal with this [`target`] reaches every process of the program's group.
pub fn is_own_group(target: i32) -> bool {
    target < -1 && -target == sys::group_of(0)
}

/// For a system call that changes a process: an error number if that process does not belong to the program.
pub fn refuse_call(number: usize, args: [usize; 6]) -> Option<c_int> {
    const PROCESS: usize = 0;
    const GROUP: usize = 1;
    const USER: usize = 2;
    let (first, second) = (args[0] as c_int, args[1] as c_int);
    match number {
        sys::SYS_TKILL | sys::SYS_RT_SIGQUEUEINFO if second != 0 => refuse(first),
        sys::SYS_TGKILL | sys::SYS_RT_TGSIGQUEUEINFO if args[2] != 0 => refuse(first),
        sys::SYS_SETPRIORITY => match args[0] {
            PROCESS => refuse(second),
            GROUP if [own_group(), 0].contains(&second) => None,
            GROUP => refuse_group(second),
            USER => refused(),
            _ => None,
        },
        sys::SYS_IOPRIO_SET => {
            refuse_call(sys::SYS_SETPRIORITY, [args[0].wrapping_sub(1), args[1], args[2], 0, 0, 0])
        }
        sys::SYS_PIDFD_SEND_SIGNAL if second != 0 => sys::process_of_descriptor(first).and_then(refuse),
        sys::SYS_SCHED_SETPARAM
        | sys::SYS_SCHED_SETSCHEDULER
        | sys::SYS_SCHED_SETAFFINITY
        | sys::SYS_SCHED_SETATTR => refuse(first),
        sys::SYS_PRLIMIT64 if args[2] != 0 => refuse(first),
        sys::SYS_PROCESS_VM_WRITEV => refuse(first),
        _ => None,
    }
}

/// As [`refuse_call`], for functions of the C library: returns whether the call is refused, and sets `errno`.
pub fn refuses(number: usize, [a, b, c]: [usize; 3]) -> bool {
    refuse_call(number, [a, b, c, 0, 0, 0]).is_some_and(|error| glibc::result(error) != 0)
}
