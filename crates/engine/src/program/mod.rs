//! Finds, compiles and instruments the program under test, and explains why a program cannot be run.
//! This folder reads and builds files: it starts compilers, never the program.

pub mod compile;
pub(crate) mod compiler_args;
pub mod embedded;
pub(crate) mod foreign;
pub mod instrument;
pub(crate) mod libraries;
pub mod rust_std;
pub(crate) mod sanitizer;
mod substitutes;
pub mod symbolic;
pub(crate) mod test_program;
pub mod uninstrumented;

use crate::error::{Error, Result};
use crate::platform::sys;
use crate::program::libraries::Elf;
use object::elf;
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Object, ObjectSection};
use sha2::{Digest, Sha256};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A program with its arguments.
#[derive(Clone, Debug)]
pub struct Program {
    /// Absolute path of the executable, or of a link to it.
    pub path: PathBuf,
    /// Its arguments, without its name.
    pub args: Vec<OsString>,
    /// The source file, if Heisen compiled it.
    pub source: Option<PathBuf>,
    /// Hash of the executable.
    pub hash: String,
    /// Whether the executable contains instrumented code.
    pub instrumented: bool,
    /// Whether it appears to be a Rust program.
    pub rust: bool,
    /// Whether it has a test harness, which may have no test to run.
    pub test_program: bool,
    /// Whether Heisen compiled it with an instrumented Rust standard library.
    pub with_std: bool,
    /// Whether it is a symbolic build.
    pub symbolic: bool,
    /// Whether its executions begin where it calls `heisen_ready`, rather than at `main`.
    pub at_ready: bool,
    /// The directory it is started in, if not the current one.
    pub directory: Option<PathBuf>,
    /// Environment variables in addition to those of this process.
    pub environment: Vec<(OsString, OsString)>,
}

/// SHA-256 as text.
pub fn hash(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Program {
    /// The name with which files about the program begin.
    pub fn short_name(&self) -> String {
        let name = match &self.source {
            Some(source) => source.file_stem(),
            None => self.path.file_name(),
        };
        name.unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Finds the program as a shell would, and checks that the runtime can take control of it.
    pub fn find(name: &OsStr, args: Vec<OsString>) -> Result<Program> {
        let path = locate(name)?;
        let shown = path.display();
        let meta = fs::metadata(&path).map_err(|e| Error::Input(format!("{shown}: {e}")))?;
        if meta.is_dir() {
            return Err(Error::Input(format!("{shown} is a directory, not a program; name the executable")));
        }
        if !meta.is_file() {
            return Err(Error::Input(format!("{shown} is not a regular file; name the executable")));
        }
        let bytes = fs::read(&path).map_err(|e| Error::Input(format!("{shown}: {e}")))?;
        inspect(&shown.to_string(), &bytes)?;
        if !sys::executable(&path) {
            return Err(Error::Input(format!("{shown} is not executable (chmod +x it)")));
        }
        const SET_ID: u32 = 0o6000;
        if meta.mode() & SET_ID != 0 {
            return Err(Error::Uncontrolled(format!(
                "{shown} is setuid or setgid: the loader ignores preloaded libraries for it; check a copy without \
                 these bits"
            )));
        }
        sanitizer::refuse(&path, &bytes)?;
        let instrumented = !uninstrumented::stubs(&bytes).is_empty();
        Ok(Program {
            hash: hash(&bytes),
            path,
            args,
            source: None,
            instrumented,
            rust: is_rust(&bytes),
            test_program: test_program::is_test_program(&bytes),
            with_std: false,
            symbolic: is_symbolic(&bytes),
            at_ready: false,
            directory: None,
            environment: Vec::new(),
        })
    }
}

/// Whether an executable contains Rust's standard library, which names its source files where it may panic.
/// (The stub of instrumented programs is compiled by rustc too, but without that library.)
fn is_rust(bytes: &[u8]) -> bool {
    const NAMED: &[u8] = b"library/std/src/";
    let strings = Elf::parse(bytes).ok().and_then(|elf| elf.section_by_name(".rodata")?.data().ok());
    strings.unwrap_or_default().windows(NAMED.len()).any(|text| text == NAMED)
}

/// Whether an executable has symbolic code, by the note that each object with such code has.
fn is_symbolic(bytes: &[u8]) -> bool {
    Elf::parse(bytes).is_ok_and(|elf| elf.section_by_name(heisen_abi::symbolic::NOTE).is_some())
}

fn locate(name: &OsStr) -> Result<PathBuf> {
    let missing = |hint: &str| Error::Input(format!("{}: not found{hint}", Path::new(name).display()));
    if name.as_bytes().contains(&b'/') {
        return absolute(Path::new(name)).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => missing("; build it first, or correct its path"),
            _ => Error::Input(format!("{}: {e}", Path::new(name).display())),
        });
    }
    match find_in_path(name) {
        Some(path) => absolute(&path).map_err(|e| Error::Input(format!("{}: {e}", path.display()))),
        None if Path::new(name).exists() => Err(missing(&format!(
            " in PATH (for the one in this directory write ./{})",
            Path::new(name).display()
        ))),
        None => Err(missing(" in PATH; install it, or write its path")),
    }
}

