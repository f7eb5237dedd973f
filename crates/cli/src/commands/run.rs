//! `heisen run`: runs a program under a name, so that scripts can attach to it.

use crate::cli::args::RunArgs;
use crate::render::paint::say;
use heisen_engine::Error;
use heisen_engine::process::run_config::RunConfig;
use heisen_engine::process::system;
use heisen_engine::program::Program;
use heisen_engine::program::embedded;
use std::os::unix::process::ExitStatusExt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A shell adds this to the number of the signal that ended a program.
const BY_SIGNAL: i32 = 128;

/// Runs the program to its end and returns its exit code.
pub fn run(args: &RunArgs, stop: Arc<AtomicBool>) -> Result<u8, Error> {
    let [program, arguments @ ..] = args.command.as_slice() else {
        return Err(Error::Input("nothing to run; write: heisen run NAME -- PROG [ARGS]".into()));
    };
    let program = Program::find(program, arguments.to_vec())?;
    let config = RunConfig { stop, ..RunConfig::default() };
    let status = system::keep(&embedded::runtime()?, &program, &args.name, &config)?;
    let code = status.code().or(status.signal().map(|signal| BY_SIGNAL + signal)).unwrap_or(BY_SIGNAL);
    if status.signal().is_some() {
        say(format_args!("{} was ended by a signal ({status})", args.name));
    }
    Ok(code as u8)
}
