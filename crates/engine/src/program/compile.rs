//! Compiles a single source file, for `heisen check FILE.c`.

use crate::error::{Error, Result};
use crate::program::embedded;
use crate::program::instrument;
use crate::program::instrument::Compiler;
use crate::program::rust_std::StdBuild;
use crate::program::symbolic::{self, Output, Ran};
use crate::program::{Program, hash};
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The language of a source file, by its suffix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// `.c`
    C,
    /// `.cc`, `.cpp`, `.cxx`
    Cpp,
    /// `.rs`
    Rust,
}

impl Language {
    /// The language of `path`, if it looks like a source file.
    pub fn of(path: &Path) -> Option<Language> {
        match path.extension()?.to_str()? {
            "c" => Some(Language::C),
            "cc" | "cpp" | "cxx" => Some(Language::Cpp),
            "rs" => Some(Language::Rust),
            _ => None,
        }
    }

    fn compiler(self) -> (OsString, &'static [&'static str], &'static str) {
        let of = |variable: &str, fallback: &str| {
            std::env::var_os(variable).filter(|v| !v.is_empty()).unwrap_or_else(|| fallback.into())
        };
        match self {
            Language::C => (of("CC", "cc"), &["-g", "-pthread"], "a C compiler (gcc or clang), or set CC"),
            Language::Cpp => {
                (of("CXX", "c++"), &["-g", "-pthread"], "a C++ compiler (g++ or clang++), or set CXX")
            }
            Language::Rust => (of("RUSTC", "rustc"), &["-g", "--edition=2021"], "Rust, or set RUSTC"),
        }
    }
}

/// How much of a program is instrumented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Nothing is instrumented.
    AsItIs,
    /// The compiled source is instrumented.
    Program,
    /// The source and Rust's standard library are instrumented.
    WithStd,
    /// The source and Rust's standard library are instrumented, and their expressions.
    Symbolic,
}

/// Compiles `source` into a directory below `directory/build` and returns the program.
pub fn compile(source: &Path, args: Vec<OsString>, directory: &Path, extent: Extent) -> Result<Program> {
    let shown = source.display();
    let language = Language::of(source)
        .ok_or_else(|| Error::Input(format!("{shown}: not a .c, .cc, .cpp or .rs file")))?;
    let absolute = fs::canonicalize(source).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => Error::Input(format!("{shown}: not found; correct its path")),
        _ => Error::Input(format!("{shown}: {e}")),
    })?;
    if !absolute.is_file() {
        return Err(Error::Input(format!("{shown} is not a regular file; name a source file")));
    }
    // Each source path has a directory of its own, so that two files of the same name do not collide.
    let mut of = absolute.as_os_str().as_bytes().to_vec();
    match extent {
        Extent::AsItIs => of.extend(b" as it is"),
        Extent::Program => {}
        Extent::Symbolic => of.extend(b" symbolic"),
        Extent::WithStd if language == Language::Rust => of.extend(b" with std"),
        Extent::WithStd => {
            return Err(Error::Input(format!("{shown} is not a .rs file; --with-std is for Rust only")));
        }
    }
    let build = directory.join("build").join(&hash(&of)[..8]);
    let directory_is_new = !directory.exists();
    fs::create_dir_all(&build).map_err(|e| Error::Input(format!("{}: {e}", build.display())))?;
    let target: PathBuf = build.join(source.file_stem().unwrap_or_default());
    // The compiler gets the path relative to the current directory, as a user would write it, because
    // assertions show it. It is always written the same way, so that building again gives the same
    // executable.
    let here = std::env::current_dir().unwrap_or_default();
    let named = absolute.strip_prefix(&here).unwrap_or(&absolute);
    if let Err(error) = run_compiler(language, named, &target, extent) {
        // `remove_dir` removes only empty directories: existing files remain.
        for made in build.ancestors().take(if directory_is_new { 3 } else { 2 }) {
            let _ = fs::remove_dir(made);
        }
        return Err(error);
    }
    let mut program = Program::find(target.as_os_str(), args)?;
    program.source = Some(absolute);
    program.with_std = extent == Extent::WithStd || extent == Extent::Symbolic && language == Language::Rust;
    Ok(program)
}

fn run_compiler(language: Language, source: &Path, target: &Path, extent: Extent) -> Result<()> {
    let shown = source.display();
    let (compiler, flags, need) = language.compiler();
    let called = compiler.to_string_lossy().into_owned();
    // As for make, the variable may also contain options: "ccache gcc", "gcc -O2".
    let words: Vec<OsString> = called.split_whitespace().map(OsString::from).collect();
    let mut args: Vec<OsString> = flags.iter().map(OsString::from).collect();
    if language != Language::Rust {
        // Searched after all other directories, so that the program's own heisen.h comes first.
        args.extend(["-idirafter".into(), embedded::include()?.into()]);
    }
    args.extend([source.into(), "-o".into(), target.into()]);
    let (compiler, options) = words.split_first().map_or((&compiler, &words[..]), |split| split);
    if extent == Extent::Symbolic && language != Language::Rust {
        let clang =
            symbolic::clang(if language == Language::C { symbolic::C } else { symbolic::CPP }, &words)?;
        return match symbolic::run(&clang, &args, Output::Captured)? {
            Ran { success: true, .. } => Ok(()),
            Ran { said, .. } => {
                let clang = clang.join(" ".as_ref());
                let said = String::from_utf8_lossy(&said);
                let said = said.trim_end();
                Err(Error::Input(format!("{shown} does not compile ({}):\n{said}", clang.display())))
            }
        };
    }
    let mut environment = Vec::new();
    match (extent, language) {
        (Extent::AsItIs, _) => {}
        (Extent::WithStd | Extent::Symbolic, _) => {
            let whole = StdBuild::new(compiler, "cc".into())?;
            let whole = if extent == Extent::Symbolic { whole.symbolic() } else { whole };
            // The output for the linker is requested explicitly, because the bitcode is a second output with
            // the same name.
            args.extend(["--emit=link".into(), "-Clto=fat".into()]);
            args.extend(whole.flags.into_iter().map(OsString::from));
            environment.extend(whole.environment);
        }
        (Extent::Program, Language::Rust) => {
            args.extend(instrument::rust_flags()?.into_iter().map(OsString::from));
        }
        (Extent::Program, _) => args = instrument::c_args(Compiler::of(&words), &args)?,
    }
    let output = Command::new(compiler)
        .args(options)
        .args(args)
        .envs(environment)
        .output()
        .map_err(|e| Error::Input(format!("{called}: {e}; compiling {shown} needs {need}")))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        let words = words.trim_end();
        let said = if words.is_empty() { String::new() } else { format!(":\n{words}") };
        let status = output.status;
        return Err(Error::Input(format!("{shown} does not compile ({called}: {status}){said}")));
    }
    if !target.is_file() {
        return Err(Error::Input(format!(
            "{called} made no executable of {shown}; compiling it needs {need}"
        )));
    }
    Ok(())
}
