//! Carriers: what the threads of the program run on.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`fibers`] | the default carrier: all threads share one kernel thread; stacks, thread-local storage, the switch |
//! | [`kernel_threads`] | the carrier for debuggers: each thread is a kernel thread, and they pass a baton |
//! | [`xsave`] | the vector registers of a thread that is switched out in the middle of a function |
//! | [`debugger`] | what a debugger asks of an execution on kernel threads |

pub mod debugger;
pub mod fibers;
pub mod kernel_threads;
pub mod xsave;
