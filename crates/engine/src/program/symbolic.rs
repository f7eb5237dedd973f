//! Builds C and C++ with instrumented expressions: clang makes bitcode of each source, rustc's LLVM instruments it, and the
//! compiler links the objects.
//!
//! A call of the compiler is split for that: one call of clang for each source, and one for the link. Calls that make
//! neither objects nor programs go to clang as they are.

use crate::error::{Error, Result};
use crate::program::compiler_args::{Call, Part};
use crate::program::instrument::{self, Compiler};
use crate::program::substitutes::Linked;
use heisen_llvm::library::{self, Library};
use heisen_llvm::symbolic::{Stage, instrument};
use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// The compiler of C.
pub const C: &str = "clang";
/// The compiler of C++.
pub const CPP: &str = "clang++";

/// How clang makes bitcode that loses no access to shared memory: not optimised yet, and without the marks of `-O0`, by which
/// no function would ever be inlined. Headers see what they would see with `-O0`, because what glibc has inline otherwise
/// hides functions that the runtime knows.
const BITCODE: [&str; 10] = [
    "-c",
    "-emit-llvm",
    "-O1",
    "-U__OPTIMIZE__",
    "-D__NO_INLINE__=1",
    "-Xclang",
    "-disable-llvm-passes",
    "-fno-lto",
    "-fno-sanitize=thread",
    // Options for the linker have no effect here.
    "-Wno-unused-command-line-argument",
];

/// Options of calls that make neither objects nor programs.
const OTHERS: &[&str] = &[
    "-E",
    "-S",
    "-M",
    "-MM",
    "-fsyntax-only",
    "-emit-ast",
    "-emit-llvm",
    "--analyze",
    "--precompile",
    "--assemble",
    "--preprocess",
    "--dependencies",
    "--user-dependencies",
];

/// Suffixes of sources that are not C or C++, so that clang compiles them as ever.
const NOT_C: &[&str] = &["s", "S", "sx", "bc", "ll", "h", "H", "hh", "hp", "hxx", "hpp", "HPP", "h++", "tcc"];

/// Where the messages of the compiler go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// To the user.
    Shown,
    /// Into [`Ran::said`].
    Captured,
}

/// What the compiler did.
#[derive(Clone, Debug, Default)]
pub struct Ran {
    /// Whether it succeeded.
    pub success: bool,
    /// Its exit code, if it failed.
    pub code: u8,
    /// Its messages, if they were captured.
    pub said: Vec<u8>,
}

impl Ran {
    fn of(status: ExitStatus, said: Vec<u8>) -> Ran {
        let code = status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(1);
        Ran { success: status.success(), code: u8::try_from(code).unwrap_or(1), said }
    }
}

/// The words that call clang: those that the user has chosen if they name a clang, otherwise clang itself.
pub fn clang(name: &str, chosen: &[OsString]) -> Result<Vec<OsString>> {
    if Compiler::of(chosen) == Compiler::Clang {
        return Ok(chosen.to_vec());
    }
    let words = vec![OsString::from(name)];
    if starts(&words) {
        return Ok(words);
    }
    let variable = if name == C { "CC" } else { "CXX" };
    Err(Error::Input(format!(
        "{name} is not installed; a symbolic build needs it, because gcc writes no bitcode: install clang, or name it with \
         {variable} (heisen cc: with HEISEN_{variable})"
    )))
}

