//! `heisen cc` and `heisen c++`: the real compiler, told to instrument. It takes the place of this process, so that its
//! output, its exit code and what signals do to it are its own.

use heisen_engine::Error;
use heisen_engine::program;
use heisen_engine::program::instrument;
use heisen_engine::program::instrument::Compiler;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Which compiler is meant: the variable that names it, and its name otherwise.
pub const C: (&str, &str) = ("HEISEN_CC", "cc");
/// Likewise for C++.
pub const CPP: (&str, &str) = ("HEISEN_CXX", "c++");

/// Becomes the compiler; returns only if that is not possible. What the compiler is asked for is taken as it was given,
/// all that follows the name of the command.
pub fn run((variable, fallback): (&str, &str)) -> Result<u8, Error> {
    let args: Vec<OsString> = std::env::args_os().skip(2).collect();
    let named = std::env::var_os(variable).filter(|named| !named.is_empty());
    let named = named.unwrap_or_else(|| fallback.into());
    // As for make, it may hold options, too: "ccache gcc", "gcc -m64".
    let words: Vec<OsString> = match named.to_str() {
        Some(text) => text.split_whitespace().map(OsString::from).collect(),
        None => vec![named],
    };
    let Some((program, options)) = words.split_first() else {
        return Err(Error::Input(format!("{variable} is blank; name a compiler, or unset it")));
    };
    let this = std::env::current_exe().ok();
    let is_this = |word: &OsString| program::in_path(word).is_some_and(|path| Some(path) == this);
    if words.iter().any(is_this) {
        return Err(Error::Input(format!(
            "{variable} leads back to heisen; name the real compiler with it, such as gcc or clang"
        )));
    }
    let all = instrument::c_args(Compiler::of(&words), &args)?;
    let error = Command::new(program).args(options).args(all).exec();
    Err(Error::Input(format!(
        "{}: {error}; install a compiler (gcc or clang), or name one with {variable}",
        program.display()
    )))
}
