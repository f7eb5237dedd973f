//! Carriers: what the threads of the program run on.
//!
//! **Rule:** uses `platform`, `wire_log` and `sched`. The bare switch of registers is below the scheduler, in
//! `platform::registers`. The first frame of a thread is above all rooms, in `shim::thread_entry`.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`fibers`] | the default carrier: all threads share one kernel thread; stacks and thread-local storage |
//! | [`kernel_threads`] | the carrier for debuggers: each thread is a kernel thread, and they pass a baton |
//! | [`handler_stack`] | the stacks of handlers that the kernel calls |

pub mod fibers;
pub mod handler_stack;
pub mod kernel_threads;
