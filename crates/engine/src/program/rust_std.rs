//! Instruments Rust programs together with the standard library, which comes compiled.
//!
//! The library also comes with bitcode, for optimisation across crates. So the compiler is asked to optimise
//! that way, which makes one module of the entire program. It is also asked to leave the bitcode on disk, and
//! to link with this executable under another name. As the linker, this executable instruments the bitcode
//! with the compiler's own LLVM, replaces the compiler's object file by the result, and calls the real
//! linker. Everything else of the link is as the compiler wants it.

use crate::error::{Error, Result};
use crate::program::embedded;
use heisen_llvm::instrument::instrument;
use heisen_llvm::library::{self, Library};
use heisen_llvm::symbolic::{self, Stage};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The name under which this executable acts as a linker.
pub const LINKER: &str = "heisen-linker";

/// The variable that names the LLVM library to the linker.
const LLVM: &str = "HEISEN_LLVM";
/// The variable that asks the linker for a symbolic build.
const SYMBOLIC: &str = "HEISEN_LINK_SYMBOLIC";
/// The variable that names the real linker.
const REAL: &str = "HEISEN_LINKER";

/// The settings for a compiler.
#[derive(Debug)]
pub struct StdBuild {
    /// Flags for each crate of the program, in addition to optimisation across crates (`-Clto=fat`).
    pub flags: Vec<String>,
    /// Environment variables for the linker.
    pub environment: Vec<(&'static str, OsString)>,
}

impl StdBuild {
    /// The settings for the compiler `rustc` and the linker that it would use. Fails if its LLVM cannot be
    /// used.
    pub fn new(rustc: &OsStr, linker: OsString) -> Result<StdBuild> {
        let llvm = library::find(rustc).map_err(input)?;
        Library::open(&llvm).map_err(input)?;
        let linker_of_ours = embedded::linker(LINKER)?;
        let path = |path: PathBuf| {
            path.into_os_string().into_string().map_err(|path| {
                Error::Input(format!(
                    "{}: rustc cannot be given a path that is not UTF-8; set XDG_CACHE_HOME to another directory",
                    path.display()
                ))
            })
        };
        let stub = path(embedded::stub()?.join("stub.o"))?;
        let flags = vec![
            "--emit=llvm-bc".into(),
            format!("-Clinker={}", path(linker_of_ours)?),
            format!("-Clink-arg={stub}"),
        ];
        Ok(StdBuild { flags, environment: vec![(LLVM, llvm.into()), (REAL, linker)] })
    }

    /// The same for a build whose expressions are instrumented, too.
    pub fn symbolic(mut self) -> StdBuild {
        self.environment.push((SYMBOLIC, "1".into()));
        self
    }
}

fn input(error: heisen_llvm::Error) -> Error {
    Error::Input(format!("the standard library cannot be instrumented: {error}"))
}

/// Links: instruments the compiler's output and becomes the real linker. Returns only if that fails.
pub fn link(args: &[OsString]) -> Error {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some((object, bitcode)) = whole_program(args) {
        let instrumented = variable(LLVM)
            .ok_or_else(|| heisen_llvm::Error(format!("{LLVM} is not set; build with --with-std instead")))
            .and_then(|path| Library::open(Path::new(&path)))
            .and_then(|library| match variable(SYMBOLIC) {
                Some(_) => symbolic::instrument(&library, &bitcode, &object, Stage::Optimised),
                None => instrument(&library, &bitcode, &object),
            });
        if let Err(error) = instrumented {
            return input(error);
        }
        // The bitcode is as large as the program, and no longer needed.
        let _ = fs::remove_file(bitcode);
    }
    let linker = variable(REAL).unwrap_or_else(|| "cc".into());
    let error = Command::new(&linker).args(args).exec();
    Error::Input(format!("{}: {error}; linking needs a C compiler, such as gcc", linker.display()))
}

/// The object file among these arguments that holds the entire program, and the file with its bitcode. The
/// compiler names them `prog.….rcgu.o` and `prog.bc`. If there is no such file, as for a Rust dynamic
/// library, nothing is changed.
fn whole_program(args: &[OsString]) -> Option<(PathBuf, PathBuf)> {
    args.iter().map(Path::new).find_map(|object| {
        let name = object.file_name()?.as_bytes();
        if !name.ends_with(b".rcgu.o") {
            return None;
        }
        let stems = name.iter().enumerate().filter(|&(_, &byte)| byte == b'.').map(|(at, _)| &name[..at]);
        let mut files = stems.map(|stem| {
            let mut file = OsStr::from_bytes(stem).to_owned();
            file.push(".bc");
            object.with_file_name(file)
        });
        Some((object.to_owned(), files.find(|file| file.is_file())?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_found_among_the_arguments() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        let args: Vec<OsString> =
            ["-m64", "symbols.o", "a.b-12.c.0.rcgu.o", "-o", "a.b-12"].map(|name| path(name).into()).into();
        assert_eq!(whole_program(&args), None);
        fs::write(path("symbols.bc"), "").expect("a file");
        assert_eq!(whole_program(&args), None);
        fs::write(path("a.b-12.bc"), "").expect("a file");
        assert_eq!(whole_program(&args), Some((path("a.b-12.c.0.rcgu.o"), path("a.b-12.bc"))));
    }
}
