//! Ends of processes, and starts of others.

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
use crate::sched::{self, Reason, SCHED, me, thread};
use crate::wire_log;
use core::ffi::{CStr, c_char, c_int};
use heisen_trace::{Note, Op};
use heisen_wire::end;

/// Whether this is an execution. A child of `vfork` shares our memory, but its end does not end the execution.
fn is_execution() -> bool {
    SCHED.active.get() && SCHED.running.get() && pid::is_own()
}

/// The running thread is about to end the process, or to replace its program. That cuts off all further steps
/// of other threads, so it is a scheduling point if there are any.
fn before_end(op: Op, object: usize, pc: usize) {
    if sched::has_others() {
        thread(me()).about_to(op, 0, pc);
        sched::reschedule(Reason::Preemptible);
    }
    events::event(op, object, pc);
}

/// The process is about to exit with this status. Its exit handlers still run, and other threads may run
/// meanwhile.
pub fn exiting(status: c_int, pc: usize) {
    if is_execution() {
        before_end(Op::Exit, 0, pc);
        heap::look_for_leaks(pc);
        pause::ending(end::EXIT, status, pc);
    }
}

/// All exit handlers have run and the process ends. Other threads may run until here, and see the effects of
/// the handlers.
pub fn exited() {
    if sched::has_others() {
        sched::point(Op::Exit, 0, 0);
        dependence::ending();
    }
}

/// Registers the runtime's own exit handlers, which run after all handlers of the program. It must be called
/// before the program registers any.
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

/// Ends the execution. Handlers and destructors run first, still under the scheduler; Heisen judges the status.
/// A scheduling point before and one after them, if other threads can still run.
///
/// # Safety
/// As glibc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exit(status: c_int) -> ! {
    exit_with(status, caller!())
}

/// Registers a function for the exit, as `atexit` and C++ objects do. Not a scheduling point.
///
/// # Safety
/// As glibc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cxa_atexit(function: usize, argument: usize, module: usize) -> c_int {
    in_process::registered();
    real!(__cxa_atexit, fn(function => usize, argument => usize, module => usize) -> c_int)
}

/// As `__cxa_atexit`; the function gets the exit status.
///
/// # Safety
/// As glibc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn on_exit(function: usize, argument: usize) -> c_int {
    in_process::registered();
    real!(on_exit, fn(function => usize, argument => usize) -> c_int)
}

/// Registers a function for `quick_exit`, as `at_quick_exit` does. Not a scheduling point.
///
/// # Safety
/// As glibc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cxa_at_quick_exit(function: usize, module: usize) -> c_int {
    in_process::registered_quick();
    real!(__cxa_at_quick_exit, fn(function => usize, module => usize) -> c_int)
}

/// Registers a destructor for the end of the calling thread, as thread-local objects do. Not a scheduling
/// point.
///
/// # Safety
/// As glibc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cxa_thread_atexit_impl(function: usize, object: usize, module: usize) -> c_int {
    if SCHED.active.get() {
        thread(me()).has_destructors.set(true);
    }
    real!(__cxa_thread_atexit_impl, fn(function => usize, object => usize, module => usize) -> c_int)
}

/// Ends the execution. Functions registered for `quick_exit` run first, still under the scheduler; Heisen
/// judges the status. A scheduling point before and one after them, if other threads can still run.
///
/// # Safety
/// As glibc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quick_exit(status: c_int) -> ! {
    exiting(status, caller!());
    real!(quick_exit, fn(status => c_int) -> ());
    unreachable!()
}

/// Ends the execution at once; Heisen judges the status. A scheduling point if other threads can still run.
///
/// # Safety
/// As glibc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _exit(status: c_int) -> ! {
    exiting(status, caller!());
    sys::exit_group(status)
}

/// Ends the execution at once; Heisen judges the status. A scheduling point if other threads can still run.
///
/// # Safety
/// As glibc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _Exit(status: c_int) -> ! {
    exiting(status, caller!());
    sys::exit_group(status)
}

/// Ends the execution with a crash, which is a finding. A scheduling point if other threads can still run.
///
/// # Safety
/// As glibc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn abort() -> ! {
    let pc = caller!();
    if SCHED.active.get() && SCHED.running.get() {
        before_end(Op::Abort, 0, pc);
        pause::ending(end::ABORT, 0, pc);
    }
    real!(abort, fn() -> ());
    unreachable!()
}

