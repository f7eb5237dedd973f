//! `heisen cc` and `heisen c++`: call the real compiler with options that instrument the program.
//!
//! The compiler replaces this process, so its output, exit code and handling of signals are unchanged. With `--symbolic` it
//! does not: it is called for each source and for the link.

use heisen_engine::Error;
use heisen_engine::program;
use heisen_engine::program::instrument;
use heisen_engine::program::instrument::Compiler;
use heisen_engine::program::symbolic::{self, Output};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The option for expressions. It comes first, so that no option of a compiler can be meant.
const SYMBOLIC: &str = "--symbolic";

/// The C compiler: the variable that names it, and the name to use if the variable is not set.
pub const C: (&str, &str) = ("HEISEN_CC", "cc");
/// The same for C++.
pub const CPP: (&str, &str) = ("HEISEN_CXX", "c++");

/// Replaces this process by the compiler; returns only if that fails. The compiler's arguments are all words
/// after the name of the command.
pub fn run((variable, fallback): (&str, &str)) -> Result<u8, Error> {
    let mut args: Vec<OsString> = std::env::args_os().skip(2).collect();
    let symbolic = args.first().is_some_and(|first| first == SYMBOLIC);
    if symbolic {
        args.remove(0);
    }
    let fallback = match (symbolic, fallback) {
        (false, fallback) => fallback,
        (true, "cc") => symbolic::C,
        (true, _) => symbolic::CPP,
    };
    let named = std::env::var_os(variable).filter(|named| !named.is_empty());
    let named = named.unwrap_or_else(|| fallback.into());
    // The variable may hold several words, as `CC` does for make: "ccache gcc", "gcc -m64".
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
    if symbolic {
        if Compiler::of(&words) != Compiler::Clang {
            return Err(Error::Input(format!(
                "{variable} names {}, which writes no bitcode; name a clang for {SYMBOLIC}, or unset it",
                program.display()
            )));
        }
        let ran = symbolic::run(&words, &args, Output::Shown)?;
        return Ok(if ran.success { 0 } else { ran.code });
    }
    let all = instrument::c_args(Compiler::of(&words), &args)?;
    let error = Command::new(program).args(options).args(all).exec();
    Err(Error::Input(format!(
        "{}: {error}; install a compiler (gcc or clang), or name one with {variable}",
        program.display()
    )))
}