fn find_in_path(name: &OsStr) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|p| p.is_file() && sys::executable(p))
}

/// The file that a shell would start by this name, with links resolved; `None` if there is no such file.
pub fn in_path(name: &OsStr) -> Option<PathBuf> {
    let path = if name.as_bytes().contains(&b'/') { Some(name.into()) } else { find_in_path(name) };
    fs::canonicalize(path?).ok()
}

/// The absolute path of an existing file. If the name is a link, it is not resolved: some programs decide by
/// the name they are started under what to do, as Debian's `redis-server` does.
fn absolute(path: &Path) -> std::io::Result<PathBuf> {
    let resolved = fs::canonicalize(path)?;
    let parent = path.parent().map(|p| if p.as_os_str().is_empty() { Path::new(".") } else { p });
    match (path.file_name(), parent) {
        (Some(name), Some(parent)) => Ok(fs::canonicalize(parent)?.join(name)),
        _ => Ok(resolved),
    }
}

/// Refuses files into which the runtime cannot be preloaded.
fn inspect(shown: &str, bytes: &[u8]) -> Result<()> {
    if let Some(rest) = bytes.strip_prefix(b"#!") {
        let line = rest.split(|&b| b == b'\n').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        // `env` would only start the interpreter, which would not be controlled.
        let env = |word: &&str| word.ends_with("/env") || *word == "-S";
        let interpreter: Vec<&str> = line.split_whitespace().skip_while(env).collect();
        let interpreter = interpreter.join(" ");
        return Err(Error::Input(format!(
            "{shown} is a script; check its interpreter instead: heisen check -- {interpreter} {shown}"
        )));
    }
    if !bytes.starts_with(&elf::ELFMAG) {
        return Err(Error::Input(format!(
            "{shown} is not an ELF executable{}; Heisen checks compiled programs",
            if bytes.is_empty() { " but empty" } else { "" }
        )));
    }
    let class = bytes.get(4).copied().unwrap_or(0);
    if class == elf::ELFCLASS32.0 {
        return Err(Error::Uncontrolled(format!(
            "{shown} is a 32-bit program; Heisen runs 64-bit ones (build it with -m64)"
        )));
    }
    let broken = || Error::Input(format!("{shown} is a damaged ELF file; build it again"));
    let header = elf::FileHeader64::<object::Endianness>::parse(bytes).map_err(|_| broken())?;
    let endian = header.endian().map_err(|_| broken())?;
    let machine = header.e_machine(endian);
    if machine != elf::EM_X86_64 {
        return Err(Error::Uncontrolled(format!(
            "{shown} is built for another processor; Heisen runs x86-64 programs (build it for this machine)"
        )));
    }
    let kind = header.e_type(endian);
    if kind != elf::ET_EXEC && kind != elf::ET_DYN {
        return Err(Error::Input(format!(
            "{shown} is an object file or core dump, not a program; link it first"
        )));
    }
    let segments = header.program_headers(endian, bytes).map_err(|_| broken())?;
    let truncated =
        |s: &elf::ProgramHeader64<_>| s.p_type(endian) == elf::PT_LOAD && s.data(endian, bytes).is_err();
    if segments.iter().any(truncated) {
        return Err(broken());
    }
    let interpreter = segments.iter().find_map(|s| s.interpreter(endian, bytes).ok().flatten());
    match interpreter {
        None => Err(Error::Uncontrolled(format!(
            "{shown} is statically linked (or a library): the runtime cannot be preloaded; link it dynamically, \
             without -static"
        ))),
        Some(path) if String::from_utf8_lossy(path).contains("ld-linux-x86-64") => Ok(()),
        Some(path) => Err(Error::Uncontrolled(format!(
            "{shown} is linked for another C library ({}); Heisen knows glibc",
            String::from_utf8_lossy(path).trim_end_matches('\0')
        ))),
    }
}
