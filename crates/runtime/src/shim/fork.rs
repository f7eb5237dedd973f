//! Fork handlers: runs one `fork` at a time and registers the runtime's own handler first. The real `fork` runs
//! the handlers. Those of the parent may lock, and so switch threads. Those of the child run uncontrolled; the
//! runtime's own handler must therefore run before all others.

use super::{process, shims};
use crate::platform::glibc::real;
use crate::platform::registers::caller;
use crate::sched::{self, SCHED};
use crate::script::system_mode;
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use heisen_trace::{Note, Op};

static FIRST: AtomicBool = AtomicBool::new(false);
/// Whether a thread is inside `fork`. While handlers run, glibc may hold a lock of its own.
static FORKING: AtomicBool = AtomicBool::new(false);

extern "C" fn in_child() {
    if system_mode::is_on() {
        system_mode::forked();
    } else if SCHED.active.get() {
        process::on_its_own();
    }
}

/// Registers the runtime's own handler, once.
pub fn register_own() {
    if !FIRST.swap(true, Relaxed) {
        let child = in_child as *const () as usize;
        real!(__register_atfork, fn(0 => usize, 0 => usize, child => usize, 0 => usize) -> c_int);
    }
}

/// The object that a thread needs while it waits for another thread's `fork` to finish.
fn key() -> usize {
    FORKING.as_ptr() as usize
}

fn wait_for_others(pc: usize) {
    if SCHED.active.get() && FORKING.load(Relaxed) {
        sched::wait_for(Op::Fork, key(), pc, false, u64::MAX);
    }
}

/// Runs `fork` with its handlers, once no other thread is inside `fork`.
pub fn one_at_a_time(pc: usize, fork: impl FnOnce() -> c_int) -> c_int {
    wait_for_others(pc);
    FORKING.store(true, Relaxed);
    sched::taken(key());
    let child = fork();
    FORKING.store(false, Relaxed);
    if child != 0 {
        sched::freed(key());
    }
    child
}

/// Registers handlers for `pthread_atfork`. Waits while another thread is inside `fork`.
///
/// # Safety
/// As glibc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __register_atfork(
    prepare: usize,
    parent: usize,
    child: usize,
    library: usize,
) -> c_int {
    register_own();
    wait_for_others(caller!());
    real!(__register_atfork, fn(prepare => usize, parent => usize, child => usize, library => usize) -> c_int)
}

shims! {
    /// As `fork`, without handlers.
    fn _Fork() -> c_int = pc {
        process::note(Note::Fork, true);
        let controlled = SCHED.active.get();
        process::forked(real!(_Fork, fn() -> c_int), controlled)
    }
}
