//! The stub: one object file that is linked to each instrumented executable and library, so that they run anywhere.
//!
//! Each callback of the compiler is a jump through a table. The table begins with answers of the stub's own, by which the
//! program behaves as if it were not instrumented: plain accesses are ignored, atomics are done. If Heisen's runtime is
//! there when the module is initialised, the table is filled from the runtime's. A jump keeps the return address, so the
//! runtime sees the place in the program.
//!
//! All names are hidden, so that each module has a stub to itself and none depends on how another was built. They are weak,
//! so that it does no harm to name the stub twice, and a program may bring annotations of its own. Nothing is needed from
//! outside.
#![no_std]

mod atomic;
mod forward;
mod plain;
mod table;
mod wide;