/// Whether a program can be started.
fn starts(words: &[OsString]) -> bool {
    let mut command = Command::new(&words[0]);
    command
        .args(&words[1..])
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// A call of the compiler with instrumentation of expressions.
pub fn run(clang: &[OsString], args: &[OsString], output: Output) -> Result<Ran> {
    let call = Call::of(args);
    if let Some(sanitizer) = call.sanitizer {
        return Err(Error::Input(format!(
            "-fsanitize={sanitizer} cannot be combined with Heisen's own instrumentation; build without it"
        )));
    }
    let is_other =
        |part: &Part| matches!(part, Part::Option(words) if OTHERS.iter().any(|other| words[0] == *other));
    let sources = call.parts.iter().filter(|part| matches!(part, Part::Source(..))).count();
    if call.parts.iter().any(is_other) || (sources == 0 && !call.links) {
        return start(clang, args, output);
    }
    let build = Build::new(clang, &call, output)?;
    let mut said = Vec::new();
    let mut link: Vec<OsString> = Vec::new();
    for part in &call.parts {
        match part {
            Part::Source(file, language) => {
                let object = build.object(file, sources);
                let mut ran = build.compile(file, language.as_deref(), &object)?;
                if !ran.success {
                    return Ok(ran);
                }
                said.append(&mut ran.said);
                link.push(object.into());
            }
            Part::Input(file) => link.push(file.clone()),
            Part::Output(file) => link.extend(["-o".into(), file.clone()]),
            Part::Option(words) => link.extend(words.iter().cloned()),
        }
    }
    let compile_only = [OsStr::new("-c"), OsStr::new("--compile")];
    if call.parts.iter().any(|part| matches!(part, Part::Option(words) if compile_only.contains(&&*words[0])))
    {
        return Ok(Ran { success: true, code: 0, said });
    }
    // The output of the compiler is only that of the program that compiled.
    let mut all = if call.links { instrument::link_args(Compiler::Clang)? } else { Vec::new() };
    if call.links && call.thread != Some(false) {
        link.extend(build.substitutes(&link)?);
    }
    all.push("-fno-lto".into());
    if call.thread == Some(true) {
        all.push("-fno-sanitize-link-runtime".into());
    }
    link.retain(|word| !is_dependency(word) && !word.as_encoded_bytes().starts_with(b"-flto"));
    let mut ran = start(clang, &[all, link].concat(), output)?;
    said.append(&mut ran.said);
    Ok(Ran { said, ..ran })
}

/// Whether an option of the program must also hold for what is linked to it.
fn is_for_all_code(option: &OsStr, cpp: bool) -> bool {
    let begins = |known: &&str| option.as_encoded_bytes().starts_with(known.as_bytes());
    ["-m", "--target=", "--sysroot="].iter().any(begins)
        || cpp && ["-std=", "-stdlib=", "-D_GLIBCXX"].iter().any(begins)
}

/// Whether an option asks for a file of dependencies.
fn is_dependency(word: &OsStr) -> bool {
    ["-MD", "-MMD", "-MP", "--write-dependencies", "--write-user-dependencies"]
        .iter()
        .any(|known| word == *known)
}

/// Starts the compiler.
fn start(clang: &[OsString], args: &[OsString], output: Output) -> Result<Ran> {
    let mut command = Command::new(&clang[0]);
    command.args(&clang[1..]).args(args);
    let failed = |e: std::io::Error| {
        Error::Input(format!("{}: {e}; install clang, or name it with HEISEN_CC or CC", clang[0].display()))
    };
    match output {
        Output::Shown => Ok(Ran::of(command.status().map_err(failed)?, Vec::new())),
        Output::Captured => {
            let done = command.output().map_err(failed)?;
            Ok(Ran::of(done.status, done.stderr))
        }
    }
}

/// What all sources of a call share.
struct Build<'a> {
    clang: &'a [OsString],
    call: &'a Call,
    output: Output,
    library: Library,
    directory: Temporary,
    /// The file that the call names as its output.
    named: Option<&'a OsString>,
}

