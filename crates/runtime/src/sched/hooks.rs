//! Hooks: the functions through which the scheduler calls the rooms above it.
//!
//! A room plugs its functions in when the library is loaded, before any execution begins. They serve cold
//! paths: a signal is pending, a thread ends, a script controls the execution, every thread waits. Whatever a
//! scheduling point needs at each step is not a hook but lies in this room.

use super::{Delivered, Thread};
use crate::platform::baton::Hook;

macro_rules! hooks {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)? = $default:expr;)*) => {
        /// The functions that the rooms above have plugged in.
        #[derive(Debug)]
        pub struct Hooks {
            $($(#[$doc])* pub $name: Hook<fn($($ty),*) $(-> $ret)?>,)*
        }

        /// The table of hooks. Until a room has plugged in, its hooks do nothing.
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
    /// Switches between two threads on the carrier of kernel threads. Returns when `from` is switched to
    /// again.
    switch_kernel_thread(from: &Thread, to: &Thread) = ();

    // Of `script`.
    /// The running thread is about to take its next step while a script controls the execution.
    script_step() = ();
    /// Whether the script has stopped the running thread at an event.
    script_stopped() -> bool = false;
    /// No thread can run. Returns whether the script has changed that.
    script_nobody() -> bool = false;
    /// The running thread has ended.
    script_end() = ();

    // Of `memory`.
    /// The running thread has created another.
    created(number: usize) = ();
    /// The running thread acquires an object, for the race check.
    acquire(object: usize) = ();
    /// The running thread releases an object, for the race check.
    release(object: usize) = ();
    /// Tells the engine, for a stop, in which block of the heap an address lies.
    tell_block(address: usize) = ();
    /// Memory gets a new use: it is the stack of a new thread.
    renew_memory(at: usize, size: usize) = ();

    // Of `blocking`.
    /// Checks waits for descriptors and calls that block in the kernel. `able` says whether the running
    /// thread is able to continue.
    errands(able: bool) = ();

    // Of `lifecycle`.
    /// The execution is at a choice, and the snapshot may be moved here.
    at_choice(step: u32) = ();
    /// A stack of this size was mapped, with a guard of this size.
    stack_mapped(size: usize, guard: usize) = ();
    /// Fills pages with zeros, if that is cheaper here than in the kernel. Returns whether it did.
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
    /// As `collect_signals`, and also takes signals that all threads block and one waits for. Returns whether
    /// there was any.
    look_for_signals() -> bool = false;
    /// No thread can run. Waits for a signal from outside; false if none can come.
    wait_for_signal_from_outside() -> bool = false;
    /// A thread has ended: discards its pending signals.
    forget_signals(number: usize) = ();
    /// The signals that the kernel blocks at the moment, for all threads of the program.
    kernel_mask() -> u64 = 0;
    /// The program contains breakpoints of the runtime: their signal must not be blocked.
    let_traps_through() = ();
    /// Enables or disables the threads whose state changes without a call of the scheduler.
    recheck() = ();
    /// Whether a thread is a timer whose signal would end the program.
    is_watchdog(number: usize) -> bool = false;
}
