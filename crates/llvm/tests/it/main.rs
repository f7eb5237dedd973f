//! Tests of the instrumentation by LLVM: the standard library of Rust, instrumented along with programs.

mod with_std;
