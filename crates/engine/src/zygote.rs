//! One parked program, and the executions that are forked from it.
//!
//! The engine and the program take turns by words in shared memory; see `heisen_wire`. While the program runs, the
//! engine sleeps on the bell, wakes now and then to see whether the program still moves, and asks it where it is if it
//! does not.

use crate::around::Around;
use crate::capture::Capture;
use crate::error::{Error, Result};
use crate::input;
use crate::look::{Symbols, View};
use crate::patch::Patches;
use crate::points::Points;
use crate::program::Program;
use crate::scope::Scope;
use crate::slot::{self, Detail, Event, Job, Run};
use crate::spin;
use crate::stdin;
use crate::sys::{self, Mapping};
use heisen_trace::{CodePlace, Faults, Stack, World};
use heisen_wire::{ENV_DIR, ENV_FD, MAX_SLOTS, Wire, access, boot, flag, heap, park, stop, turn, world};
use serde::{Deserialize, Serialize};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// How often a running program is looked after.
const LOOK: Duration = Duration::from_millis(50);
/// How often one is glanced at, by a look at its steps.
const GLANCE: Duration = Duration::from_millis(4);
/// A program that has not moved for so long may wait in a loop for memory to change. If it does not, the next such
/// look is at twice the time, and so on, also in later executions: the look is slow, and some programs compute.
const SUSPECT: Duration = Duration::from_millis(8);
/// The longest such time.
const RARELY: Duration = Duration::from_secs(1);
/// How long a program that does not move has to say where it is.
const ANSWER: Duration = Duration::from_millis(500);

/// What carries the threads of a program. Both pass the same scheduling points, so a schedule found with one replays
/// with the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Carrier {
    /// One kernel thread for all: fast.
    #[default]
    Fibers,
    /// A kernel thread for each, of which one runs at a time.
    Kernel,
}

impl Carrier {
    fn flags(self) -> u32 {
        match self {
            Carrier::Fibers => 0,
            Carrier::Kernel => flag::KERNEL,
        }
    }
}

/// Limits and watchers of executions.
#[derive(Clone, Debug)]
pub struct Limits {
    /// What carries the threads.
    pub carrier: Carrier,
    /// Steps of one execution.
    pub steps: u32,
    /// How long a program may run without a scheduling point.
    pub hang: Duration,
    /// Bytes of data a program may have.
    pub memory: u64,
    /// Spurious wake-ups of one execution.
    pub spurious: u32,
    /// Faults of one execution.
    pub faults: Faults,
    /// What surrounds the executions.
    pub world: World,
    /// The number of the worker, by which those that run at the same time are kept apart.
    pub worker: usize,
    /// Set when the user wants to stop.
    pub stop: Arc<AtomicBool>,
    /// What was patched in the program, as `world` asks for; worked out once for all that share it.
    pub patches: Arc<Patches>,
    /// Where threads may be preempted; anywhere if none.
    pub scope: Option<Arc<Scope>>,
    /// Accesses of memory that are scheduling points, besides those that the world names.
    pub points: Arc<Points>,
    /// Recorded input, which the executions get instead of what comes from outside.
    pub input: Option<Arc<[u8]>>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            carrier: Carrier::default(),
            steps: 1_000_000,
            hang: Duration::from_secs(10),
            memory: sys::total_memory() / 5 * 4,
            spurious: 0,
            faults: Faults::default(),
            world: World::default(),
            worker: 0,
            stop: Arc::default(),
            patches: Arc::default(),
            scope: None,
            points: Arc::default(),
            input: None,
        }
    }
}

/// Where a program's output goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Nowhere.
    Dropped,
    /// Kept, up to a limit.
    Kept,
    /// To our own.
    Shown,
}

/// A paused program is shown to an observer.
pub trait Observer {
    /// The program has stopped; `wire.stop` says why. It goes on when this returns.
    fn stopped(&mut self, wire: &Wire, pid: i32);
}

/// A parked program.
#[derive(Debug)]
pub struct Zygote {
    child: Child,
    mapping: Mapping,
    limits: Limits,
    capture: Option<Capture>,
    around: Option<Around>,
    spinning: bool,
    /// For how long the program may not move before it is looked at whether it waits in a loop.
    suspicion: Duration,
    ended: bool,
}

/// How a wait for the program ended.
enum Waited {
    /// It is our turn.
    Parked,
    /// The zygote is gone.
    Gone(ExitStatus),
    /// It did not move for too long.
    Stuck,
    /// The user wants to stop.
    Interrupted,
}

