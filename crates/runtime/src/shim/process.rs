//! The ends of a process, and the ways to start another.

use super::signal::{self, mask};
use super::{detours, pid, shims, thread_entry};
use crate::lifecycle::in_process;
use crate::memory::heap;
use crate::platform::glibc;
use crate::platform::glibc::{Real, real};
use crate::platform::registers::caller;
use crate::platform::sys;
use crate::sched::dependence;
use crate::sched::events;
use crate::sched::pause;
use crate::sched::{self, Gives, S, me, thread};
use crate::wire_log;
use core::ffi::{CStr, c_char, c_int};
use heisen_trace::{Note, Op};
use heisen_wire::end;

/// Whether this is an execution. A child of `vfork` has our memory, but its end is not ours.
fn is_execution() -> bool {
    S.active.get() && S.running.get() && pid::is_own()
}

/// The running thread is about to end the process, or to replace its program. That cuts off every step that others would still
/// take, so it is a scheduling point if there are others.
fn before_end(op: Op, object: usize, pc: usize) {
    if sched::has_others() {
        thread(me()).about_to(op, 0, pc);
        sched::reschedule(Gives::Able);
    }
    events::event(op, object, pc);
}

/// The process is about to exit with this status: its handlers still run, and threads may, too.
pub fn exiting(status: c_int, pc: usize) {
    if is_execution() {
        before_end(Op::Exit, 0, pc);
        heap::look_for_leaks(pc);
        pause::ending(end::EXIT, status, pc);
    }
}

/// What the program does on exit is done, and the process ends: others may go on until here, and see what was done.
pub fn exited() {
    if sched::has_others() {
        sched::point(Op::Exit, 0, 0);
        dependence::ending();
    }
}

/// Has functions of ours called after all that the program registers. To be called before it registers any.
pub fn watch_exits() {
    real!(__cxa_atexit, fn(
        after_handlers as *const () as usize => usize, 0 => usize, 0 => usize
    ) -> c_int);
    real!(__cxa_at_quick_exit, fn(after_quick_handlers as *const () as usize => usize, 0 => usize) -> c_int);
}

extern "C" fn after_handlers() {
    if is_execution() && sched::has_others() && in_process::exit_calls_functions() {
        exited();
    }
}

extern "C" fn after_quick_handlers() {
    if is_execution() && in_process::quick_exit_calls_functions() {
        exited();
    }
}

/// `exit`, called by the runtime.
pub fn exit_with(status: c_int, pc: usize) -> ! {
    exiting(status, pc);
    thread_entry::end_if_done(status);
    real!(exit, fn(status => c_int) -> ());
    unreachable!()
}

/// Ends the execution: handlers and destructors run, still under the scheduler, and the status is judged. A scheduling point
/// before them, and one after them, if other threads could still go on.
///
/// # Safety
/// As glibc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exit(status: c_int) -> ! {
    exit_with(status, caller!())
}

/// Registers a function for the exit, as `atexit` and objects of C++ do; no scheduling point.
///
/// # Safety
/// As glibc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cxa_atexit(function: usize, argument: usize, module: usize) -> c_int {
    in_process::registered();
    real!(__cxa_atexit, fn(function => usize, argument => usize, module => usize) -> c_int)
}

/// The same, for one that is told the status.
///
/// # Safety
/// As glibc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn on_exit(function: usize, argument: usize) -> c_int {
    in_process::registered();
    real!(on_exit, fn(function => usize, argument => usize) -> c_int)
}

/// Registers a function for `quick_exit`, as `at_quick_exit` does; no scheduling point.
///
/// # Safety
/// As glibc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cxa_at_quick_exit(function: usize, module: usize) -> c_int {
    in_process::registered_quick();
    real!(__cxa_at_quick_exit, fn(function => usize, module => usize) -> c_int)
}

