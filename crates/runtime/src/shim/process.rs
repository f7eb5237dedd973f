//! The ends of a process, and the ways to start another.

use super::{caller, detours, shims};
use crate::glibc::{Real, real};
use crate::sched::S;
use crate::{report, sys};
use core::ffi::{CStr, c_char, c_int};
use heisen_trace::{Note, Op};
use heisen_wire::end;

/// The process is about to exit with this status: its handlers still run, and threads may, too.
pub fn exiting(status: c_int, pc: usize) {
    if S.active.get() && S.running.get() {
        report::event(Op::Exit, 0, pc);
        report::ending(end::EXIT, status, pc);
    }
}

/// `exit`, called by the runtime.
pub fn exit_with(status: c_int, pc: usize) -> ! {
    exiting(status, pc);
    real!(exit, fn(status => c_int) -> ());
    unreachable!()
}

/// `exit`.
///
/// # Safety
/// As glibc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exit(status: c_int) -> ! {
    exit_with(status, caller!())
}

/// `_exit`.
///
/// # Safety
/// As glibc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _exit(status: c_int) -> ! {
    exiting(status, caller!());
    sys::exit_group(status)
}

/// `_Exit`.
///
/// # Safety
/// As glibc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _Exit(status: c_int) -> ! {
    exiting(status, caller!());
    sys::exit_group(status)
}

/// `abort`.
///
/// # Safety
/// As glibc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn abort() -> ! {
    let pc = caller!();
    if S.active.get() && S.running.get() {
        report::event(Op::Abort, 0, pc);
        report::ending(end::ABORT, 0, pc);
    }
    real!(abort, fn() -> ());
    unreachable!()
}

/// `__assert_fail`.
///
/// # Safety
/// As glibc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __assert_fail(
    expression: *const c_char,
    file: *const c_char,
    line: u32,
    function: *const c_char,
) -> ! {
    let pc = caller!();
    if S.active.get() && S.running.get() {
        for string in [expression, file, function] {
            let mut bytes: &[u8] = b"";
            if !string.is_null() {
                // SAFETY: the compiler passes C strings, or null for the function.
                bytes = unsafe { CStr::from_ptr(string) }.to_bytes();
            }
            report::text(bytes);
        }
        report::event(Op::Assert, line as usize, pc);
        report::ending(end::ASSERT, line as c_int, pc);
    }
    real!(__assert_fail, fn(
        expression => *const c_char, file => *const c_char, line => u32, function => *const c_char
    ) -> ());
    unreachable!()
}

shims! {
    /// `fork`: the child runs on alone, uncontrolled.
    fn fork() -> c_int = pc {
        note(Note::Fork, true);
        let child = real!(fork, fn() -> c_int);
        if child == 0 {
            S.active.set(false);
            // Nothing outlives its execution, not even if all of Heisen is killed.
            sys::die_with_parent();
        }
        child
    }
}

/// Functions that are only noted, then run as they are.
macro_rules! noted {
    ($($name:ident = $note:expr, $group:expr;)*) => {$(
        detours! {
            /// Noted, then run as it is.
            fn $name = before::$name;
        }
    )*
        mod before {
            use super::*;
            $(pub extern "C" fn $name() -> usize {
                static REAL: Real = Real::new($crate::glibc::name_of!($name));
                note($note, $group);
                REAL.address()
            })*
        }
    };
}

/// Notes that the program starts something; in a group of its own if that has to be found and ended later.
fn note(note: Note, group: bool) {
    if S.active.get() {
        report::note(note);
        crate::io::share();
        if group {
            sys::setpgid_self();
        }
    }
}

noted! {
    vfork = Note::Fork, true;
    posix_spawn = Note::Spawn, true;
    posix_spawnp = Note::Spawn, true;
    system = Note::Spawn, true;
    popen = Note::Spawn, true;
    execve = Note::Exec, false;
    execv = Note::Exec, false;
    execvp = Note::Exec, false;
    execvpe = Note::Exec, false;
    execl = Note::Exec, false;
    execlp = Note::Exec, false;
    execle = Note::Exec, false;
    fexecve = Note::Exec, false;
}
