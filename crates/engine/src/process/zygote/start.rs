//! Starts a program with the runtime preloaded, waits until it is parked, and reports the reason if it never
//! is.

use super::{Output, RunConfig, SUSPECT, Waited, Zygote};
use crate::error::{Error, Result};
use crate::platform::seccomp;
use crate::platform::sys;
use crate::platform::sys::Mapping;
use crate::process::capture::Capture;
use crate::process::exit_status::describe_status;
use crate::process::hooks::Hooks;
use crate::process::run_config::BACKTRACE;
use crate::process::stdin;
use crate::process::symbolic_trace::TraceMemory;
use crate::program::Program;
use heisen_trace::World;
use heisen_wire::{ENV_DIR, ENV_FD, Wire, access, boot, heap, park, runner, turn, world};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{Ordering::Relaxed, Ordering::SeqCst};

impl Zygote {
    /// Starts the program and waits until it is parked.
    pub fn start(runtime: &Path, program: &Program, config: &RunConfig, output: Output) -> Result<Zygote> {
        let mut zygote = Zygote::spawn(runtime, program, config, output)?;
        let waited = zygote.wait(turn::BOOTING, None);
        match waited {
            Waited::Parked => {
                zygote.patch(runtime)?;
                if let Some(scope) = &config.scope {
                    scope.write(zygote.wire(), zygote.pid())?;
                }
                zygote.all_points().write(zygote.wire());
                Ok(zygote)
            }
            Waited::Over(why) => Err(why),
            Waited::Gone(_) if output == Output::Dropped => {
                // Start it once more with its output captured, for the message.
                drop(zygote);
                Zygote::start(runtime, program, config, Output::Captured)?;
                Err(Error::Uncontrolled(
                    "the program failed before it was parked once, and the second time did not; run the check again"
                        .into(),
                ))
            }
            waited => {
                let why = match waited {
                    Waited::Gone(status) => describe_early_end(&zygote, status),
                    _ => {
                        let (point, what) = match program.at_ready {
                            true => ("heisen_ready", "its set-up only takes"),
                            false => ("main", "its constructors only take"),
                        };
                        let seconds = config.hang.as_secs_f32();
                        format!("does not reach {point} within {seconds} s; if {what} long, raise --hang")
                    }
                };
                let words = zygote.end_output();
                let words = words.trim_end();
                let said = if words.is_empty() { String::new() } else { format!("; it said:\n{words}") };
                Err(Error::Uncontrolled(format!("{} {why}{said}", program.path.display())))
            }
        }
    }

    /// Patches the parked program, as its environment asks for.
    fn patch(&mut self, runtime: &Path) -> Result<()> {
        let RunConfig { world, patches, .. } = self.config.clone();
        if world.patch.is_empty() && !patches.has_marks() {
            return Ok(());
        }
        let prepared = patches.prepare(&world.patch, runtime, self.wire(), self.pid())?;
        if prepared.is_empty() {
            return Ok(());
        }
        self.wire().turn.store(turn::PATCH, SeqCst);
        sys::futex_wake(&self.wire().turn);
        match self.wait(turn::BOOTING, None) {
            Waited::Parked => prepared.write(self.wire(), self.pid()),
            Waited::Over(why) => Err(why),
            Waited::Gone(status) => {
                let how = describe_status(status);
                Err(Error::Uncontrolled(format!("the parked program is gone ({how}) before it was patched")))
            }
            Waited::Stuck | Waited::Asked | Waited::Late => {
                Err(Error::Internal("the parked program does not answer".into()))
            }
        }
    }

