//! Makes the atomic instructions of uninstrumented code scheduling points: `lock`-prefixed ones, and `xchg`
//! with memory. The engine patches the program while it is parked, so that every execution is patched.
//! This folder finds and writes patches; it does not start programs. See docs/how-it-works/patching.md.
//!
//! | module | what it does |
//! | --- | --- |
//! | `modules` | selects the programs and libraries to be patched |
//! | `code` | recognises atomic instructions in machine code |
//! | `find` | finds the sites, and the code that must move so that a jump fits |
//! | `locks` | finds the instructions that lock and unlock a mutex of Rust's standard library |
//! | `trampoline` | writes the code to which the sites are moved |
//! | `marks` | finds the places that a script names |
//! | `std_functions` | says how functions of Rust's standard library are patched in an instrumented program |
//! | `near_memory` | finds unused memory near a module |
//! | `apply` | computes all patches once and writes them into each parked program |
//!
//! CHESS (OSDI'08, section 3.1) controls a program at the calls that it makes. It leaves the program's atomic
//! instructions to compilers that instrument them.

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
