//! Tests that signals and timers behave under Heisen as they do natively. When a signal arrives is a
//! decision. The programs are in `programs/` and run as in `primitives`.

mod children;
mod handlers;
mod outcomes;
mod own;
mod timers;
