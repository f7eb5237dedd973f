//! Memory accesses of the program: how the runtime learns of them, and what it checks.
//!
//! **Rule:** uses `platform`, `wire_log`, `sched`, `carrier` and `script`.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`ending`] | memory that is freed or unmapped |
//! | [`tsan`] | the callbacks of instrumented code |
//! | [`patch`] | scheduling points at atomic instructions of uninstrumented code |
//! | [`race`] | happens-before, conflicts, and which accesses are scheduling points |
//! | [`symbolic`] | the callbacks of symbolic builds: expressions beside values, and the symbolic trace |
//! | [`heap`] | the checked heap |
//! | [`word_lock`] | locks that are one word of memory, such as Rust's `Mutex` |

pub mod ending;
pub mod heap;
pub mod patch;
pub mod race;
pub mod symbolic;
pub mod tsan;
pub mod word_lock;
