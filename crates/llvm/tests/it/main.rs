//! Tests of the instrumentation by LLVM, which instruments Rust's standard library together with programs.

mod with_std;