    fn spawn(runtime: &Path, program: &Program, config: &RunConfig, output: Output) -> Result<Zygote> {
        let mapping = Mapping::new().map_err(|e| {
            Error::Internal(format!("no shared memory: {e}; raise the limits that ulimit -a shows"))
        })?;
        mapping.wire().park.store(if program.at_ready { park::READY } else { park::MAIN }, Relaxed);
        let hooks = Hooks::new(config);
        let directory = hooks.as_ref().and_then(Hooks::directory);
        write_world(mapping.wire(), &config.world, program);
        write_heap(mapping.wire(), &config.world, program);
        // A leak is a block to which nothing points. A saved copy of the program's memory would point to it.
        let plain = output == Output::Dropped && hooks.is_none() && !config.world.leaks;
        if plain && config.in_process {
            mapping.wire().reset.store(runner::ASKED, Relaxed);
        }
        let mut command = Command::new(&program.path);
        command.envs(program.environment.iter().map(|(name, value)| (name, value)));
        // In a symbolic build a backtrace is millions of steps.
        if !config.backtraces || program.symbolic {
            command.env(BACKTRACE, "0");
        }
        if let Some(directory) = &program.directory {
            command.current_dir(directory);
        }
        match directory {
            Some(directory) => command.env(ENV_DIR, directory),
            None => command.env_remove(ENV_DIR),
        };
        command.args(&program.args).stdin(stdin::open(&config.world)?);
        let mut capture = None;
        match output {
            Output::Dropped => {
                command.stdout(Stdio::null()).stderr(Stdio::null());
            }
            Output::Captured => capture = Some(Capture::of(&mut command)?),
            Output::Shown => {}
        }
        sys::set_apart(&mut command, config.memory);
        if !config.listens && config.part.is_none() {
            sys::set_filter(&mut command, seccomp::instructions());
        }
        let fd = mapping.pass_to(&mut command);
        let symbolic = config
            .symbolic
            .as_ref()
            .map(|symbolic| TraceMemory::new(symbolic, &config.world.marked))
            .transpose()?;
        if let Some(memory) = &symbolic {
            memory.pass_to(&mut command);
        }
        if config.listens {
            mapping.wire().world.flags.fetch_or(world::FREE | world::LISTENS, Relaxed);
        }
        if let Some(part) = &config.part {
            let world = &mapping.wire().world;
            world.flags.fetch_or(world::FREE, Relaxed);
            world.system.store(part.shared.pass_to(&mut command) as u32 + 1, Relaxed);
            world.program.store(part.program | u32::from(part.memory) << 16, Relaxed);
        }
        command.env("LD_PRELOAD", preload(runtime)).env(ENV_FD, "");
        let width = 2 * FRAME - environment_size(&command) % FRAME;
        command.env(ENV_FD, format!("{fd:0width$}"));
        let child = command
            .spawn()
            .map_err(|e| Error::Input(format!("{} cannot be started: {e}", program.path.display())))?;
        Ok(Zygote {
            child,
            mapping,
            config: config.clone(),
            capture,
            hooks,
            spinning: false,
            suspicion: SUSPECT,
            known: Default::default(),
            symbolic,
            deadline: None,
            gone: false,
            ended: false,
        })
    }
}

/// The environment lies above the first stack. It is padded to a multiple of this, so that the stack has the
/// same addresses whatever shell starts the program. The runtime removes the padding.
const FRAME: usize = 16 << 10;

/// How many bytes of the environment the kernel puts on the first stack: the strings, and a pointer to each. The kernel aligns
/// the pointers, together with those to the arguments, to 16 bytes, so an odd number of them takes the place of one more.
fn environment_size(command: &Command) -> usize {
    let mut environment: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => environment.insert(name.to_owned(), value.to_owned()),
            None => environment.remove(name),
        };
    }
    let strings: usize = environment.iter().map(|(name, value)| name.len() + value.len() + 2).sum();
    // The number of arguments, their strings with the program's name, and two null pointers. What follows is even.
    let pointers = environment.len() + command.get_args().count() + 4;
    strings + pointers.next_multiple_of(2) * size_of::<usize>()
}

fn write_world(wire: &Wire, from: &World, program: &Program) {
    let mut flags = 0;
    if from.real_time {
        flags |= world::REAL_TIME;
    }
    if from.dir.is_some() {
        flags |= world::DIR;
    }
    if from.stdin.is_some() {
        flags |= world::STDIN;
    }
    wire.world.seed.store(from.seed, Relaxed);
    wire.world.cpus.store(from.cpus.unwrap_or(0), Relaxed);
    wire.world.flags.store(flags, Relaxed);
    // The access points are written when the program is parked.
    wire.access_flags.store(if from.accesses.check { access::CHECK } else { 0 }, Relaxed);
    if program.symbolic && program.rust {
        wire.access_flags.fetch_or(access::NO_OVERFLOW_HANDLER, Relaxed);
    }
}

/// Only the checked heap finds leaks, so asking for leaks switches it on.
fn write_heap(wire: &Wire, from: &World, program: &Program) {
    let on = from.heap.unwrap_or(program.instrumented || from.leaks);
    let leaks = if from.leaks { heap::LEAKS } else { 0 };
    let divided = if program.symbolic { heap::DIVIDED } else { 0 };
    wire.heap.flags.store(if on { heap::ON | leaks | divided } else { 0 }, Relaxed);
}

fn preload(runtime: &Path) -> PathBuf {
    match std::env::var_os("LD_PRELOAD").filter(|v| !v.is_empty()) {
        None => runtime.to_owned(),
        Some(theirs) => {
            let mut both = runtime.as_os_str().to_owned();
            both.push(":");
            both.push(theirs);
            both.into()
        }
    }
}

fn describe_early_end(zygote: &Zygote, status: ExitStatus) -> String {
    let loaded = zygote.wire().zygote.load(Relaxed) != 0;
    match zygote.wire().boot.load(Relaxed) {
        boot::MAIN => {
            return format!(
                "ended ({}) without calling heisen_ready; call it after the set-up, or leave out --at-ready",
                describe_status(status)
            );
        }
        boot::THREADS => {
            return "called heisen_ready while it had more than one thread; call it before the others are created, or \
                    after they were joined"
                .to_owned();
        }
        _ => {}
    }
    match (status.code(), status.signal()) {
        (Some(127), _) if !loaded => "could not be loaded (exit status 127)".to_owned(),
        (Some(code), _) if !loaded => {
            format!(
                "ended with exit status {code} without loading Heisen's runtime: does it clear LD_PRELOAD?"
            )
        }
        _ => format!(
            "ended before main ({}), in a constructor or the loader; see what it does without Heisen",
            describe_status(status)
        ),
    }
}
