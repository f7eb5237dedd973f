//! Prepares each execution and cleans up after it: a scratch directory, and the user's commands before and
//! after.

use crate::error::{Error, Result};
use crate::platform::sys;
use crate::process::capture::Capture;
use crate::process::exit_status;
use crate::process::run_config::RunConfig;
use heisen_wire::ENV_DIR;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How much of a command's output a message quotes, in characters.
const QUOTED: usize = 200;

/// The directory and the commands for the executions of one zygote.
#[derive(Debug)]
pub(crate) struct Hooks {
    config: RunConfig,
    /// The scratch directory, which the executions use one after the other.
    directory: Option<PathBuf>,
    /// Whether we have created the directory, so that we remove it.
    made: bool,
}

impl Hooks {
    /// Returns `None` if there is nothing to do. Each worker has a directory of its own. Its name is the same in
    /// every check, because the program may use it.
    pub fn new(config: &RunConfig) -> Option<Hooks> {
        let base = config.world.dir.as_deref().map(|dir| Path::new(OsStr::from_bytes(dir)));
        let directory = base.map(|base| base.join(format!("run-{}", config.worker)));
        config.world.has_hooks().then(|| Hooks { config: config.clone(), directory, made: false })
    }

    /// The directory in which executions begin.
    pub fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// Creates the directory, then runs the command before an execution.
    pub fn before(&mut self) -> Result<()> {
        if let Some(directory) = &self.directory {
            let shown = directory.display();
            let base = directory.parent().unwrap_or(directory);
            fs::create_dir_all(base).and_then(|()| fs::create_dir(directory)).map_err(|e| match e.kind() {
                std::io::ErrorKind::AlreadyExists if directory.exists() => Error::Input(format!(
                    "{shown} exists already: another Heisen uses it, or one was killed; remove it, or name another \
                     directory with --dir"
                )),
                _ => Error::Input(format!("{shown} cannot be made: {e}; name another directory with --dir")),
            })?;
            self.made = true;
        }
        let Some(command) = self.config.world.before.clone() else { return Ok(()) };
        match self.run("--before", &command)? {
            (status, _) if status.success() => Ok(()),
            (status, said) => Err(Error::Input(format!(
                "the --before command {command:?} failed ({}){}; the check cannot go on",
                describe(status),
                quote(&said)
            ))),
        }
    }

    /// Runs the command after an execution, then removes the directory. Returns a message if the command
    /// failed.
    pub fn after(&mut self) -> Result<Option<String>> {
        let mut failed = None;
        if let Some(command) = self.config.world.after.clone() {
            let (status, said) = self.run("--after", &command)?;
            if !status.success() {
                failed = Some(format!(
                    "the --after command {command:?} failed ({}){}",
                    describe(status),
                    quote(&said)
                ));
            }
        }
        self.remove()?;
        Ok(failed)
    }

    fn remove(&mut self) -> Result<()> {
        let Some(directory) = self.directory.as_deref().filter(|_| self.made) else { return Ok(()) };
        self.made = false;
        fs::remove_dir_all(directory).map_err(|e| {
            Error::Input(format!("{} cannot be removed: {e}; remove it by hand", directory.display()))
        })
    }

    /// Runs a command by the shell, in Heisen's working directory. Returns its status and its output.
    fn run(&self, option: &str, text: &str) -> Result<(ExitStatus, String)> {
        let mut command = Command::new("sh");
        command.arg("-c").arg(text).stdin(Stdio::null()).process_group(0);
        match &self.directory {
            Some(directory) => command.env(ENV_DIR, directory),
            None => command.env_remove(ENV_DIR),
        };
        let capture = Capture::of(&mut command)?;
        let child = command.spawn();
        // Otherwise our copy of the pipe's writing end would keep the pipe open.
        drop(command);
        let mut child =
            child.map_err(|e| Error::Input(format!("the {option} command cannot be started: {e}")))?;
        let began = Instant::now();
        let mut pause = Duration::from_micros(200);
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) => {}
                Err(e) => return Err(Error::Internal(format!("the {option} command was lost: {e}"))),
            }
            let over = self.config.over();
            if over.is_some() || began.elapsed() > self.config.hang {
                sys::kill(-(child.id() as i32), libc::SIGKILL);
                let _ = child.wait();
                return Err(over.unwrap_or_else(|| {
                    let seconds = self.config.hang.as_secs_f32();
                    Error::Input(format!(
                        "the {option} command {text:?} took longer than {seconds} s; make it end, or raise --hang"
                    ))
                }));
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        };
        Ok((status, capture.text()))
    }
}

impl Drop for Hooks {
    fn drop(&mut self) {
        let _ = self.remove();
    }
}

fn describe(status: ExitStatus) -> String {
    exit_status::describe_status(status)
}

/// The last line that a command wrote, for a message.
fn quote(said: &str) -> String {
    match said.lines().rev().find(|line| !line.trim().is_empty()) {
        Some(line) => format!(": {}", line.trim().chars().take(QUOTED).collect::<String>()),
        None => String::new(),
    }
}
