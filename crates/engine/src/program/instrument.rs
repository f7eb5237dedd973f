//! Instruments programs: chooses the options for compilers and linkers, and the stub that is linked in.
//!
//! For their thread sanitizer, compilers put a call before each memory access. Heisen leaves out the
//! sanitizer itself: the calls lead to the stub, and from there to Heisen's runtime if the program runs under
//! it.

use crate::error::{Error, Result};
use crate::program::compiler_args::Call;
use crate::program::embedded;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

/// The family of a C or C++ compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compiler {
    /// GNU
    Gcc,
    /// LLVM
    Clang,
}

impl Compiler {
    /// The family of the compiler that these words call, such as `ccache gcc -m64`. Most are known by name;
    /// `cc` may be either, so it is run to find out.
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

/// The options for compiling C and C++.
pub fn c_compile_flags(compiler: Compiler) -> &'static [&'static str] {
    match compiler {
        // Volatile accesses are not treated separately (`--param tsan-distinguish-volatile`): volatile orders
        // nothing between threads, so such an access can race like any other. Gcc does not instrument the
        // copies that it makes itself instead of calling a function. Functions that only read remain
        // builtins: they may be part of a constant expression, which a call cannot be.
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
        // By default clang omits a read if the same place is written afterwards, although another thread may
        // write in between. Options for the compiler proper do not affect linking. Clang warns about options
        // without effect, as for an assembler file, except about those between the first and the last here.
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

/// The options for linking C and C++: the stub, and no part of the sanitizer, even if the compiler wants to
/// link it.
pub fn link_args(compiler: Compiler) -> Result<Vec<OsString>> {
    let directory = embedded::stub()?;
    let mut args = vec!["-Xlinker".into(), directory.join("stub.o").into()];
    if compiler == Compiler::Gcc {
        // Gcc has no option for that, so it finds an empty library of the same name first.
        let mut search = OsString::from("-L");
        search.push(&directory);
        args.push(search);
    }
    Ok(args)
}

/// Adds the options for instrumentation to a compiler's arguments.
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
            // Gcc refuses to link the sanitizer into a static program; it does not know that we leave the
            // sanitizer out. So only the preprocessor, which is also the compiler, gets the option.
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
        // Gcc would instrument at link time, but then also link the sanitizer.
        all.push("-fno-lto".into());
    }
    Ok(all)
}

/// The options for `rustc`, for compiling and linking. Each is one argument without spaces, except those in
/// the path of the stub. They are for the crates of a program. Build scripts and procedural macros run in the
/// compiler and must not get them.
pub fn rust_flags() -> Result<Vec<String>> {
    let stub = embedded::stub()?.join("stub.o");
    let Some(stub) = stub.to_str() else {
        return Err(Error::Input(format!(
            "{}: rustc cannot be given a path that is not UTF-8; set XDG_CACHE_HOME to another directory",
            stub.display()
        )));
    };
    Ok(vec![
        // Only nightly compilers accept the sanitizer's own option, but any compiler can name the pass behind
        // it. The pass sees only functions with an attribute, so the attribute is forced on all.
        "-Cpasses=forceattrs,tsan-module,function(tsan)".into(),
        "-Cllvm-args=-force-attribute=sanitize_thread".into(),
        "-Cllvm-args=-tsan-instrument-read-before-write=1".into(),
        // Not as a library, which would become part of every crate's library.
        format!("-Clink-arg={stub}"),
    ])
}
