//! `cargo heisen`: explores the tests and programs of a cargo package.
//!
//! | module | what it is |
//! | --- | --- |
//! | `args` | the command line |
//! | `workspace` | the packages of the workspace, from cargo |
//! | `flags` | flags for the compiler: the user's, and those that instrument |
//! | `build` | builds executables |
//! | `selection` | lists the tests of an executable and selects among them |
//! | `expr` | filter expressions |
//! | `test` | `cargo heisen test` |
//! | `result` | the result of a test |
//! | `line` | a result as a line of text, and the summary of all results |
//! | `junit` | all results as JUnit XML |
//! | `program` | `cargo heisen run`, `build` and `replay` |

mod args;
mod build;
mod expr;
mod flags;
mod junit;
mod line;
mod program;
mod result;
mod selection;
mod test;
mod workspace;

use crate::cli::exit;
use crate::not_understood;
use crate::render::paint;
use args::{Args, Command};
use clap::Parser;
use heisen_engine::Error;
use std::process::ExitCode;
use std::sync::atomic::Ordering::Relaxed;

/// Why a command ends early.
#[derive(Debug)]
enum Failure {
    Error(Error),
    /// Cargo has already printed the error.
    Reported,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Error(error)
    }
}

/// The command `cargo heisen`.
pub fn main() -> ExitCode {
    crate::report_panics();
    if let Some(code) = crate::linked() {
        return code;
    }
    let mut words: Vec<_> = std::env::args_os().collect();
    // Cargo passes the name of its subcommand as the first argument.
    if words.get(1).is_some_and(|word| word == "heisen") {
        words.remove(1);
    }
    let args = match Args::try_parse_from(words) {
        Ok(args) => args,
        Err(error) => return not_understood(&error),
    };
    let stop = crate::stop_flag(matches!(&args.command, Command::Replay(args) if args.replay.gdb), true);
    let result = match args.command {
        Command::Test(args) => test::run(&args, &stop),
        Command::Run(args) => program::run(*args, &stop),
        Command::Build(args) => program::build_only(&args),
        Command::Replay(args) => program::replay(&args, &stop),
    };
    let code = match result {
        Ok(code) => code,
        // Ctrl-C interrupts cargo, too.
        Err(Failure::Reported) if stop.load(Relaxed) => exit::INTERRUPTED,
        Err(Failure::Reported) => exit::INPUT,
        Err(Failure::Error(error)) => {
            paint::say(&error);
            exit::of(&error)
        }
    };
    ExitCode::from(code)
}