/// Registers a destructor for the end of the calling thread, as thread-local objects do; no scheduling point.
///
/// # Safety
/// As glibc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cxa_thread_atexit_impl(function: usize, object: usize, module: usize) -> c_int {
    if S.active.get() {
        thread(me()).has_destructors.set(true);
    }
    real!(__cxa_thread_atexit_impl, fn(function => usize, object => usize, module => usize) -> c_int)
}

/// Ends the execution; functions for `quick_exit` run, still under the scheduler, and the status is judged. A scheduling point
/// before them, and one after them, if other threads could still go on.
///
/// # Safety
/// As glibc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quick_exit(status: c_int) -> ! {
    exiting(status, caller!());
    real!(quick_exit, fn(status => c_int) -> ());
    unreachable!()
}

/// Ends the execution at once; the status is judged. A scheduling point if other threads could still go on.
///
/// # Safety
/// As glibc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _exit(status: c_int) -> ! {
    exiting(status, caller!());
    sys::exit_group(status)
}

/// Ends the execution at once; the status is judged. A scheduling point if other threads could still go on.
///
/// # Safety
/// As glibc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _Exit(status: c_int) -> ! {
    exiting(status, caller!());
    sys::exit_group(status)
}

/// Ends the execution with a crash, which is a finding. A scheduling point if other threads could still go on.
///
/// # Safety
/// As glibc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn abort() -> ! {
    let pc = caller!();
    if S.active.get() && S.running.get() {
        before_end(Op::Abort, 0, pc);
        pause::ending(end::ABORT, 0, pc);
    }
    real!(abort, fn() -> ());
    unreachable!()
}

/// Ends the execution with an assertion, which is a finding. A scheduling point if other threads could still go on.
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
    assertion_failed([expression, file, function], line, caller!())
}

/// An assertion failed: notes it, and lets glibc say so and abort. The texts are the expression, the file and the function.
pub fn assertion_failed(texts: [*const c_char; 3], line: u32, pc: usize) -> ! {
    if S.active.get() && S.running.get() {
        before_end(Op::Assert, line as usize, pc);
        for string in texts {
            let mut bytes: &[u8] = b"";
            if !string.is_null() {
                // SAFETY: the compiler passes C strings, or null for the function.
                bytes = unsafe { CStr::from_ptr(string) }.to_bytes();
            }
            wire_log::text(bytes);
        }
        pause::ending(end::ASSERT, line as c_int, pc);
    }
    let [expression, file, function] = texts;
    real!(__assert_fail, fn(
        expression => *const c_char, file => *const c_char, line => u32, function => *const c_char
    ) -> ());
    unreachable!()
}

shims! {
    if pid::known();

    /// No scheduling point. The child has the calling thread only and runs on uncontrolled, which the verdict says;
    /// it ends with its execution.
    fn fork() -> c_int = pc {
        note(Note::Fork, true);
        let controlled = S.active.get();
        let fork = || super::fork::one_at_a_time(pc, || real!(fork, fn() -> c_int));
        mask::for_child(|| forked(fork(), controlled))
    }

    /// As `fork`, but the caller goes on only when the child has ended or runs another program. The child has memory of
    /// its own, as POSIX allows, since the runtime's state must not change under the caller.
    fn vfork() -> c_int = pc {
        note(Note::Fork, true);
        let controlled = S.active.get();
        mask::for_child(|| match sys::fork_and_wait_for_exec() {
            error @ ..0 => glibc::result(-error),
            child => forked(child, controlled),
        })
    }

    /// Starts a process that runs uncontrolled.
    fn posix_spawn(
        out: *mut c_int, path: usize, actions: usize, attributes: usize, argv: usize, envp: usize
    ) -> c_int = pc {
        spawn(out, |out| real!(posix_spawn, fn(
            out => *mut c_int, path => usize, actions => usize, attributes => usize, argv => usize, envp => usize
        ) -> c_int))
    }

    /// As `posix_spawn`.
    fn posix_spawnp(
        out: *mut c_int, file: usize, actions: usize, attributes: usize, argv: usize, envp: usize
    ) -> c_int = pc {
        spawn(out, |out| real!(posix_spawnp, fn(
            out => *mut c_int, file => usize, actions => usize, attributes => usize, argv => usize, envp => usize
        ) -> c_int))
    }
}

