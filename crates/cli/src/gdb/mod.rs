//! `heisen replay --gdb`: runs gdb on an execution, whose threads are kernel threads.
//!
//! The commands inside gdb are in `gdb.py`. Heisen passes this script to gdb as a file, with a second file
//! that describes the session. They communicate through two more files. Heisen writes into one of them which
//! process to attach to. The script writes into the other what gdb could not do. When the process ends, or is
//! killed to go back in time, Heisen starts a new one.

use crate::cli::args::ReplayArgs;
use crate::cli::exit;
use heisen_engine::Error;
use heisen_engine::explain::debugger::{WANTS, end};
use heisen_engine::platform::atomic_file;
use heisen_engine::process::run_config::{Output, RunConfig};
use heisen_engine::process::slots::Job;
use heisen_engine::process::zygote::Zygote;
use heisen_engine::program::Program;
use heisen_trace::{FindingKind, Op, Schedule};
use serde_json::json;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Heisen's commands for gdb, in Python.
const SCRIPT: &str = include_str!("gdb.py");

pub fn run(
    args: &ReplayArgs,
    schedule: &Schedule,
    program: &Program,
    config: &RunConfig,
    runtime: &Path,
) -> Result<u8, Error> {
    check_gdb()?;
    let directory = Scratch::new()?;
    let [session, script, process, failure] =
        ["session.json", "heisen.py", "process", "failure"].map(|name| directory.0.join(name));
    atomic_file::write(&script, SCRIPT.as_bytes())?;
    let mut zygote = Zygote::start(runtime, program, config, Output::Shown)?;
    atomic_file::write(
        &session,
        describe(schedule, runtime, [&process, &failure], config).to_string().as_bytes(),
    )?;
    let mut gdb = Command::new("gdb")
        .arg("-q")
        .arg(&program.path)
        .arg("-x")
        .arg(&script)
        .args(&args.gdb_args)
        .env("HEISEN_SESSION", &session)
        .spawn()
        .map_err(|e| Error::Input(format!("gdb cannot be started: {e}")))?;
    let (mut ended, mut number) = (None, 0);
    let ran = zygote.debug(
        Job::Schedule(schedule),
        &mut |pid| {
            number += 1;
            atomic_file::write(&process, format!("{number} {pid}").as_bytes())
        },
        &mut || {
            ended = gdb.try_wait().map_err(|e| Error::Internal(format!("gdb is lost: {e}")))?;
            Ok(ended.is_some())
        },
    );
    if ended.is_none() {
        let _ = gdb.kill();
        let _ = gdb.wait();
    }
    ran?;
    if let Ok(what) = std::fs::read_to_string(&failure) {
        return Err(Error::Uncontrolled(format!(
            "gdb failed at a command of Heisen: {}; heisen replay without --gdb shows the schedule",
            what.trim_end_matches('.')
        )));
    }
    match ended {
        Some(status) if !status.success() => {
            Err(Error::Input(format!("gdb failed ({status}); its output says why")))
        }
        _ => Ok(exit::CLEAN),
    }
}

/// The description of the session for the script.
fn describe(
    schedule: &Schedule,
    runtime: &Path,
    [process, failure]: [&Path; 2],
    config: &RunConfig,
) -> serde_json::Value {
    let moved = config.patches.moved().unwrap_or_default();
    let moved_pieces: Vec<_> =
        moved.pieces.iter().map(|piece| (piece.start, piece.of, piece.lower)).collect();
    let outcome = schedule.outcome.as_ref();
    let kind = outcome.map(|(kind, _)| *kind);
    // Where gdb stops for the failure. A crash is a signal, at which gdb stops by itself. Every failure that
    // is not listed here is at the end of the execution.
    let failing = match kind {
        Some(FindingKind::Panic) => "throw",
        Some(FindingKind::Misuse) => "misuse",
        _ => "end",
    };
    let ends: &[u32] = match kind {
        Some(FindingKind::Assertion) => &[end::ASSERT],
        Some(FindingKind::Deadlock) => &[end::DEADLOCK],
        Some(FindingKind::Livelock | FindingKind::GoodSamaritan) => &[end::STEP_LIMIT],
        Some(FindingKind::ExitStatus) => &[end::EXIT],
        Some(FindingKind::Crash) => &[end::ABORT],
        _ => &[],
    };
    let ops: Vec<(u8, &str)> = Op::ALL.iter().map(|&op| (op as u8, op.name())).collect();
    let threads: Vec<(u16, &str)> = schedule.threads.iter().map(|t| (t.thread.0, t.start.as_str())).collect();
    json!({
        "process": process.display().to_string(),
        "failure": failure.display().to_string(),
        "runtime": runtime.canonicalize().unwrap_or_else(|_| runtime.to_owned()).display().to_string(),
        "outcome": outcome.map(|(kind, message)| format!("{kind}: {message}")),
        "failing": failing,
        "ends": ends,
        "crash": kind == Some(FindingKind::Crash),
        "exit": end::EXIT,
        "wants": WANTS.into_iter().collect::<std::collections::BTreeMap<_, _>>(),
        "ops": ops,
        "threads": threads,
        "moved": moved_pieces,
        "moved_end": moved.end,
    })
}

/// Returns an error unless there is a gdb with Python.
fn check_gdb() -> Result<(), Error> {
    let tried = Command::new("gdb")
        .args(["-nx", "-batch", "-ex", "python print('heisen')"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    match tried {
        Err(error) => {
            Err(Error::Input(format!("gdb cannot be started ({error}); install it, or put it in PATH")))
        }
        Ok(output) if !output.stdout.starts_with(b"heisen") => Err(Error::Input(
            "this gdb has no Python, which the commands of Heisen are written in; install a gdb that has it"
                .into(),
        )),
        Ok(_) => Ok(()),
    }
}

/// A private directory that is removed when this value is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Scratch, Error> {
        let path = std::env::temp_dir().join(format!("heisen-gdb-{}", std::process::id()));
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(|e| Error::Input(format!("{} cannot be made: {e}; set TMPDIR", path.display())))?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
