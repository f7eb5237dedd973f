//! Runs programs in system mode: their threads run in parallel and in several processes, and a script holds
//! them only at the events it names. CONCURRIT (PLDI'13), section 4.
//!
//! All processes share the memory of `heisen_wire::system` with the script, which runs here.
//! `runtime::script::system_mode` is the other side. Nobody knows whether a running thread will ever reach an
//! event, so every wait for one has a time limit.

mod running;

pub use running::keep;

use crate::error::{Error, Result};
use crate::patch::{Named, Patches};
use crate::platform::sys;
use crate::platform::sys::Mapping;
use crate::process::run_config::{Output, Part, RunConfig};
use crate::process::zygote::Zygote;
use crate::program::Program;
use heisen_inspect::{Symbols, View};
use heisen_wire::script::{Event, MAX_SCRIPTED};
use heisen_wire::system::{self, Few, WITHDRAWN, state};
use running::Running;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// How often processes are checked while nothing happens.
const LOOK: Duration = Duration::from_millis(10);
/// How long to poll before waiting in the kernel: most answers come at once.
const AT_ONCE: Duration = Duration::from_micros(30);
/// How long a program has to end after it was asked to.
const GRACE: Duration = Duration::from_secs(5);

/// A program that a script uses.
#[derive(Debug)]
struct Known {
    name: String,
    symbols: Symbols,
    how: How,
}

/// How a script gets at a program.
#[derive(Debug)]
enum How {
    /// The script starts it. The zygote here stays parked: all processes of the program have the same
    /// addresses.
    Starts(Box<(Program, RunConfig, Zygote)>),
    /// It was running already.
    Runs(Box<Running>),
}

impl Known {
    /// A process of the program that always exists.
    fn pid(&self) -> i32 {
        match &self.how {
            How::Starts(program) => program.2.pid(),
            How::Runs(running) => running.pid,
        }
    }

    /// The process of an attached program that has ended.
    fn gone(&self) -> Option<i32> {
        match &self.how {
            How::Runs(running) if !running.is_alive() => Some(running.pid),
            _ => None,
        }
    }
}

/// A program as the command line names it.
#[derive(Clone, Debug)]
pub enum Source {
    /// The script starts it.
    Start(Program),
    /// It runs already, under this name.
    Running,
}

/// A process that the script started.
#[derive(Debug)]
struct Process {
    program: usize,
    zygote: Zygote,
    status: Option<ExitStatus>,
    /// Whether the script asked it to end.
    asked: bool,
}

/// Programs and their running processes.
#[derive(Debug)]
pub struct System {
    shared: Arc<Mapping<system::System>>,
    runtime: PathBuf,
    programs: Vec<Known>,
    processes: Vec<Process>,
    /// Whether the script knows each thread, by thread number.
    known: Vec<bool>,
    /// Set when the user wants to stop.
    stop: Arc<AtomicBool>,
}

/// The result of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A thread has reached an event that the script waits for.
    Event(usize),
    /// All threads that the script waits for have ended.
    Ended,
    /// All processes have ended, or one has crashed.
    Gone,
    /// The caller's own condition has become true.
    Done,
    /// None of these happened in time.
    Late,
}

/// What a script wants next.
#[derive(Clone, Debug, Default)]
pub struct Command {
    /// Kinds of events that the script mentions, as bits.
    pub kinds: u32,
    /// The events that the script waits for, as a program for the runtime.
    pub until: Vec<u64>,
    /// The events that stop threads known to the script.
    pub mentioned: Vec<u64>,
    /// The threads that the script waits for.
    pub select: Vec<usize>,
    /// Whether the script also waits for threads that it does not know.
    pub new: bool,
    /// The threads that the script knows.
    pub known: Vec<usize>,
    /// The threads that go on.
    pub release: Vec<usize>,
}

fn write(set: &Few, threads: impl Iterator<Item = usize>) {
    let mut words = [0u64; MAX_SCRIPTED / 64];
    threads.filter(|thread| *thread < MAX_SCRIPTED).for_each(|t| words[t / 64] |= 1 << (t % 64));
    for (word, bits) in set.iter().zip(words) {
        word.store(bits, Relaxed);
    }
}

/// Records that a process has ended, and with it all of its threads.
fn ended(wire: &system::System, pid: i32) {
    for thread in wire.threads.iter().filter(|thread| thread.pid.load(Relaxed) == pid as u32) {
        thread.state.store(state::ENDED, SeqCst);
    }
}

