//! Signals: models masks, pending signals and delivery for the threads of the program. They all run on one
//! kernel thread, so the kernel's own state does not describe them.
//!
//! A signal that a thread of the program sends (or a timer, see `shim::timer`) is an event like any other. It
//! becomes pending for a thread or for the process. If several threads do not block a signal for the process,
//! which one takes it is a decision; the main thread is the default.
//!
//! The signal is delivered when its thread is scheduled next. The handler runs on that thread's stack, or on
//! its alternate stack if the handler asks for it and there is one. It runs before the thread's next operation.
//! A signal enables a waiting thread: it can run the handler, and then waits again or returns EINTR, as in
//! signal(7).
//!
//! The running thread raises faults and `abort` at a step that the schedule fixes; the kernel then calls the
//! program's handler at once. For signals from outside, a handler of the runtime records them, and they are
//! delivered at the next scheduling point. Their time is not controlled.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`action`] | what the program wants done for each signal |
//! | [`mask`] | which signals each thread blocks, and which of them the kernel blocks |
//! | [`pending`] | signals that were sent and not yet delivered |
//! | [`send`], [`mod@deliver`], [`sigwait`] | sending, delivering and waiting |
//! | [`outside`] | signals that the kernel delivers |
//! | [`jump`] | jumps out of handlers |
//! | [`crash`], [`alt_stack`] | the engine's question, crashes in a close-up; alternate stacks |

pub mod action;
pub mod alt_stack;
pub mod crash;
pub mod deliver;
pub mod jump;
pub mod mask;
pub mod outside;
pub mod pending;
pub mod send;
pub mod sigwait;

pub use crate::platform::sys::bit;
pub use crate::sched::Delivered;
pub use deliver::deliver;

use crate::memory::{patch, race, symbolic};
use crate::platform::sys;
use crate::sched::SCHED;
use crate::sched::hooks::HOOKS;
use crate::script::system_mode;
use crate::wire_log;

/// The highest number of a signal.
pub const LAST: i32 = 64;
/// Signals from here on are queued. Of each signal below, at most one is pending.
pub const FIRST_QUEUED: i32 = 32;
/// Signals that glibc reserves for itself.
const INTERNAL: [i32; 2] = [32, 33];
pub const SIGPIPE: i32 = 13;
pub const SIGALRM: i32 = 14;
pub const SIGSTOP: i32 = 19;

/// Whether a program may use this number.
pub fn is_valid(signal: i32) -> bool {
    (1..=LAST).contains(&signal) && !INTERNAL.contains(&signal)
}

/// The program's process id, as the program sees it.
pub fn own_pid() -> i32 {
    crate::shim::pid::own()
}

/// Plugs this room into the hooks of the rooms below.
pub fn plug_in() {
    HOOKS.deliver.set(deliver);
    HOOKS.collect_signals.set(outside::collect);
    HOOKS.look_for_signals.set(outside::look_outside);
    HOOKS.wait_for_signal_from_outside.set(outside::wait_for_outside);
    HOOKS.forget_signals.set(pending::thread_ended);
    HOOKS.kernel_mask.set(mask::of_kernel);
    HOOKS.execution_begins.set(execution_begins);
    HOOKS.let_traps_through.set(let_traps_through);
}

/// In a close-up, crashes are handled.
fn execution_begins() {
    if wire_log::stops() {
        crash::catch_crashes();
    }
}

/// The program contains breakpoints of the runtime.
fn let_traps_through() {
    action::install(sys::SIGTRAP);
    if !system_mode::is_on() {
        mask::tell_kernel();
    }
}

/// Reads the signal state with which the process was started.
pub fn init() {
    crash::init();
    action::init();
    mask::init();
}

/// A child of `fork` runs without the runtime: the kernel gets the running thread's signal state.
pub fn let_go() {
    SCHED.active.set(false);
    crate::platform::baton::let_go();
    race::leave();
    symbolic::leave();
    patch::remove_traps();
    for signal in (1..=LAST).filter(|&signal| is_valid(signal)) {
        action::hand_over(signal);
    }
    sys::sigaction(heisen_wire::SPINS, 0);
    alt_stack::hand_over();
    sys::signal_mask(Some(mask::of_running()));
}