/// Ends the execution with a failed assertion, which is a finding. A scheduling point if other threads can
/// still run.
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

/// An assertion failed: logs it, then lets glibc print its message and abort. The texts are the expression, the
/// file and the function.
pub fn assertion_failed(texts: [*const c_char; 3], line: u32, pc: usize) -> ! {
    if SCHED.active.get() && SCHED.running.get() {
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

    /// Starts a child with a copy of the calling thread only. The child runs uncontrolled, which is noted, and
    /// ends with its execution. Not a scheduling point.
    fn fork() -> c_int = pc {
        note(Note::Fork, true);
        let controlled = SCHED.active.get();
        let fork = || super::fork::one_at_a_time(pc, || real!(fork, fn() -> c_int));
        mask::for_child(|| forked(fork(), controlled))
    }

    /// As `fork`, but the caller continues only once the child has ended or runs another program. The child has
    /// memory of its own, as POSIX allows: it must not change the runtime's state under the caller.
    fn vfork() -> c_int = pc {
        note(Note::Fork, true);
        let controlled = SCHED.active.get();
        mask::for_child(|| match sys::fork_and_wait_for_exec() {
            error @ ..0 => glibc::result(-error),
            child => forked(child, controlled),
        })
    }

    /// Starts a process, which runs uncontrolled; that is noted. Not a scheduling point.
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
    /// Runs a command uncontrolled, which is noted. All threads wait until it ends.
    fn system(command: usize) -> c_int = pc {
        note(Note::Spawn, true);
        mask::for_child(|| real!(system, fn(command => usize) -> c_int))
    }

    /// Starts a command, which runs uncontrolled; that is noted. Not a scheduling point.
    fn popen(command: usize, mode: usize) -> usize = pc {
        note(Note::Spawn, true);
        mask::for_child(|| real!(popen, fn(command => usize, mode => usize) -> usize))
    }
}

/// Starts a process by `start`, which writes the process id to the given address.
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

/// A child continues without the runtime.
pub fn on_its_own() {
    signal::let_go();
    // No process outlives its execution, even if all of Heisen is killed.
    sys::die_with_parent();
}

/// After a fork: the result as the program sees it. `controlled` says whether the forking process was
/// controlled.
pub fn forked(child: c_int, controlled: bool) -> c_int {
    if child == 0 {
        if SCHED.active.get() {
            on_its_own();
        }
        pid::forked(controlled);
        return 0;
    }
    if child > 0 && SCHED.kernel.get() {
        // For the kernel, the child's parent is the kernel thread that forked.
        thread(me()).stays.set(true);
    }
    pid::started(child)
}

/// Exports functions that are noted and then run unchanged.
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

/// Notes that the program starts a process. With `group`, the process moves into a group of its own, so that
/// Heisen can find and end the new process later.
pub fn note(note: Note, group: bool) {
    if SCHED.active.get() {
        wire_log::note(note);
        crate::blocking::descriptors::share();
        if group {
            sys::setpgid_self();
        }
    }
}

noted! {
    /// A scheduling point if other threads can still run. The new program is not controlled, which is noted.
    execve = Note::Exec, false;
    /// A scheduling point if other threads can still run. The new program is not controlled, which is noted.
    execv = Note::Exec, false;
    /// A scheduling point if other threads can still run. The new program is not controlled, which is noted.
    execvp = Note::Exec, false;
    /// A scheduling point if other threads can still run. The new program is not controlled, which is noted.
    execvpe = Note::Exec, false;
    /// A scheduling point if other threads can still run. The new program is not controlled, which is noted.
    execl = Note::Exec, false;
    /// A scheduling point if other threads can still run. The new program is not controlled, which is noted.
    execlp = Note::Exec, false;
    /// A scheduling point if other threads can still run. The new program is not controlled, which is noted.
    execle = Note::Exec, false;
    /// A scheduling point if other threads can still run. The new program is not controlled, which is noted.
    fexecve = Note::Exec, false;
    /// A scheduling point if other threads can still run. The new program is not controlled, which is noted.
    execveat = Note::Exec, false;
}
