//! Signals. All threads of the program are one kernel thread, so the kernel's masks, pending signals and choice of a
//! thread mean nothing to them; all that is modelled here.
//!
//! A signal that a thread of the program sends (or a timer of it, see `shim::timer`) is an event like any other: it
//! becomes pending for a thread or for the process; which thread takes one for the process that several do not block is
//! a decision, the main thread by default. It is delivered when its thread is scheduled next: the handler is called
//! there, on the stack of that thread (on its alternate stack if the handler asks for it and there is one), before the
//! thread does what it had stopped before. A thread that waits is enabled by it: it can run the handler, and then goes on
//! waiting or returns EINTR as in signal(7).
//!
//! Faults and `abort` are raised by the thread that runs, at a moment that the schedule fixes; there the kernel calls the
//! program's handler at once. Signals from outside are recorded by a handler of the runtime's, to be delivered at the
//! next scheduling point; when they come is not controlled.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`action`] | what the program wants done for each signal |
//! | [`mask`] | which signals each thread blocks, and what of that the kernel has to know |
//! | [`pending`] | signals that wait for a thread |
//! | [`send`], [`mod@deliver`], [`sigwait`] | the ways in and out |
//! | [`outside`] | what the kernel delivers |
//! | [`jump`] | jumps out of handlers |
//! | [`crash`], [`alt_stack`] | what the engine asks, crashes in a replay; alternate stacks |

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

use crate::memory::{patch, race};
use crate::platform::sys;
use crate::sched::S;
use crate::sched::hooks::HOOKS;
use crate::script::system_mode;
use crate::wire_log;

/// The highest number of a signal.
pub const LAST: i32 = 64;
/// Signals from here on are queued; of those below, one of each kind can be pending.
pub const FIRST_QUEUED: i32 = 32;
/// Those that glibc keeps for itself.
const INTERNAL: [i32; 2] = [32, 33];
pub const SIGPIPE: i32 = 13;
pub const SIGALRM: i32 = 14;
pub const SIGSTOP: i32 = 19;

/// Whether a program may use this number.
pub fn is_valid(signal: i32) -> bool {
    (1..=LAST).contains(&signal) && !INTERNAL.contains(&signal)
}

/// The program's process id, as it knows it.
pub fn own_pid() -> i32 {
    crate::shim::pid::own()
}

/// Lets the rooms below call this one.
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

/// In a close look, crashes are caught.
fn execution_begins() {
    if wire_log::stops() {
        crash::catch_crashes();
    }
}

/// There are breakpoints of ours in the program.
fn let_traps_through() {
    action::install(sys::SIGTRAP);
    if !system_mode::is_on() {
        mask::tell_kernel();
    }
}

/// Takes over what the process was started with.
pub fn init() {
    crash::init();
    action::init();
    mask::init();
}

/// A child of `fork` runs on without the runtime: the kernel gets to know what the running thread's state is.
pub fn let_go() {
    S.active.set(false);
    crate::platform::baton::let_go();
    race::leave();
    patch::remove_traps();
    for signal in (1..=LAST).filter(|&signal| is_valid(signal)) {
        action::hand_over(signal);
    }
    sys::sigaction(heisen_wire::SPINS, 0);
    alt_stack::hand_over();
    sys::signal_mask(Some(mask::of_running()));
}
