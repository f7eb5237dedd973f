//! How programs are instrumented: what compilers and linkers are told, and the stub that is linked in.
//!
//! Compilers put a call before each memory access for the sake of their thread sanitizer. The sanitizer itself is left out:
//! the calls lead to the stub, and from there to Heisen's runtime if the program runs under it.

use crate::error::{Error, Result};
use crate::program::compiler_args::Call;
use crate::program::embedded;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

/// Which family of compilers for C and C++ one belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compiler {
    /// GNU
    Gcc,
    /// LLVM
    Clang,
}

impl Compiler {
    /// What the command is that these words call, such as `ccache gcc -m64`. Most are told by their names; `cc` may be
    /// either, and is asked.
    pub fn of(words: &[OsString]) -> Compiler {
        let name = words.iter().rev().find(|word| !word.to_string_lossy().starts_with('-'));
        let name = name.map(|name| Path::new(name).file_name().unwrap_or_default().to_string_lossy());
        match name.unwrap_or_default() {
            name if name.contains("clang") => return Compiler::Clang,
            name if name.contains("gcc") || name.contains("g++") => return Compiler::Gcc,
            _ => {}
        }
        let Some((program, options)) = words.split_first() else { return Compiler::Gcc };
        let said = Command::new(program).args(options).arg("--version").output();
        let clang = said.is_ok_and(|said| String::from_utf8_lossy(&said.stdout).contains("clang"));
        if clang { Compiler::Clang } else { Compiler::Gcc }
    }
}

/// For compiling C and C++.
pub fn c_compile_flags(compiler: Compiler) -> &'static [&'static str] {
    match compiler {
        // Volatile is not told apart (`--param tsan-distinguish-volatile`): it orders nothing between threads, so such an
        // access can race as any other.
        // Copies that it makes itself, instead of a call, it does not instrument. What only reads stays: that may be part of a
        // constant expression, which a call cannot be.
        Compiler::Gcc => &[
            "-fsanitize=thread",
            "-fno-builtin-memcpy",
            "-fno-builtin-memmove",
            "-fno-builtin-mempcpy",
            "-fno-builtin-memset",
            "-fno-builtin-bzero",
            "-fno-builtin-strcpy",
            "-fno-builtin-stpcpy",
            "-fno-builtin-strncpy",
            "-fno-builtin-strcat",
            "-fno-builtin-strncat",
            "--param=builtin-string-cmp-inline-length=0",
        ],
        // A read is left out otherwise if the same place is written to afterwards, though another thread may write in
        // between. What is told to the compiler proper has no effect on linking. Clang warns of options that are of no
        // use, as for an assembler file; not of those between the first and the last.
        Compiler::Clang => &[
            "--start-no-unused-arguments",
            "-Xclang",
            "-fsanitize=thread",
            "-mllvm",
            "-tsan-instrument-read-before-write=1",
            "--end-no-unused-arguments",
        ],
    }
}

/// For linking C and C++: the stub, and nothing of the sanitizer, even if the compiler means to link that.
pub fn link_args(compiler: Compiler) -> Result<Vec<OsString>> {
    let directory = embedded::stub()?;
    let mut args = vec!["-Xlinker".into(), directory.join("stub.o").into()];
    if compiler == Compiler::Gcc {
        // It has no option for that: it finds an empty library of the name first.
        let mut search = OsString::from("-L");
        search.push(&directory);
        args.push(search);
    }
    Ok(args)
}

/// The arguments with which a compiler instruments what it is asked for by `args`.
pub fn c_args(compiler: Compiler, args: &[OsString]) -> Result<Vec<OsString>> {
    let call = Call::of(args);
    if let Some(sanitizer) = call.sanitizer {
        return Err(Error::Input(format!(
            "-fsanitize={sanitizer} cannot be combined with Heisen's own instrumentation; build without it"
        )));
    }
    let mut all: Vec<OsString> = Vec::new();
    if call.compiles && call.thread != Some(false) {
        let flags = match (compiler, call.links && call.is_static) {
            // Gcc refuses to link the sanitizer into such a program, not knowing that we don't. Only the preprocessor,
            // which is the compiler at the same time, is told then.
            (Compiler::Gcc, true) => &["-Wp,-fsanitize=thread"],
            _ => c_compile_flags(compiler),
        };
        all.extend(flags.iter().map(OsString::from));
    }
    if call.links {
        all.extend(link_args(compiler)?);
        if call.thread == Some(true) && compiler == Compiler::Clang {
            all.push("-fno-sanitize-link-runtime".into());
        }
    }
    all.extend_from_slice(args);
    if call.lto && compiler == Compiler::Gcc {
        // Gcc would instrument when it links, but then link the sanitizer, too.
        all.push("-fno-lto".into());
    }
    Ok(all)
}

/// For `rustc`, compiling and linking; each is one argument without spaces but for those in the path of the stub. They are
/// for the crates of a program: its build scripts and procedural macros run in the compiler and need none of it.
pub fn rust_flags() -> Result<Vec<String>> {
    let stub = embedded::stub()?.join("stub.o");
    let Some(stub) = stub.to_str() else {
        return Err(Error::Input(format!(
            "{}: rustc cannot be given a path that is not UTF-8; set XDG_CACHE_HOME to another directory",
            stub.display()
        )));
    };
    Ok(vec![
        // The sanitizer's own option is for nightly compilers. The pass behind it can be named by anyone; it sees only
        // functions with an attribute, which is forced on all.
        "-Cpasses=forceattrs,tsan-module,function(tsan)".into(),
        "-Cllvm-args=-force-attribute=sanitize_thread".into(),
        "-Cllvm-args=-tsan-instrument-read-before-write=1".into(),
        // Not as a library, which would become part of every crate's.
        format!("-Clink-arg={stub}"),
    ])
}