shims! {
    /// Runs a command uncontrolled; all threads stand still until it ends.
    fn system(command: usize) -> c_int = pc {
        note(Note::Spawn, true);
        mask::for_child(|| real!(system, fn(command => usize) -> c_int))
    }

    /// Starts a command that runs uncontrolled.
    fn popen(command: usize, mode: usize) -> usize = pc {
        note(Note::Spawn, true);
        mask::for_child(|| real!(popen, fn(command => usize, mode => usize) -> usize))
    }
}

/// Starts a process by `start`, which gets room for its id.
fn spawn(out: *mut c_int, start: impl FnOnce(*mut c_int) -> c_int) -> c_int {
    note(Note::Spawn, true);
    let mut child = 0;
    let error = mask::for_child(|| start(&raw mut child));
    let seen = pid::started(child);
    if error == 0 && !out.is_null() {
        // SAFETY: the program passes room for an id, or null.
        unsafe { *out = seen };
    }
    error
}

/// A child goes on without the runtime.
pub fn on_its_own() {
    signal::let_go();
    // Nothing outlives its execution, not even if all of Heisen is killed.
    sys::die_with_parent();
}

/// After a fork by a process that was controlled or not: the result as the program sees it.
pub fn forked(child: c_int, controlled: bool) -> c_int {
    if child == 0 {
        if S.active.get() {
            on_its_own();
        }
        pid::forked(controlled);
        return 0;
    }
    if child > 0 && S.kernel.get() {
        // The parent, in this sense, is the kernel thread that forked.
        thread(me()).stays.set(true);
    }
    pid::started(child)
}

/// Functions that are only noted, then run as they are.
macro_rules! noted {
    ($($(#[$doc:meta])* $name:ident = $note:expr, $group:expr;)*) => {$(
        detours! {
            $(#[$doc])*
            fn $name = before::$name;
        }
    )*
        mod before {
            use super::*;
            $(pub extern "C" fn $name(_first: usize, _second: usize, pc: usize) -> usize {
                static REAL: Real = Real::new($crate::platform::glibc::name_of!($name));
                if is_execution() {
                    before_end(Op::Exec, 0, pc);
                }
                note($note, $group);
                mask::before_exec();
                REAL.address()
            })*
        }
    };
}

/// Notes that the program starts something; in a group of its own if that has to be found and ended later.
pub fn note(note: Note, group: bool) {
    if S.active.get() {
        wire_log::note(note);
        crate::blocking::descriptors::share();
        if group {
            sys::setpgid_self();
        }
    }
}

noted! {
    /// A scheduling point if other threads could still go on. The new program is not controlled, which the verdict says.
    execve = Note::Exec, false;
    /// A scheduling point if other threads could still go on. The new program is not controlled, which the verdict says.
    execv = Note::Exec, false;
    /// A scheduling point if other threads could still go on. The new program is not controlled, which the verdict says.
    execvp = Note::Exec, false;
    /// A scheduling point if other threads could still go on. The new program is not controlled, which the verdict says.
    execvpe = Note::Exec, false;
    /// A scheduling point if other threads could still go on. The new program is not controlled, which the verdict says.
    execl = Note::Exec, false;
    /// A scheduling point if other threads could still go on. The new program is not controlled, which the verdict says.
    execlp = Note::Exec, false;
    /// A scheduling point if other threads could still go on. The new program is not controlled, which the verdict says.
    execle = Note::Exec, false;
    /// A scheduling point if other threads could still go on. The new program is not controlled, which the verdict says.
    fexecve = Note::Exec, false;
    /// A scheduling point if other threads could still go on. The new program is not controlled, which the verdict says.
    execveat = Note::Exec, false;
}
