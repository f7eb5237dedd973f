//! Attaches scripts to programs that run already under `heisen run`, by name.
//!
//! `heisen run` records where its wire is, in a private directory. A user who may open that directory can
//! talk to the program, in which a kernel thread listens (`runtime::script::system_mode`).

use crate::error::{Error, Result};
use crate::patch::{Named, Patches, Prepared};
use crate::platform::atomic_file;
use crate::platform::sys;
use crate::platform::sys::Mapping;
use crate::process::run_config::{Output, RunConfig};
use crate::process::zygote::Zygote;
use crate::program::Program;
use crate::program::embedded;
use heisen_wire::system::System;
use heisen_wire::{Wire, turn};
use serde::{Deserialize, Serialize};
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{Ordering::Relaxed, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// How long a program may take to answer. The thread that answers has nothing else to do.
const ANSWER: Duration = Duration::from_secs(5);
/// How often a running program is checked.
const LOOK: Duration = Duration::from_millis(20);

/// The record of a running program.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    /// The process of `heisen run`, and its descriptor of the wire.
    keeper: u32,
    wire: i32,
    /// The process of the program.
    program: u32,
}

fn path_of(name: &str) -> Result<PathBuf> {
    if name.is_empty() || name.starts_with('.') || name.contains('/') {
        return Err(Error::Input(format!(
            "{name:?} is no name for a program: it is the name of a file, too"
        )));
    }
    Ok(embedded::running()?.join(name))
}

/// Starts a program under a name to which scripts can attach, and waits for its end.
pub fn keep(runtime: &Path, program: &Program, name: &str, config: &RunConfig) -> Result<ExitStatus> {
    let path = path_of(name)?;
    if let Ok(other) = Running::find(name) {
        return Err(Error::Input(format!(
            "{name} is the name of a program that runs, process {}",
            other.pid
        )));
    }
    let mut config = config.clone();
    config.in_process = false;
    config.listens = true;
    let mut zygote = Zygote::start(runtime, program, &config, Output::Shown)?;
    let entry = Entry { keeper: std::process::id(), wire: zygote.descriptor(), program: zygote.pid() as u32 };
    let text = serde_json::to_vec(&entry).map_err(|e| Error::Internal(e.to_string()))?;
    atomic_file::write(&path, &text)
        .map_err(|e| Error::Internal(format!("{} cannot be written: {e}", path.display())))?;
    zygote.let_go();
    let status = loop {
        if let Some(status) = zygote.ended() {
            break status;
        }
        if config.stop.swap(false, Relaxed) {
            zygote.ask_to_end();
        }
        std::thread::sleep(LOOK);
    };
    // If this fails, the stale record does no harm: its process no longer runs.
    let _ = fs::remove_file(&path);
    Ok(status)
}

/// A program that runs already.
#[derive(Debug)]
pub(super) struct Running {
    pub pid: i32,
    wire: Mapping<Wire>,
    patches: Arc<Patches>,
    prepared: Option<Prepared>,
}

impl Running {
    /// Finds a program by its name.
    pub fn find(name: &str) -> Result<Running> {
        let path = path_of(name)?;
        let none = || {
            Error::Input(format!(
                "no program runs by the name {name}; start it: heisen run {name} -- PROG [ARGS]"
            ))
        };
        let entry = fs::read(&path).ok().and_then(|text| serde_json::from_slice::<Entry>(&text).ok());
        let Entry { keeper, wire, program } = entry.ok_or_else(none)?;
        let file = OpenOptions::new().read(true).write(true).open(format!("/proc/{keeper}/fd/{wire}"));
        let mapping = file.and_then(Mapping::of_another).ok().flatten().ok_or_else(none)?;
        if mapping.wire().zygote.load(Relaxed) != program {
            return Err(none());
        }
        Ok(Running { pid: program as i32, wire: mapping, patches: Arc::default(), prepared: None })
    }

    /// Attaches a script: marks the named places that the program has, and notifies the threads.
    pub fn join(
        &mut self,
        runtime: &Path,
        named: &[Named],
        shared: &Mapping<System>,
        (program, memory): (u32, bool),
    ) -> Result<()> {
        if self.wire().turn.load(SeqCst) != turn::ENGINE {
            return Err(Error::Uncontrolled(format!(
                "process {} does not answer; is another script attached to it?",
                self.pid
            )));
        }
        self.patches = Arc::new(Patches::while_it_runs(named.to_vec()));
        if !named.is_empty() {
            let prepared = self.patches.prepare(&[], runtime, self.wire(), self.pid)?;
            if !prepared.is_empty() {
                self.ask(turn::PATCH)?;
                prepared.write(self.wire(), self.pid)?;
                self.prepared = Some(prepared);
            }
        }
        let world = &self.wire().world;
        world.script.store(std::process::id(), Relaxed);
        world.system.store(shared.descriptor() as u32 + 1, Relaxed);
        world.program.store(program | u32::from(memory) << 16, Relaxed);
        self.ask(turn::JOIN)?;
        if self.wire().world.system.load(Relaxed) == 0 {
            return Err(Error::Uncontrolled(format!(
                "process {} cannot open memory of this one: do both belong to the same user?",
                self.pid
            )));
        }
        Ok(())
    }

    /// Whether the program has instrumented code.
    pub fn is_instrumented(&self) -> bool {
        self.wire().instrumented.load(Relaxed) != 0
    }

    /// The marks in the program.
    pub fn patches(&self) -> &Patches {
        &self.patches
    }

    /// Whether it still runs.
    pub fn is_alive(&self) -> bool {
        Path::new("/proc").join(self.pid.to_string()).exists()
    }

    fn wire(&self) -> &Wire {
        self.wire.wire()
    }

    fn ask(&self, what: u32) -> Result<()> {
        let wire = self.wire();
        wire.turn.store(what, SeqCst);
        sys::futex_wake(&wire.turn);
        let until = Instant::now() + ANSWER;
        while wire.turn.load(SeqCst) != turn::ENGINE {
            let rung = wire.bell.load(SeqCst);
            if !self.is_alive() || Instant::now() > until {
                return Err(Error::Uncontrolled(format!("process {} does not answer", self.pid)));
            }
            if wire.turn.load(SeqCst) != turn::ENGINE {
                sys::futex_wait(&wire.bell, rung, LOOK);
            }
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(prepared) = &self.prepared {
            prepared.remove(self.pid);
        }
        // A program that has ended need not answer.
        let _ = self.ask(turn::LEAVE);
    }
}
