//! How programs are instrumented: what compilers and linkers are told, and the stub that is linked in.
//!
//! Compilers put a call before each memory access for the sake of their thread sanitizer. The sanitizer itself is left out:
//! the calls lead to the stub, and from there to Heisen's runtime if the program runs under it.

use crate::error::Result;
use crate::unpack;
use std::ffi::OsString;

/// Which family of compilers for C and C++ one belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compiler {
    /// GNU
    Gcc,
    /// LLVM
    Clang,
}

/// For compiling C and C++.
pub fn c_flags(compiler: Compiler) -> &'static [&'static str] {
    match compiler {
        // Volatile is left as it is: such an access is a plain one to a program with threads, and counts as one.
        Compiler::Gcc => &["-fsanitize=thread"],
        // A read is left out otherwise if the same place is written to afterwards, though another thread may write in
        // between.
        Compiler::Clang => &["-fsanitize=thread", "-mllvm", "-tsan-instrument-read-before-write=1"],
    }
}

/// For linking C and C++.
pub fn link_args() -> Result<Vec<OsString>> {
    Ok(vec![unpack::stub()?.into()])
}

/// For `rustc`, compiling and linking; each is one argument. They are for the crates of a program: its build scripts and
/// procedural macros run in the compiler and need none of it.
pub fn rust_flags() -> Result<Vec<String>> {
    let stub = unpack::stub()?;
    Ok(vec![
        // The sanitizer's own option is for nightly compilers. The pass behind it can be named by anyone; it sees only
        // functions with an attribute, which is forced on all.
        "-Cpasses=forceattrs,tsan-module,function(tsan)".into(),
        "-Cllvm-args=-force-attribute=sanitize_thread".into(),
        "-Cllvm-args=-tsan-instrument-read-before-write=1".into(),
        // Not as a library, which would become part of every crate's.
        format!("-Clink-arg={}", stub.display()),
    ])
}
