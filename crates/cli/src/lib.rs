//! The commands `heisen` and `cargo heisen`: they read the command line, call the engine and show the result.
#![recursion_limit = "256"]
#![forbid(unsafe_code)]

mod cargo;
mod cli;
mod commands;
mod gdb;
mod render;

use clap::Parser;
use cli::args::{Args, Command};
use cli::exit;
use commands::{cc, check, coverage, diff, explain, mcp, replay, run, script, show};
use heisen_engine::program::rust_std;
use render::paint;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub use cargo::main as cargo_heisen;
pub use render::{html, note, plot, sentences};

/// The command `heisen`.
pub fn heisen() -> ExitCode {
    report_panics();
    if let Some(code) = linked() {
        return code;
    }
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return not_understood(&error),
    };
    let gdb = matches!(&args.command, Command::Replay(args) if args.gdb);
    // For `heisen run`, each signal asks the program to end. Heisen ends only with the program.
    let stop = stop_flag(gdb, !matches!(args.command, Command::Run(_)));
    let result = match args.command {
        Command::Check(args) => check::run(&args, stop),
        Command::Replay(args) => replay::run(&args, stop),
        Command::Explain(args) => explain::run(&args, stop),
        Command::Diff(args) => diff::run(&args, stop),
        Command::Show(args) => show::run(&args),
        Command::Script(args) => script::run(&args, stop),
        Command::Run(args) => run::run(&args, stop),
        Command::Coverage(args) => coverage::run(&args),
        Command::Mcp => mcp::run(stop),
        Command::Cc { .. } => cc::run(cc::C),
        Command::Cpp { .. } => cc::run(cc::CPP),
        Command::Header => {
            paint::write(heisen_engine::program::embedded::HEADER, false);
            Ok(exit::CLEAN)
        }
    };
    let code = result.unwrap_or_else(|error| {
        paint::say(&error);
        exit::of(&error)
    });
    ExitCode::from(code)
}

/// If this executable was called as a linker, links and returns the exit code. `link` returns only if it
/// fails.
fn linked() -> Option<ExitCode> {
    let mut words = std::env::args_os();
    let name = words.next()?;
    if Path::new(&name).file_name()? != rust_std::LINKER {
        return None;
    }
    paint::say(rust_std::link(&words.collect::<Vec<_>>()));
    Some(ExitCode::from(exit::INPUT))
}

/// Makes a panic of Heisen print a message and exit with the code for internal errors.
fn report_panics() {
    std::panic::set_hook(Box::new(|info| {
        let trace = std::backtrace::Backtrace::capture();
        paint::say(format_args!("internal error: {info}; please report it\n{trace}"));
        std::process::exit(exit::INTERNAL.into());
    }));
}

/// A flag that SIGTERM and SIGINT (Ctrl-C) set. With gdb, SIGINT is left to gdb. With `at_once`, a second
/// signal ends this process.
fn stop_flag(gdb: bool, at_once: bool) -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let mut signals = vec![signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT];
    if gdb {
        // SIGINT goes to gdb, too, and must not end Heisen.
        let _ = signal_hook::flag::register(signals.remove(1), Arc::default());
    }
    for signal in signals {
        if at_once {
            let code = exit::INTERRUPTED.into();
            let _ = signal_hook::flag::register_conditional_shutdown(signal, code, stop.clone());
        }
        let _ = signal_hook::flag::register(signal, stop.clone());
    }
    stop
}

/// Prints the message of clap: an error of the command line, or the help that the user asked for.
fn not_understood(error: &clap::Error) -> ExitCode {
    let text = error.render().to_string();
    match text.strip_prefix("error: ") {
        Some(message) => paint::say(message.trim_end()),
        // This is help, which clap has formatted already.
        None => drop(error.print()),
    }
    ExitCode::from(if error.use_stderr() { exit::INPUT } else { exit::CLEAN })
}
