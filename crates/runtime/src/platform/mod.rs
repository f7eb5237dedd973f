//! The platform: what the kernel, glibc and the processor offer.
//!
//! **Rule:** uses no other room.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`baton`] | data of the kernel thread that holds the baton |
//! | [`program_memory`] | memory at addresses that the program gives |
//! | [`sys`] | system calls, made directly |
//! | [`glibc`] | glibc's own functions, and its thread control block |
//! | [`registers`] | the bare switch between two stacks |
//! | [`xsave`] | the vector registers of a thread that is switched out in the middle of a function |
//! | [`allocation`] | the byte that every allocation of the program looks at |
//! | [`constant`] | words that are the same in all executions |

pub mod allocation;
pub mod baton;
pub mod constant;
pub mod glibc;
pub mod program_memory;
pub mod registers;
pub mod sys;
pub mod xsave;