impl Zygote {
    /// Starts the program and waits until it is parked.
    pub fn start(runtime: &Path, program: &Program, limits: &Limits, output: Output) -> Result<Zygote> {
        let mut zygote = Zygote::spawn(runtime, program, limits, output)?;
        let waited = zygote.wait(turn::BOOTING, None);
        match waited {
            Waited::Parked => {
                zygote.patch(runtime)?;
                if let Some(scope) = &limits.scope {
                    scope.write(zygote.wire(), zygote.pid())?;
                }
                zygote.all_points().write(zygote.wire());
                Ok(zygote)
            }
            Waited::Interrupted => Err(Error::Interrupted),
            Waited::Gone(_) if output == Output::Dropped => {
                // Once more, to hear what it has to say.
                drop(zygote);
                Zygote::start(runtime, program, limits, Output::Kept)?;
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
                        let seconds = limits.hang.as_secs_f32();
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

    /// Patches the parked program, as its world asks for.
    fn patch(&mut self, runtime: &Path) -> Result<()> {
        let Limits { world, patches, .. } = self.limits.clone();
        if world.patch.is_empty() {
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
            Waited::Interrupted => Err(Error::Interrupted),
            Waited::Gone(status) => {
                let how = describe_status(status);
                Err(Error::Uncontrolled(format!("the parked program is gone ({how}) before it was patched")))
            }
            Waited::Stuck => Err(Error::Internal("the parked program does not answer".into())),
        }
    }

    fn spawn(runtime: &Path, program: &Program, limits: &Limits, output: Output) -> Result<Zygote> {
        let mapping = Mapping::new().map_err(|e| {
            Error::Internal(format!("no shared memory: {e}; raise the limits that ulimit -a shows"))
        })?;
        mapping.wire().park.store(if program.at_ready { park::READY } else { park::MAIN }, Relaxed);
        let around = Around::new(limits);
        let directory = around.as_ref().and_then(Around::directory);
        write_world(mapping.wire(), &limits.world);
        write_heap(mapping.wire(), &limits.world, program);
        let mut command = Command::new(&program.path);
        command.envs(program.environment.iter().map(|(name, value)| (name, value)));
        if let Some(directory) = &program.directory {
            command.current_dir(directory);
        }
        match directory {
            Some(directory) => command.env(ENV_DIR, directory),
            None => command.env_remove(ENV_DIR),
        };
        command.args(&program.args).stdin(stdin::open(&limits.world)?);
        let mut capture = None;
        match output {
            Output::Dropped => {
                command.stdout(Stdio::null()).stderr(Stdio::null());
            }
            Output::Kept => capture = Some(Capture::of(&mut command)?),
            Output::Shown => {}
        }
        sys::set_apart(&mut command, limits.memory);
        let fd = mapping.pass_to(&mut command);
        command.env(ENV_FD, fd.to_string()).env("LD_PRELOAD", preload(runtime));
        let child = command
            .spawn()
            .map_err(|e| Error::Input(format!("{} cannot be started: {e}", program.path.display())))?;
        Ok(Zygote {
            child,
            mapping,
            limits: limits.clone(),
            capture,
            around,
            spinning: false,
            suspicion: SUSPECT,
            ended: false,
        })
    }

    pub(crate) fn wire(&self) -> &Wire {
        self.mapping.wire()
    }

    /// Whether the user wants to stop.
    pub(crate) fn interrupted(&self) -> bool {
        self.limits.stop.load(Relaxed)
    }

    /// These accesses are scheduling points from now on.
    pub fn set_points(&mut self, points: &Arc<Points>) {
        if !Arc::ptr_eq(points, &self.limits.points) {
            self.limits.points = points.clone();
            self.all_points().write(self.wire());
        }
    }

    fn all_points(&self) -> Points {
        let mut points = Points::resolve(&self.limits.world.accesses.points, self.pid());
        points.extend(&self.limits.points);
        points
    }

    /// The accesses that are scheduling points, as they are written down.
    pub(crate) fn points(&self, symbols: &mut Symbols) -> Vec<CodePlace> {
        let points = self.all_points();
        let Ok(mut view) = View::new(symbols, self.pid()) else { return Vec::new() };
        points.places(self.pid(), |pc| {
            let stack = Stack(view.frame_at(pc, true));
            stack.place().map_or(String::new(), |f| format!("{} {}", f.place(), f.function))
        })
    }

    /// The process id of the parked program.
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Waits until it is the engine's turn. Stops are shown to the observer on the way.
    fn wait(&mut self, since: u32, mut observer: Option<&mut dyn Observer>) -> Waited {
        let mut moved = Instant::now();
        let mut steps = (0, 0);
        let mut asked: Option<Instant> = None;
        let mut suspect = self.suspicion;
        loop {
            let wire = self.mapping.wire();
            let rung = wire.bell.load(SeqCst);
            if wire.stop.state.load(SeqCst) == stop::STOPPED {
                let stuck = wire.stop.reason.load(Relaxed) == stop::STUCK;
                if let Some(observer) = observer.as_deref_mut() {
                    observer.stopped(wire, wire.child.load(SeqCst) as i32);
                }
                if stuck {
                    return Waited::Stuck;
                }
                wire.stop.state.store(stop::RUNNING, SeqCst);
                sys::futex_wake(&wire.stop.state);
                moved = Instant::now();
                continue;
            }
            if wire.turn.load(SeqCst) == turn::ENGINE {
                return Waited::Parked;
            }
            sys::futex_wait(&wire.bell, rung, if since == turn::BOOTING { LOOK } else { GLANCE });
            if wire.bell.load(SeqCst) != rung {
                continue;
            }
            if self.interrupted() {
                return Waited::Interrupted;
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                return Waited::Gone(status);
            }
            let number = wire.slot.load(SeqCst) as usize % MAX_SLOTS;
            let moves = wire.slots[number].report.steps.load(Relaxed);
            let now = (number, moves.wrapping_add(wire.heartbeat.load(Relaxed)));
            if now != steps {
                steps = now;
                moved = Instant::now();
                asked = None;
                suspect = self.suspicion;
            } else if since != turn::BOOTING && asked.is_none() && suspect < moved.elapsed() {
                if self.yields() {
                    self.suspicion = SUSPECT;
                    suspect = moved.elapsed() + SUSPECT;
                } else {
                    self.suspicion = (2 * self.suspicion).min(RARELY);
                    suspect = (2 * suspect).max(self.suspicion);
                }
            } else if let Some(since) = asked {
                if since.elapsed() > ANSWER {
                    return Waited::Stuck;
                }
            } else if moved.elapsed() > self.limits.hang {
                let pid = wire.child.load(SeqCst) as i32;
                if since == turn::BOOTING || pid == 0 {
                    return Waited::Stuck;
                }
                self.spinning = running(pid).is_some();
                sys::kill(pid, libc::SIGSTKFLT);
                asked = Some(Instant::now());
            }
        }
    }

    /// Whether the execution that runs waits in a loop for memory to change, and was made to yield.
    fn yields(&self) -> bool {
        let pid = self.wire().child.load(SeqCst) as i32;
        pid != 0 && running(pid).is_some_and(spin::yields)
    }

    /// Runs one execution. With [`Detail::All`] and an observer, every pause is shown to it.
    pub fn run(&mut self, job: Job<'_>, detail: Detail, observer: Option<&mut dyn Observer>) -> Result<Run> {
        let mut runs = self.run_all(&[job], detail, observer)?;
        runs.pop().ok_or_else(|| Error::Internal("the parked program ran nothing".into()))
    }

    /// Runs several executions in one turn, in order: at least the first, not always all of them.
    pub fn run_all(
        &mut self,
        jobs: &[Job<'_>],
        detail: Detail,
        observer: Option<&mut dyn Observer>,
    ) -> Result<Vec<Run>> {
        // What is done around an execution is done by us, so it is our turn after each.
        let jobs = if self.around.is_some() { &jobs[..jobs.len().min(1)] } else { jobs };
        if let Some(around) = &mut self.around {
            around.before()?;
        }
        let wanted = self.begin(jobs, detail, 0)?;
        let waited = self.wait(turn::ZYGOTE, observer);
        let stuck = match waited {
            Waited::Parked => None,
            Waited::Stuck => Some(self.wire().slot.load(SeqCst) as usize),
            Waited::Interrupted => {
                self.kill_execution();
                return Err(Error::Interrupted);
            }
            Waited::Gone(status) => {
                let how = describe_status(status);
                return Err(Error::Uncontrolled(format!(
                    "the parked program is gone ({how}); does the program signal its parent or its process group?"
                )));
            }
        };
        if stuck.is_some() {
            self.kill_execution();
        }
        let ran = (self.wire().slots_run.load(Relaxed) as usize).min(wanted);
        let mut runs = (0..ran)
            .map(|number| slot::read_run(self.wire(), number, stuck == Some(number)))
            .collect::<Result<Vec<Run>>>()?;
        if let Some(around) = &mut self.around {
            let failed = around.after()?;
            if let Some(run) = runs.last_mut() {
                run.tail.after = failed;
            }
        }
        Ok(runs)
    }

    /// The events of the last execution, if it was the only one of its turn and they were logged.
    pub fn events(&self) -> Vec<Event> {
        slot::read_events(self.wire())
    }

    /// Passes the turn to the zygote, with plans that have these flags besides the usual ones; how many.
    pub(crate) fn begin(&mut self, jobs: &[Job<'_>], detail: Detail, flags: u32) -> Result<usize> {
        let input = self.limits.input.as_deref();
        input::give(self.wire(), input);
        let input = match detail {
            _ if input.is_some() => flag::REPLAY_INPUT,
            Detail::All => flag::RECORD_INPUT,
            _ => 0,
        };
        let flags = flags | input | self.limits.carrier.flags();
        let wanted = slot::write_plans(self.wire(), jobs, detail, flags, &self.limits)?;
        let wire = self.wire();
        wire.slots_wanted.store(wanted as u32, Relaxed);
        wire.slots_run.store(0, Relaxed);
        wire.slot.store(0, Relaxed);
        wire.enough.store(0, Relaxed);
        wire.turn.store(turn::ZYGOTE, SeqCst);
        sys::futex_wake(&wire.turn);
        Ok(wanted)
    }

    /// Whether the execution that was last found not to move was running, rather than blocked in the kernel.
    pub fn was_spinning(&self) -> bool {
        self.spinning
    }

    /// Ends the execution that runs, and waits for the zygote to notice.
    fn kill_execution(&mut self) {
        let until = Instant::now() + Duration::from_secs(5);
        self.wire().enough.store(1, SeqCst);
        while self.wire().turn.load(SeqCst) != turn::ENGINE && Instant::now() < until {
            let pid = self.wire().child.load(SeqCst) as i32;
            if pid != 0 {
                sys::kill(pid, libc::SIGKILL);
            }
            sys::futex_wait(&self.wire().bell, self.wire().bell.load(SeqCst), Duration::from_millis(5));
        }
        self.wire().stop.state.store(stop::RUNNING, SeqCst);
    }

    /// Ends the program and gives what it has written, if that was kept.
    pub fn end_output(&mut self) -> String {
        self.quit();
        self.capture.as_ref().map(Capture::text).unwrap_or_default()
    }

    /// Ends the parked program and whatever it left behind in its session, which may outlive it.
    fn quit(&mut self) {
        if self.ended {
            return;
        }
        self.ended = true;
        sys::kill(-(self.child.id() as i32), libc::SIGKILL);
        let running = self.wire().child.load(SeqCst) as i32;
        if running != 0 {
            // An execution that left the process group to be killed with its own descendants.
            sys::kill(-running, libc::SIGKILL);
        }
        let _ = self.child.wait();
    }
}

impl Drop for Zygote {
    fn drop(&mut self) {
        self.quit();
    }
}

/// The thread of a process that is running on a processor rather than waiting in the kernel, if there is one.
fn running(pid: i32) -> Option<i32> {
    let mut tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let runs = tasks.find(|task| {
        let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        // The state follows the name, which may itself hold spaces and parentheses.
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('R'))
    });
    runs?.file_name().to_str()?.parse().ok()
}

fn write_world(wire: &Wire, from: &World) {
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
    let mut flags = 0;
    if from.accesses.check {
        flags |= access::CHECK;
    }
    if from.accesses.all {
        flags |= access::ALL;
    }
    wire.access_flags.store(flags, Relaxed);
}

/// Leaks can only be told by the heap, so whoever asks for them asks for it.
fn write_heap(wire: &Wire, from: &World, program: &Program) {
    let on = from.heap.unwrap_or(program.instrumented || from.leaks);
    let leaks = if from.leaks { heap::LEAKS } else { 0 };
    wire.heap.flags.store(if on { heap::ON | leaks } else { 0 }, Relaxed);
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

pub(crate) fn describe_status(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (_, Some(signal)) => format!("killed by {}", signal_name(signal)),
        _ => "unknown status".to_owned(),
    }
}

/// The name of a signal.
pub fn signal_name(signal: i32) -> String {
    match signal {
        libc::SIGABRT => "SIGABRT".into(),
        libc::SIGSEGV => "SIGSEGV".into(),
        libc::SIGBUS => "SIGBUS".into(),
        libc::SIGILL => "SIGILL".into(),
        libc::SIGFPE => "SIGFPE".into(),
        libc::SIGTRAP => "SIGTRAP".into(),
        libc::SIGKILL => "SIGKILL".into(),
        libc::SIGTERM => "SIGTERM".into(),
        libc::SIGPIPE => "SIGPIPE".into(),
        libc::SIGHUP => "SIGHUP".into(),
        libc::SIGINT => "SIGINT".into(),
        libc::SIGQUIT => "SIGQUIT".into(),
        libc::SIGALRM => "SIGALRM".into(),
        libc::SIGVTALRM => "SIGVTALRM".into(),
        libc::SIGPROF => "SIGPROF".into(),
        libc::SIGUSR1 => "SIGUSR1".into(),
        libc::SIGUSR2 => "SIGUSR2".into(),
        libc::SIGXFSZ => "SIGXFSZ".into(),
        libc::SIGSYS => "SIGSYS".into(),
        other => format!("signal {other}"),
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
