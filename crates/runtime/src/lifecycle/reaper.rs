//! The reaper: ends every process of a check, however the check ends.
//!
//! The process that the engine starts forks before the program has done anything. The child becomes the
//! program; the parent becomes the reaper. The reaper adopts every descendant that loses its parent, such as
//! a daemon, also one in another session or process group, or one that has called `exec`.
//!
//! The reaper acts when the engine asks for it, when the engine thread that started it has ended, or when the
//! parked program ends. It then kills all its descendants and ends with the status of the parked program. It
//! is in a session of its own, so signals to the processes of the terminal do not reach it.

use crate::platform::glibc::real;
use crate::platform::sys;
use core::ffi::c_int;

const SIGCHLD: i32 = 17;
const SIGTERM: i32 = 15;

/// Forks and returns in the child, as the program. If the fork fails, the program runs without a reaper.
pub fn split() {
    let keeper = sys::getpid();
    sys::become_subreaper();
    // The fork of the C library, because glibc stores the process id and must correct it.
    match real!(fork, fn() -> c_int) {
        0 => {
            sys::die_with_parent();
            if sys::getppid() != keeper {
                sys::exit_group(0);
            }
            sys::new_session();
        }
        child if child > 0 => keep(child),
        _ => {}
    }
}

/// Waits until the program has ended or the engine asks for the end. Ends with the status of the program.
fn keep(program: i32) -> ! {
    const KEPT: u64 = 1 << (SIGTERM - 1) | 1 << (SIGCHLD - 1);
    sys::signal_mask(Some(u64::MAX));
    sys::sigaction(SIGCHLD, 0);
    // Until this call the reaper died with the engine, and the program with the reaper.
    sys::signal_at_parents_end(SIGTERM);
    sys::close_all();
    sys::name_thread(c"heisen keeper");
    let mut status = None;
    while status.is_none() {
        while let Some((ended, how)) = sys::reap() {
            if ended == program {
                status = Some(how);
            }
        }
        let mut info = [0u64; 16];
        if status.is_none() && sys::take_signal(KEPT, info.as_mut_ptr() as usize, true) == Some(SIGTERM) {
            break;
        }
    }
    end_children(program, &mut status);
    let status = status.unwrap_or(0);
    let signal = (status & 0x7f) as i32;
    if signal != 0 {
        sys::sigaction(signal, 0);
        sys::signal_mask(Some(0));
        sys::kill(sys::getpid(), signal);
    }
    sys::exit_group((status >> 8 & 0xff) as i32)
}

/// Kills all descendants of this process. Stores the status of `program` if that is one of them.
fn end_children(program: i32, status: &mut Option<u32>) {
    loop {
        kill_children();
        match sys::wait(-1) {
            (child, how) if child == program => *status = Some(how),
            (error, _) if error < 0 && error != -sys::EINTR => return,
            _ => {}
        }
    }
}

/// Kills the children of this process. Their children then become children of this process.
pub fn kill_children() {
    let own = sys::getpid();
    let mut list = [0u8; 4096];
    let length = sys::read_file(&sys::proc_path(own, b"task", Some(own), b"/children"), &mut list);
    for word in list[..length].split(|byte| !byte.is_ascii_digit()).filter(|word| !word.is_empty()) {
        sys::kill(word.iter().fold(0, |pid, digit| pid * 10 + i32::from(digit - b'0')), sys::SIGKILL);
    }
}
