//! Atomic instructions of code that is not instrumented become scheduling points: `lock`-prefixed ones, and `xchg` with
//! memory. The program is patched while it is parked, so every execution is; see docs/how-it-works/patching.md.
//!
//! | module | what it is |
//! | --- | --- |
//! | `modules` | which programs and libraries |
//! | `code` | machine code, and which instructions are atomic |
//! | [`find`] | the instructions, and what has to be moved so that a jump fits |
//! | [`locks`] | those that lock and unlock a mutex of Rust's |
//! | [`trampoline`] | where they are moved to |
//! | `marks` | places that a script names |
//! | [`rust_std`] | what of Rust's standard library is patched among instrumented code |
//! | `near_memory` | free memory near to a module |
//! | `apply` | all of it, worked out once and written into each parked program |
//!
//! CHESS (OSDI'08, section 3.1) controls a program at the calls that it makes; what it does with atomic instructions of its
//! own it leaves to compilers that instrument them.

mod apply;
mod code;
mod find;
mod locks;
mod marks;
mod modules;
mod near_memory;
mod std_functions;
mod trampoline;

pub(crate) use apply::Prepared;
pub use apply::{PatchedModule, Patches};
pub use marks::Named;
pub use modules::{DEFAULT, INSTRUMENTED, NONE, parse};
