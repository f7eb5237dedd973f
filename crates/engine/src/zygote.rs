//! One parked program, and the executions that are forked from it.
//!
//! The engine and the program take turns by words in shared memory; see `heisen_wire`. While the program runs, the
//! engine sleeps on the bell, wakes now and then to see whether the program still moves, and asks it where it is if it
//! does not.

use crate::capture::Capture;
use crate::error::{Error, Result};
use crate::program::Program;
use crate::sys::{self, Mapping};
use heisen_trace::{Decision, Divergence, End, Execution, Note, Op, Plan, Policy, Schedule, ThreadId};
use heisen_trace::{DecisionKind, finding::SwitchKind};
use heisen_wire::{
    ENV_FD, MAX_DECISIONS, MAX_EVENTS, MAX_OVERRIDES, MAX_SLOTS, MAX_TEXT, NO_THREAD, Report, Slot, Wire,
    diverged, end, flag, policy, stop, turn,
};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// How often a running program is looked after.
const LOOK: Duration = Duration::from_millis(50);
/// How long a program that does not move has to say where it is.
const ANSWER: Duration = Duration::from_millis(500);

/// Limits and watchers of executions.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Steps of one execution.
    pub steps: u32,
    /// How long a program may run without a scheduling point.
    pub hang: Duration,
    /// Bytes of data a program may have.
    pub memory: u64,
    /// Set when the user wants to stop.
    pub stop: Arc<AtomicBool>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            steps: 1_000_000,
            hang: Duration::from_secs(10),
            memory: sys::total_memory() / 5 * 4,
            stop: Arc::default(),
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

/// What an execution is to log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Only how it ended.
    End,
    /// Its decisions, too.
    Decisions,
    /// Everything, with pauses for a close look.
    All,
}

/// What to run: a plan of a search, or a schedule from a file.
#[derive(Clone, Copy, Debug)]
pub enum Job<'a> {
    /// A plan.
    Plan(&'a Plan),
    /// A schedule.
    Schedule(&'a Schedule),
}

impl Job<'_> {
    fn overrides(&self) -> usize {
        match self {
            Job::Plan(plan) => plan.overrides.len(),
            Job::Schedule(schedule) => schedule.entries.len(),
        }
    }
}

/// A paused program is shown to an observer.
pub trait Observer {
    /// The program has stopped; `wire.stop` says why. It goes on when this returns.
    fn stopped(&mut self, wire: &Wire, pid: i32);
}

/// One event of an execution.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// The step.
    pub step: u32,
    /// The thread.
    pub thread: ThreadId,
    /// What it did.
    pub op: Op,
    /// Whether that succeeded.
    pub ok: bool,
    /// On what.
    pub object: u64,
    /// Called from where.
    pub pc: u64,
}

/// What is known of an execution's end beyond [`Execution`].
#[derive(Clone, Debug, Default)]
pub struct Tail {
    /// One of `heisen_wire::end`.
    pub end: u32,
    /// Exit status or, for an assertion, its line.
    pub code: i32,
    /// The thread that ended it.
    pub thread: u16,
    /// Where the end was called.
    pub pc: u64,
    /// Texts of a failed assertion: expression, file, function.
    pub texts: Vec<String>,
    /// The first misuse: one of `heisen_wire::misuse`, thread, code address, object.
    pub misuse: Option<(u32, u16, u64, u64)>,
    /// The thread of the last Rust panic.
    pub panic: Option<u16>,
}

/// A finished execution with its end.
#[derive(Clone, Debug)]
pub struct Run {
    /// What the search sees.
    pub execution: Execution,
    /// What the judge sees besides.
    pub tail: Tail,
}

