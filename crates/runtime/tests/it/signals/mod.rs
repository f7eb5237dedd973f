//! Signals and timers behave under Heisen as they do natively, and when they come is a decision. The programs lie in
//! `programs/`, and are run in the manner of the `runtime` tests.

mod children;
mod handlers;
mod outcomes;
mod own;
mod timers;
