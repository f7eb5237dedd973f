//! Scripts: threads stop at the events that a script names, until the script lets them go on.
//!
//! **Rule:** uses `platform`, `wire_log` and `sched`. The room `memory` reports the memory accesses that a
//! script names.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`unit_mode`] | one program under full control |
//! | [`system_mode`] | threads that run in parallel, in one or several processes |

pub mod system_mode;
pub mod unit_mode;