/// A parked program.
#[derive(Debug)]
pub struct Zygote {
    child: Child,
    mapping: Mapping,
    limits: Limits,
    capture: Option<Capture>,
    spinning: bool,
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
            Waited::Parked => Ok(zygote),
            Waited::Interrupted => Err(Error::Interrupted),
            Waited::Gone(_) if output == Output::Dropped => {
                // Once more, to hear what it has to say.
                drop(zygote);
                Zygote::start(runtime, program, limits, Output::Kept)?;
                Err(Error::Uncontrolled(
                    "the program failed before main once, and the second time did not; run the check again"
                        .into(),
                ))
            }
            waited => {
                let why = match waited {
                    Waited::Gone(status) => describe_early_end(&zygote, status),
                    _ => format!(
                        "does not reach main within {} s; if its constructors only take long, raise --hang",
                        limits.hang.as_secs_f32()
                    ),
                };
                let words = zygote.end_output();
                let words = words.trim_end();
                let said = if words.is_empty() { String::new() } else { format!("; it said:\n{words}") };
                Err(Error::Uncontrolled(format!("{} {why}{said}", program.path.display())))
            }
        }
    }

    fn spawn(runtime: &Path, program: &Program, limits: &Limits, output: Output) -> Result<Zygote> {
        let mapping = Mapping::new().map_err(|e| {
            Error::Internal(format!("no shared memory: {e}; raise the limits that ulimit -a shows"))
        })?;
        let mut command = Command::new(&program.path);
        command.args(&program.args).stdin(Stdio::null());
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
        Ok(Zygote { child, mapping, limits: limits.clone(), capture, spinning: false, ended: false })
    }

    fn wire(&self) -> &Wire {
        self.mapping.wire()
    }

    /// Waits until it is the engine's turn. Stops are shown to the observer on the way.
    fn wait(&mut self, since: u32, mut observer: Option<&mut dyn Observer>) -> Waited {
        let mut moved = Instant::now();
        let mut steps = (0, 0);
        let mut asked: Option<Instant> = None;
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
            sys::futex_wait(&wire.bell, rung, LOOK);
            if wire.bell.load(SeqCst) != rung {
                continue;
            }
            if self.limits.stop.load(Relaxed) {
                return Waited::Interrupted;
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                return Waited::Gone(status);
            }
            let number = wire.slot.load(SeqCst) as usize % MAX_SLOTS;
            let now = (number, wire.slots[number].report.steps.load(Relaxed));
            if now != steps {
                steps = now;
                moved = Instant::now();
                asked = None;
            } else if let Some(since) = asked {
                if since.elapsed() > ANSWER {
                    return Waited::Stuck;
                }
            } else if moved.elapsed() > self.limits.hang {
                let pid = wire.child.load(SeqCst) as i32;
                if since == turn::BOOTING || pid == 0 {
                    return Waited::Stuck;
                }
                self.spinning = spins(pid);
                sys::kill(pid, libc::SIGSTKFLT);
                asked = Some(Instant::now());
            }
        }
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
        let wanted = self.write_plans(jobs, detail)?;
        let wire = self.wire();
        wire.slots_wanted.store(wanted as u32, Relaxed);
        wire.slots_run.store(0, Relaxed);
        wire.slot.store(0, Relaxed);
        wire.enough.store(0, Relaxed);
        wire.turn.store(turn::ZYGOTE, SeqCst);
        sys::futex_wake(&wire.turn);
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
        (0..ran).map(|number| self.read_run(number, stuck == Some(number))).collect()
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

    /// Writes as many of the jobs as there is room for; how many.
    fn write_plans(&self, jobs: &[Job<'_>], detail: Detail) -> Result<usize> {
        let mut first = 0;
        for (number, &job) in jobs.iter().take(MAX_SLOTS).enumerate() {
            let count = job.overrides();
            if count > MAX_OVERRIDES {
                return Err(Error::Input(format!(
                    "a schedule with {count} decisions; {MAX_OVERRIDES} is the most"
                )));
            }
            if first + count > MAX_OVERRIDES {
                return Ok(number);
            }
            self.write_plan(&self.wire().slots[number], job, first, detail);
            first += count;
        }
        Ok(jobs.len().min(MAX_SLOTS))
    }

    fn write_plan(&self, slot: &Slot, job: Job<'_>, first: usize, detail: Detail) {
        let plan = &slot.plan;
        let (kind, seed, depth, steps) = match job {
            Job::Plan(Plan { policy: Policy::Random { seed }, .. }) => (policy::RANDOM, *seed, 0, 0),
            Job::Plan(Plan { policy: Policy::Pct { seed, depth, steps }, .. }) => {
                (policy::PCT, *seed, *depth, *steps)
            }
            _ => (policy::DEFAULT, 0, 0, 0),
        };
        let flags = match detail {
            Detail::End => 0,
            Detail::Decisions => flag::DECISIONS,
            Detail::All => flag::DECISIONS | flag::EVENTS | flag::STOPS,
        };
        let expect = match job {
            Job::Plan(plan) => plan.expect,
            Job::Schedule(_) => 0,
        };
        plan.policy.store(kind, Relaxed);
        plan.flags.store(flags, Relaxed);
        plan.seed.store(seed, Relaxed);
        plan.expect.store(expect, Relaxed);
        plan.depth.store(depth, Relaxed);
        plan.pct_steps.store(steps, Relaxed);
        plan.step_limit.store(self.limits.steps, Relaxed);
        plan.overrides.store(job.overrides() as u32, Relaxed);
        plan.first_override.store(first as u32, Relaxed);
        let overrides = &self.wire().overrides[first..];
        match job {
            Job::Plan(plan) => {
                for (out, from) in overrides.iter().zip(&plan.overrides) {
                    out.step.store(from.step, Relaxed);
                    out.choice.store(from.choice as u32, Relaxed);
                    out.expect.store(from.options as u32 | NO_THREAD << 16, Relaxed);
                    out.kind.store(from.kind, Relaxed);
                    out.by_thread.store(0, Relaxed);
                    out.op.store(0, Relaxed);
                }
            }
            Job::Schedule(schedule) => {
                for (out, from) in overrides.iter().zip(&schedule.entries) {
                    let wake = from.kind == SwitchKind::Wake;
                    let kind = if wake { DecisionKind::Waiter } else { DecisionKind::Thread };
                    out.step.store(from.step, Relaxed);
                    out.choice.store(from.to.0 as u32, Relaxed);
                    out.expect.store(from.options as u32 | (from.from.0 as u32) << 16, Relaxed);
                    out.kind.store(kind as u8, Relaxed);
                    out.by_thread.store(1, Relaxed);
                    out.op.store(from.op as u8, Relaxed);
                }
            }
        }
        clear(&slot.report);
    }
    fn read_run(&self, number: usize, stuck: bool) -> Result<Run> {
        let wire = self.wire();
        let slot = &wire.slots[number];
        let report = &slot.report;
        let status = slot.status.load(Relaxed);
        if status == u32::MAX {
            return Err(Error::Uncontrolled(
                "the program could not be forked: too many processes or too little memory".into(),
            ));
        }
        let status = ExitStatus::from_raw(status as i32);
        let tail = Tail {
            end: report.end.load(Relaxed),
            code: report.end_code.load(Relaxed) as i32,
            thread: report.end_thread.load(Relaxed) as u16,
            pc: report.end_pc.load(Relaxed),
            texts: read_texts(slot),
            misuse: match report.misuse.load(Relaxed) {
                0 => None,
                what => Some((
                    what,
                    report.misuse_thread.load(Relaxed) as u16,
                    report.misuse_pc.load(Relaxed),
                    report.misuse_object.load(Relaxed),
                )),
            },
            panic: report.panic_thread.load(Relaxed).checked_sub(1).map(|t| t as u16),
        };
        let end = match tail.end {
            _ if stuck => End::Stuck,
            end::DEADLOCK => End::Deadlock,
            end::STEP_LIMIT => End::StepLimit,
            _ => match (status.code(), status.signal()) {
                (_, Some(signal)) => End::Signal(signal),
                (code, None) => End::Exit(code.unwrap_or(0)),
            },
        };
        let first = (report.first_decision.load(Relaxed) as usize).min(MAX_DECISIONS);
        let logged = report.decisions.load(Relaxed) as usize;
        let decisions = wire.decisions[first..]
            .iter()
            .take(logged)
            .filter_map(|[a, b]| Decision::unpack([a.load(Relaxed), b.load(Relaxed)]))
            .collect();
        Ok(Run {
            execution: Execution {
                steps: report.steps.load(Relaxed),
                threads: report.threads.load(Relaxed),
                decisions,
                end,
                notes: Note::in_word(report.notes.load(Relaxed)).collect(),
                diverged: self.read_divergence(slot).filter(|_| !stuck),
            },
            tail,
        })
    }

    fn read_divergence(&self, slot: &Slot) -> Option<Divergence> {
        let report = &slot.report;
        let why = report.diverged.load(Relaxed);
        if why == diverged::NO {
            let followed = report.followed.load(Relaxed);
            let missed = slot.plan.first_override.load(Relaxed) + followed;
            return (followed < slot.plan.overrides.load(Relaxed)).then(|| Divergence {
                step: self.wire().overrides[missed as usize].step.load(Relaxed),
                found: "the end of the execution".to_owned(),
            });
        }
        let thread = report.diverged_thread.load(Relaxed);
        let op = Op::from_code(report.diverged_op.load(Relaxed) as u8).map_or("?", Op::name);
        let options = report.diverged_options.load(Relaxed);
        let at = format!("T{thread} about to {op}");
        let found = match why {
            diverged::NO_DECISION => format!("{at}, with no such choice to make"),
            diverged::OPTIONS => format!("{at}, with {options} choices"),
            diverged::NOT_ENABLED => format!("{at}, but the chosen thread cannot run"),
            diverged::HASH => format!("{at}, but the steps before it were others"),
            diverged::OTHER_OP => at,
            _ => "something else".to_owned(),
        };
        Some(Divergence { step: report.diverged_step.load(Relaxed), found })
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

fn read_texts(slot: &Slot) -> Vec<String> {
    let length = (slot.report.text.load(Relaxed) as usize).min(MAX_TEXT);
    let bytes: Vec<u8> = slot.text[..length].iter().map(|b| b.load(Relaxed)).collect();
    bytes
        .split_inclusive(|&b| b == 0)
        .map(|part| String::from_utf8_lossy(part).trim_end_matches('\0').to_owned())
        .collect()
}

fn clear(report: &Report) {
    for word in [
        &report.steps,
        &report.threads,
        &report.decisions,
        &report.events,
        &report.end,
        &report.end_code,
        &report.end_thread,
        &report.misuse,
        &report.misuse_thread,
        &report.panic_thread,
        &report.diverged,
        &report.diverged_step,
        &report.diverged_thread,
        &report.diverged_op,
        &report.diverged_options,
        &report.text,
        &report.followed,
    ] {
        word.store(0, Relaxed);
    }
    for word in [&report.notes, &report.end_pc, &report.misuse_pc, &report.misuse_object] {
        word.store(0, Relaxed);
    }
}

/// The report of the execution that runs, at a stop.
pub fn report_of(wire: &Wire) -> &Report {
    &wire.slots[wire.slot.load(SeqCst) as usize % MAX_SLOTS].report
}

/// The events that an execution run with [`Detail::All`] has logged so far.
pub fn read_events(wire: &Wire) -> Vec<Event> {
    let logged = (report_of(wire).events.load(Relaxed) as usize).min(MAX_EVENTS);
    let read = |[head, object, pc]: &heisen_wire::Event| {
        let word = head.load(Relaxed);
        let (step, thread, op) = heisen_wire::unpack_event(word);
        Some(Event {
            step,
            thread: ThreadId(thread),
            op: Op::from_code(op)?,
            ok: word & heisen_wire::EVENT_FAILED == 0,
            object: object.load(Relaxed),
            pc: pc.load(Relaxed),
        })
    };
    wire.events[..logged].iter().filter_map(read).collect()
}

/// Whether a process is running on a processor rather than waiting in the kernel.
fn spins(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The state follows the name, which may itself hold spaces and parentheses.
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('R'))
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

fn describe_status(status: ExitStatus) -> String {
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
        libc::SIGXFSZ => "SIGXFSZ".into(),
        libc::SIGSYS => "SIGSYS".into(),
        other => format!("signal {other}"),
    }
}

fn describe_early_end(zygote: &Zygote, status: ExitStatus) -> String {
    let loaded = zygote.wire().zygote.load(Relaxed) != 0;
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
