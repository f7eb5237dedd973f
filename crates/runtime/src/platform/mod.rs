//! The platform: system calls and private facts about glibc. Uses no other room.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`baton`] | data of the kernel thread that holds the baton |
//! | [`sys`] | system calls, made directly |
//! | [`glibc`] | glibc's own functions, and its thread control block |

pub mod baton;
pub mod glibc;
pub mod sys;