impl System {
    /// Creates a system of named programs. Each named place is marked in every program that has it; a place
    /// that no program has is an error.
    pub fn new(
        runtime: PathBuf,
        programs: &[(String, Source)],
        named: &[Named],
        config: &RunConfig,
        memory: bool,
    ) -> Result<System> {
        let shared = Mapping::for_system().map_err(|e| {
            Error::Internal(format!("no shared memory: {e}; raise the limits that ulimit -a shows"))
        })?;
        let shared = Arc::new(shared);
        let mut all = Vec::new();
        let mut missing: Option<Vec<(usize, String)>> = None;
        for (number, (name, source)) in programs.iter().enumerate() {
            let (how, here, moved) = match source {
                Source::Start(program) => {
                    let mut config = config.clone();
                    config.in_process = false;
                    config.patches = Arc::new(Patches::with_some_marks(named.to_vec()));
                    config.part = Some(Part { shared: shared.clone(), program: number as u32, memory });
                    let parked = Zygote::start(&runtime, program, &config, Output::Dropped)?;
                    let (here, moved) = (config.patches.missing(), config.patches.moved());
                    (How::Starts(Box::new((program.clone(), config, parked))), here, moved)
                }
                Source::Running => {
                    let mut running = Running::find(name)?;
                    running.join(&runtime, named, &shared, (number as u32, memory))?;
                    let (here, moved) = (running.patches().missing(), running.patches().moved());
                    (How::Runs(Box::new(running)), here, moved)
                }
            };
            missing = Some(match missing {
                None => here,
                Some(mut before) => {
                    before.retain(|(number, _)| here.iter().any(|(other, _)| other == number));
                    before
                }
            });
            let mut symbols = Symbols::new();
            symbols.hide(&runtime);
            symbols.set_moved(moved);
            all.push(Known { name: name.clone(), symbols, how });
        }
        if let Some((_, why)) = missing.iter().flatten().next() {
            return Err(Error::Input(why.clone()));
        }
        let known = vec![false; MAX_SCRIPTED];
        let stop = config.stop.clone();
        Ok(System { shared, runtime, programs: all, processes: Vec::new(), known, stop })
    }

    fn wire(&self) -> &system::System {
        self.shared.system()
    }