impl<'a> Build<'a> {
    fn new(clang: &'a [OsString], call: &'a Call, output: Output) -> Result<Build<'a>> {
        let rustc =
            std::env::var_os("RUSTC").filter(|named| !named.is_empty()).unwrap_or_else(|| "rustc".into());
        let library = library::find(&rustc)
            .and_then(|path| Library::open(&path))
            .map_err(|error| Error::Input(format!("a symbolic build needs rustc's LLVM: {error}")))?;
        let named = call.parts.iter().rev().find_map(|part| match part {
            Part::Output(file) => Some(file),
            _ => None,
        });
        Ok(Build { clang, call, output, library, directory: Temporary::new()?, named })
    }

    /// The object file of a source: where the user wants it, or a file that is only linked.
    fn object(&self, source: &OsStr, sources: usize) -> PathBuf {
        let compile_only =
            |part: &Part| matches!(part, Part::Option(words) if words[0] == "-c" || words[0] == "--compile");
        let stem = Path::new(source).file_stem().unwrap_or_default().to_owned();
        if !self.call.parts.iter().any(compile_only) {
            return self.directory.new_file(&stem, "o");
        }
        match self.named {
            Some(named) if sources == 1 => named.into(),
            _ => {
                let mut name = if source == "-" { "-".into() } else { stem };
                name.push(".o");
                name.into()
            }
        }
    }

    /// The options of the call for one source.
    fn options(&self, object: &Path) -> Vec<OsString> {
        let mut all: Vec<OsString> = Vec::new();
        let (mut dependencies, mut file, mut target) = (false, false, false);
        for part in &self.call.parts {
            let Part::Option(words) = part else { continue };
            let word = words[0].to_string_lossy();
            let dropped = ["-c", "--compile", "-flto", "-Xlinker", "-l"].contains(&&*word)
                || ["-O", "-flto=", "-Wl,", "-l"].iter().any(|prefix| word.starts_with(prefix));
            dependencies |= is_dependency(&words[0]) && word != "-MP";
            file |= word.starts_with("-MF");
            target |= word.starts_with("-MT") || word.starts_with("-MQ");
            if !dropped {
                all.extend(words.iter().cloned());
            }
        }
        // The compiler derives both from the name of its output, which is not that of the user.
        let wanted = match self.named {
            Some(named) if object.starts_with(&self.directory.path) => Path::new(named),
            _ => object,
        };
        if dependencies && !file {
            all.extend(["-MF".into(), wanted.with_extension("d").into()]);
        }
        if dependencies && !target {
            all.extend(["-MT".into(), wanted.into()]);
        }
        all
    }

    /// Compiles and instruments a source.
    fn compile(&self, source: &OsStr, language: Option<&OsStr>, object: &Path) -> Result<Ran> {
        let ending = Path::new(source).extension().and_then(OsStr::to_str).unwrap_or_default();
        let is_c = match language {
            Some(language) => {
                ["c", "c++", "cpp-output", "c++-cpp-output"].iter().any(|known| language == *known)
            }
            None => !NOT_C.contains(&ending),
        };
        let not_instrumented = self.call.thread == Some(false);
        let mut args = self.options(object);
        let bitcode = self.directory.new_file(OsStr::new("source"), "bc");
        if is_c && !not_instrumented {
            args.extend(BITCODE.map(OsString::from));
            args.extend(["-o".into(), bitcode.clone().into()]);
        } else {
            args.extend(["-c".into(), "-o".into(), object.into()]);
        }
        args.extend(language.into_iter().flat_map(|language| ["-x".into(), language.to_owned()]));
        args.push(source.to_owned());
        let ran = start(self.clang, &args, self.output)?;
        if is_c && !not_instrumented && ran.success {
            instrument(&self.library, &bitcode, object, Stage::Unoptimised)
                .map_err(|error| self.explain(source, error))?;
        }
        Ok(ran)
    }

    /// The objects of the substitutes that these arguments of a link need.
    fn substitutes(&self, link: &[OsString]) -> Result<Vec<OsString>> {
        let mut linked = Linked::default();
        link.iter().for_each(|word| linked.add(Path::new(word)));
        let mut objects = Vec::new();
        for needed in linked.needs() {
            let [source, bitcode, object] =
                ["source", "bc", "o"].map(|ending| self.directory.new_file(OsStr::new(needed.file), ending));
            let failed = |error: String| Error::Internal(format!("{} cannot be built: {error}", needed.file));
            std::fs::write(&source, needed.source).map_err(|error| failed(error.to_string()))?;
            let mut args: Vec<OsString> = BITCODE.map(OsString::from).into();
            args.extend(["-fPIC", "-fexceptions", "-w"].map(OsString::from));
            args.extend(
                self.options(&object).into_iter().filter(|word| is_for_all_code(word, needed.is_cpp())),
            );
            args.extend(["-x", if needed.is_cpp() { "c++" } else { "c" }].map(OsString::from));
            args.extend([source.into(), "-o".into(), bitcode.clone().into()]);
            let ran = start(self.clang, &args, Output::Captured)?;
            if !ran.success {
                return Err(failed(String::from_utf8_lossy(&ran.said).into_owned()));
            }
            instrument(&self.library, &bitcode, &object, Stage::Unoptimised)
                .map_err(|error| failed(error.to_string()))?;
            objects.push(object.into());
        }
        Ok(objects)
    }

    /// What an error of the instrumentation means.
    fn explain(&self, source: &OsStr, error: heisen_llvm::Error) -> Error {
        let source = source.display();
        let clang = self.clang[0].display();
        if error.0.contains(" is no bitcode: ") {
            return Error::Input(format!(
                "{source}: rustc's LLVM {} cannot read the bitcode of {clang}, which is probably newer: install clang {} or \
                 older, and name it with HEISEN_CC or CC ({error})",
                library::VERSION,
                library::VERSION,
            ));
        }
        Error::Input(format!("{source} cannot be instrumented: {error}"))
    }
}

/// A directory that is removed in the end.
struct Temporary {
    path: PathBuf,
    files: std::cell::Cell<u32>,
}

impl Temporary {
    fn new() -> Result<Temporary> {
        let parent = std::env::temp_dir();
        let id = std::process::id();
        for number in 0..1000 {
            let path = parent.join(format!("heisen-cc-{id}-{number}"));
            match std::fs::create_dir(&path) {
                Ok(()) => return Ok(Temporary { path, files: 0.into() }),
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(e) => {
                    return Err(Error::Input(format!(
                        "{}: {e}; set TMPDIR to another directory",
                        path.display()
                    )));
                }
            }
        }
        Err(Error::Input(format!("{} is full of old files of heisen; remove heisen-cc-*", parent.display())))
    }

    /// A file of its own.
    fn new_file(&self, stem: &OsStr, ending: &str) -> PathBuf {
        let number = self.files.get();
        self.files.set(number + 1);
        let mut name = stem.to_owned();
        name.push(format!("-{number}.{ending}"));
        self.path.join(name)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
