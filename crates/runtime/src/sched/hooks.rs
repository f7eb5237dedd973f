//! Hooks: what the scheduler asks of the rooms above it.
//!
//! A room plugs its functions in when the library is loaded, before any execution begins. All of them are called on cold
//! paths only: a signal is pending, a thread ends, a script is at work, every thread waits. What a scheduling point needs at
//! each step is no hook but lies in this room.

use super::{Delivered, Thread};
use crate::platform::baton::Hook;

macro_rules! hooks {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)? = $default:expr;)*) => {
        /// The functions that the rooms above have plugged in.
        #[derive(Debug)]
        pub struct Hooks {
            $($(#[$doc])* pub $name: Hook<fn($($ty),*) $(-> $ret)?>,)*
        }

        /// The one table. Until a room has plugged in, its hooks do nothing.
        pub static HOOKS: Hooks = Hooks {
            $($name: Hook::new({
                fn nothing($(_: $ty),*) $(-> $ret)? { $default }
                nothing
            }),)*
        };

        $(
            $(#[$doc])*
            #[cold]
            pub fn $name($($arg: $ty),*) $(-> $ret)? {
                HOOKS.$name.get()($($arg),*)
            }
        )*
    };
}

hooks! {
    // Of `carrier`.
    /// Switches between two threads on the carrier of kernel threads; returns when `from` is switched to again.
    switch_kernel_thread(from: &Thread, to: &Thread) = ();

    // Of `script`.
    /// The running thread is about to take its next step while a script is at work.
    script_step() = ();
    /// Whether the script has stopped the running thread at an event.
    script_stopped() -> bool = false;
    /// Nobody can go on: whether the script has changed that.
    script_nobody() -> bool = false;
    /// The running thread has ended.
    script_end() = ();

    // Of `memory`.
    /// The running thread has created another.
    created(number: usize) = ();
    /// The running thread passes an object, for the race check.
    acquire(object: usize) = ();
    /// The running thread lets others pass an object, for the race check.
    release(object: usize) = ();
    /// Memory is used for something new: a stack from the pool.
    renew_memory(at: usize, size: usize) = ();

    // Of `blocking`.
    /// Looks after descriptors and calls that are out; `able` says whether the running thread can go on in any case.
    errands(able: bool) = ();

    // Of `lifecycle`.
    /// The execution is at a decision, and the snapshot may be moved here.
    at_choice(step: u32) = ();
    /// A stack of this size was mapped.
    stack_mapped(size: usize, guard: usize) = ();
    /// Makes whole pages zeros, if that is cheaper here than by the kernel; whether that was done.
    zero_pages(at: usize, size: usize) -> bool = false;

    // Of `shim`.
    /// An execution begins in this process.
    execution_begins() = ();
    /// The process was forked from the zygote.
    process_begins() = ();
    /// The running thread takes its signals.
    deliver() -> Delivered = Delivered::Nothing;
    /// Hands signals from outside to threads.
    collect_signals() = ();
    /// As `collect_signals`, also those that all threads block and one waits for; whether there was any.
    look_for_signals() -> bool = false;
    /// Nobody can go on: waits for a signal from outside; false if none can come.
    wait_for_signal_from_outside() -> bool = false;
    /// A thread has ended: its pending signals are forgotten.
    forget_signals(number: usize) = ();
    /// What the kernel blocks at the moment, for all threads of the program.
    kernel_mask() -> u64 = 0;
    /// There are breakpoints of ours in the program: their signal must come through.
    let_traps_through() = ();
    /// Enables or disables the threads whose state nobody announces.
    recheck() = ();
    /// Whether a thread is a timer that would end the program.
    is_watchdog(number: usize) -> bool = false;
}
