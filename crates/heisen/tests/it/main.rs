//! Tests of the crate `heisen`: `#[heisen::test]` in crates outside of this workspace.

mod inputs;
mod rust_scripts;
mod rust_tests;
