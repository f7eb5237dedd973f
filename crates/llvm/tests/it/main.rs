//! Tests of the instrumentation by LLVM: of Rust's standard library together with programs, and of expressions.

mod symbolic;
mod with_std;
