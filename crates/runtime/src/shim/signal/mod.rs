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
//! | [`send`], [`deliver`], [`wait`] | the ways in and out |
//! | [`outside`] | what the kernel delivers |
//! | [`jump`] | jumps out of handlers |
//! | [`crash`], [`stack`] | what the engine asks, crashes in a replay; alternate stacks |

pub mod action;
pub mod crash;
pub mod deliver;
pub mod jump;
pub mod mask;
pub mod outside;
pub mod pending;
pub mod send;
pub mod stack;
pub mod wait;

pub use crash::catch_crashes;
pub use deliver::{Delivered, deliver};
pub use outside::{arrived, collect, look_outside, wait_for_outside};
pub use pending::thread_ended;

use crate::platform::sys;
use crate::sched::S;

/// The highest number of a signal.
pub const LAST: i32 = 64;
/// Signals from here on are queued; of those below, one of each kind can be pending.
pub const FIRST_QUEUED: i32 = 32;
/// Those that glibc keeps for itself.
const INTERNAL: [i32; 2] = [32, 33];
pub const SIGPIPE: i32 = 13;
pub const SIGALRM: i32 = 14;
pub const SIGSTOP: i32 = 19;

/// A signal as a set.
pub const fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// Whether a program may use this number.
pub fn is_valid(signal: i32) -> bool {
    (1..=LAST).contains(&signal) && !INTERNAL.contains(&signal)
}

/// The program's process id, as it knows it.
pub fn own_pid() -> i32 {
    crate::shim::pid::own()
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
    crate::memory::race::leave();
    crate::memory::patch::remove_traps();
    for signal in (1..=LAST).filter(|&signal| is_valid(signal)) {
        action::hand_over(signal);
    }
    sys::sigaction(heisen_wire::SPINS, 0);
    stack::hand_over();
    sys::signal_mask(Some(mask::of_running()));
}