    /// The names of the programs, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.programs.iter().map(|known| known.name.as_str())
    }

    /// Whether any of the programs is instrumented.
    pub fn is_instrumented(&self) -> bool {
        self.programs.iter().any(|known| match &known.how {
            How::Starts(program) => program.2.is_instrumented(),
            How::Runs(running) => running.is_instrumented(),
        })
    }

    /// Ends all processes and starts over: no process runs yet.
    pub fn begin(&mut self) {
        self.end();
        let wire = self.wire();
        for thread in &wire.threads {
            thread.tid.store(0, Relaxed);
            thread.state.store(state::RUNS, Relaxed);
            thread.events.store(0, Relaxed);
        }
        for set in [&wire.select, &wire.known] {
            write(set, std::iter::empty());
        }
        wire.kinds.store(0, Relaxed);
        wire.script.store(std::process::id(), Relaxed);
        wire.generation.fetch_add(1, SeqCst);
        // An even round number means that the script is computing its next command.
        let round = wire.round.load(SeqCst);
        wire.round.store(round + round % 2, SeqCst);
        wire.on.store(1, SeqCst);
        self.known.fill(false);
    }

    /// Starts a program. Returns the number of the process.
    pub fn start(&mut self, name: &str) -> Result<usize> {
        let Some(program) = self.programs.iter().position(|known| known.name == name) else {
            let names: Vec<&str> = self.names().collect();
            return Err(Error::Input(format!(
                "the command line names no program {name}, only {}",
                names.join(", ")
            )));
        };
        let How::Starts(how) = &self.programs[program].how else {
            return Err(Error::Input(format!(
                "{name} runs already; name a command to start: --attach {name}='PROG'"
            )));
        };
        let zygote = Zygote::start(&self.runtime, &how.0, &how.1, Output::Captured)?;
        zygote.let_go();
        self.processes.push(Process { program, zygote, status: None, asked: false });
        Ok(self.processes.len() - 1)
    }

    /// The process id of a started process.
    pub fn pid(&self, process: usize) -> i32 {
        self.processes[process].zygote.pid()
    }

    /// The name of the process's program.
    pub fn name(&self, process: usize) -> &str {
        &self.programs[self.processes[process].program].name
    }

    /// The output of a process so far.
    pub fn output(&self, process: usize) -> String {
        let process = &self.processes[process];
        process.zygote.output(process.status.is_some())
    }

    /// How a process has ended, if it has: its exit status, or 128 plus the signal.
    pub fn status(&mut self, process: usize) -> Option<i32> {
        self.look_after();
        let status = self.processes[process].status?;
        Some(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)))
    }

    /// Asks a process to end. Returns when it was asked.
    pub fn ask_to_end(&mut self, process: usize) -> Instant {
        self.processes[process].asked = true;
        self.processes[process].zygote.ask_to_end();
        Instant::now()
    }

    /// Whether a process that was asked to end has done so. Kills it if it takes too long.
    pub fn has_stopped(&mut self, process: usize, asked: Instant) -> bool {
        if asked.elapsed() > GRACE {
            sys::kill(-self.pid(process), libc::SIGKILL);
        }
        self.status(process).is_some()
    }

    /// Notices processes that have ended, and marks their threads as ended.
    fn look_after(&mut self) {
        for process in self.processes.iter_mut().filter(|process| process.status.is_none()) {
            process.status = process.zygote.ended();
            if process.status.is_none() {
                continue;
            }
            ended(self.shared.system(), process.zygote.pid());
        }
        for pid in self.programs.iter().filter_map(Known::gone) {
            ended(self.shared.system(), pid);
        }
    }

    /// Whether the user wants to stop.
    fn interrupted(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// Gives a command and waits for its result, or until `done` returns true.
    pub fn run(
        &mut self,
        command: &Command,
        limit: Duration,
        done: &mut dyn FnMut(&mut System) -> bool,
    ) -> Result<Answer> {
        let wire = self.shared.system();
        for (out, words) in [(&wire.until, &command.until), (&wire.mentioned, &command.mentioned)] {
            for (slot, word) in out.words.iter().zip(words) {
                slot.store(*word, Relaxed);
            }
            out.length.store(words.len() as u32, Relaxed);
        }
        for &thread in command.known.iter().filter(|thread| **thread < MAX_SCRIPTED) {
            self.known[thread] = true;
        }
        let selected = |thread: &usize| command.select.contains(thread) != command.new;
        write(&wire.select, (0..MAX_SCRIPTED).filter(selected));
        write(&wire.known, command.known.iter().copied());
        wire.kinds.store(command.kinds, Relaxed);
        let round = wire.round.load(SeqCst).wrapping_add(1);
        let open = u64::from(round) << 32;
        wire.claim.store(open, SeqCst);
        wire.round.store(round, SeqCst);
        sys::futex_wake(&wire.round);
        self.release(&command.release);
        let began = Instant::now();
        loop {
            let wire = self.shared.system();
            let rung = wire.bell.load(SeqCst);
            let claim = wire.claim.load(SeqCst);
            if claim != open {
                return Ok(Answer::Event(self.take_claim(round, claim)));
            }
            if began.elapsed() < AT_ONCE {
                std::hint::spin_loop();
                continue;
            }
            self.look_after();
            let answer = if began.elapsed() > limit {
                Some(Ok(Answer::Late))
            } else if self.interrupted() {
                Some(Err(Error::Interrupted))
            } else if done(self) {
                Some(Ok(Answer::Done))
            } else if self.is_gone() {
                Some(Ok(Answer::Gone))
            } else if !command.select.is_empty()
                && !command.new
                && command.select.iter().all(|thread| self.has_ended(*thread))
            {
                Some(Ok(Answer::Ended))
            } else {
                None
            };
            let Some(answer) = answer else {
                sys::futex_wait(&self.wire().bell, rung, LOOK);
                continue;
            };
            let withdrawn = open | u64::from(WITHDRAWN);
            match self.wire().claim.compare_exchange(open, withdrawn, SeqCst, SeqCst) {
                Ok(_) => {
                    self.wire().round.store(round.wrapping_add(1), SeqCst);
                    self.hold();
                    return answer;
                }
                Err(claim) => return Ok(Answer::Event(self.take_claim(round, claim))),
            }
        }
    }

    /// Whether there is nothing left to wait for: all processes have ended, or one has crashed.
    fn is_gone(&self) -> bool {
        let crashed = |process: &Process| {
            !process.asked && process.status.is_some_and(|status| status.signal().is_some())
        };
        let runs = |known: &Known| matches!(known.how, How::Runs(_));
        let all = !self.processes.is_empty() && self.processes.iter().all(|p| p.status.is_some());
        all && !self.programs.iter().any(runs)
            || self.processes.iter().any(crashed)
            || self.programs.iter().any(|known| known.gone().is_some())
    }

    /// The thread that has claimed a command.
    fn take_claim(&mut self, round: u32, claim: u64) -> usize {
        let thread = (claim as u32).saturating_sub(1) as usize % MAX_SCRIPTED;
        // The thread may not have reported it yet.
        self.wire().round.store(round.wrapping_add(1), SeqCst);
        self.known[thread] = true;
        self.hold();
        thread
    }

    /// From now on, holds the stopping threads that the script knows.
    fn hold(&self) {
        for (thread, _) in self.wire().threads.iter().zip(&self.known).filter(|(_, known)| **known) {
            let now = thread.state.load(SeqCst);
            if now & ((1 << state::SHIFT) - 1) == state::STOPS {
                // This fails if the thread has gone on instead of stopping.
                let _ = thread.state.compare_exchange(now, state::HELD, SeqCst, SeqCst);
            }
        }
    }

    fn release(&self, threads: &[usize]) {
        for thread in threads.iter().filter_map(|thread| self.wire().threads.get(*thread)) {
            if thread.state.compare_exchange(state::HELD, state::RUNS, SeqCst, SeqCst).is_ok() {
                sys::futex_wake(&thread.state);
            }
        }
    }

    /// The threads that are held.
    pub fn held(&self) -> Vec<usize> {
        let is_held = |thread: &usize| self.wire().threads[*thread].state.load(SeqCst) == state::HELD;
        (0..MAX_SCRIPTED).filter(is_held).collect()
    }

    /// Whether a thread has ended.
    pub fn has_ended(&self, thread: usize) -> bool {
        self.wire().threads.get(thread).is_none_or(|thread| thread.state.load(SeqCst) == state::ENDED)
    }

    /// The event at which a thread has stopped.
    pub fn at(&self, thread: usize) -> &Event {
        &self.wire().threads[thread % MAX_SCRIPTED].at
    }

    /// The process id of a thread, and the number of its program.
    pub fn whose(&self, thread: usize) -> (i32, usize) {
        let thread = &self.wire().threads[thread % MAX_SCRIPTED];
        (thread.pid.load(Relaxed) as i32, thread.program.load(Relaxed) as usize)
    }

    /// What the kernel reports about a thread: whether it runs, or where it waits.
    pub fn whereabouts(&self, thread: usize) -> String {
        let told = &self.wire().threads[thread % MAX_SCRIPTED];
        let (pid, tid) = (told.pid.load(Relaxed), told.tid.load(Relaxed));
        let about = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/{file}"));
        match about("wchan").as_deref().map(str::trim) {
            Ok("" | "0") | Err(_) => "runs".to_owned(),
            Ok(place) => format!("waits in the kernel ({place})"),
        }
    }

    /// How many events the runtime has examined.
    pub fn events(&self) -> u64 {
        self.wire().threads.iter().map(|thread| thread.events.load(Relaxed)).sum()
    }

    /// A view of a program, in one of its processes if there is one.
    pub fn view(&mut self, program: usize, pid: Option<i32>) -> io::Result<View<'_>> {
        let known = &mut self.programs[program];
        let live = self.processes.iter().find(|p| p.program == program && p.status.is_none());
        let pid = pid.or(live.map(|process| process.zygote.pid())).unwrap_or(known.pid());
        View::new(&mut known.symbols, pid)
    }

    /// How many programs there are.
    pub fn programs(&self) -> usize {
        self.programs.len()
    }

    /// Ends the script's control: all threads go on, and none is held any more.
    pub fn finish(&mut self) {
        let wire = self.shared.system();
        wire.on.store(0, SeqCst);
        wire.round.fetch_add(2, SeqCst);
        sys::futex_wake(&wire.round);
        self.hold();
        self.release(&self.held());
        self.look_after();
    }

    /// How a process ended that should not have ended, or not so. `expected` is the correct exit status.
    pub fn bad_end(&mut self, expected: i32) -> Option<BadEnd> {
        self.look_after();
        if let Some(known) = self.programs.iter().find(|known| known.gone().is_some()) {
            return Some(BadEnd { program: known.name.clone(), status: None, output: String::new() });
        }
        let bad = self.processes.iter().find_map(|process| {
            let status = process.status.filter(|status| status.code() != Some(expected))?;
            let wanted = process.asked && matches!(status.signal(), Some(libc::SIGTERM | libc::SIGKILL));
            (!wanted).then_some((process, status))
        });
        let (process, status) = bad?;
        let program = self.programs[process.program].name.clone();
        Some(BadEnd { program, status: Some(status), output: process.zygote.output(true) })
    }

    /// Ends all processes that the script started. Programs that were running already go on.
    pub fn end(&mut self) {
        self.finish();
        self.processes.clear();
    }
}

/// The end of a process that should not have ended, or not so.
#[derive(Debug)]
pub struct BadEnd {
    /// The name of its program.
    pub program: String,
    /// Its exit status; `None` for a program that was running already when the script attached to it.
    pub status: Option<ExitStatus>,
    /// Its output.
    pub output: String,
}

impl Drop for System {
    fn drop(&mut self) {
        self.end();
    }
}
