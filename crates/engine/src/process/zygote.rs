//! Controls one parked program and the executions forked from it.
//!
//! The engine and the program take turns by words in shared memory; see `heisen_wire`. While the program
//! runs, the engine sleeps on a futex, the bell. It wakes now and then to see whether the program still takes
//! steps. If it does not, the engine asks the program where it is.

mod effort;
mod scripted;
mod start;
mod system_mode;

use crate::process::run_config::{Output, RunConfig};
pub use scripted::NextStop;

use crate::error::{Error, Result};
use crate::platform::sys;
use crate::platform::sys::Mapping;
use crate::process::access_points::Points;
use crate::process::brief_result::BriefResult;
use crate::process::capture::Capture;
use crate::process::descriptor;
use crate::process::exit_status::describe_status;
use crate::process::hooks::Hooks;
use crate::process::recorded_input;
use crate::process::shared_prefix::shared_steps;
use crate::process::slots;
use crate::process::slots::{Detail, Event, Job, Run};
use crate::process::spin_watch;
use crate::process::spin_watch::WatchLevel;
use crate::process::symbolic_trace::{Misfit, TraceMemory};
use effort::{Effort, Idle};
use heisen_inspect::{Symbols, View};
use heisen_trace::{CodePlace, Note, Stack};
use heisen_wire::{MAX_SLOTS, SPINS, Wire, flag, script, spin as wire_spin, stop, turn};
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{Ordering::Relaxed, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// How often the engine checks a program that is starting.
const LOOK: Duration = Duration::from_millis(50);
/// How often the engine checks whether a running program takes steps.
const GLANCE: Duration = Duration::from_millis(4);
/// A program without a step for this long may be in a spin loop. If it is not, the next such examination
/// comes after twice the time, and so on, also in later executions: the examination is slow, and some
/// programs compute.
const SUSPECT: Duration = Duration::from_millis(8);
/// The longest time between two such examinations.
const RARELY: Duration = Duration::from_secs(1);
/// From then on the program is single-stepped, even if samples show no recurring state.
const THOROUGH: Duration = Duration::from_millis(100);
/// How long the current execution may go on when the time is over, so that earlier executions in the same
/// process count.
const LAST: Duration = Duration::from_millis(200);
/// How long a program without steps has to answer where it is.
const ANSWER: Duration = Duration::from_millis(500);

/// How often a plan runs again because its symbolic trace was incomplete.
const MOST_AGAIN: u32 = 100;

/// How long a program's reaper (`runtime::lifecycle::reaper`) has to end all of its processes.
const KEEPER: Duration = Duration::from_secs(10);

/// An observer examines the program whenever it pauses.
pub trait Observer {
    /// The program has paused; `wire.stop` says why. It goes on when this returns.
    fn stopped(&mut self, wire: &Wire, pid: i32);
}

/// A parked program.
#[derive(Debug)]
pub struct Zygote {
    child: Child,
    mapping: Mapping,
    config: RunConfig,
    capture: Option<Capture>,
    hooks: Option<Hooks>,
    spinning: bool,
    /// For how long the program may take no step before it is examined for a spin loop.
    suspicion: Duration,
    /// Spin loops that were found in it.
    known: spin_watch::Known,
    /// The memory for symbolic traces.
    symbolic: Option<TraceMemory>,
    /// Until when a script waits for an event.
    deadline: Option<Instant>,
    gone: bool,
    ended: bool,
}

/// A finished turn of the program.
#[derive(Debug)]
pub(crate) struct Turn {
    /// How many executions it ran.
    pub(crate) ran: usize,
    /// The execution that had to be ended because it took no steps.
    stuck: Option<usize>,
    /// Why the next execution was cut short.
    pub(crate) cut: Option<Cut>,
    /// The message of the command after the execution, if that command failed.
    after: Option<String>,
}

/// An execution that was ended early.
#[derive(Debug)]
pub(crate) struct Cut {
    /// Why it was ended.
    pub(crate) why: Error,
    /// Where it waited for connections, if nobody connected, each with its descriptor.
    listens: Vec<(u64, String)>,
}

impl Cut {
    /// What it may have waited for, in words.
    pub(crate) fn awaited(&self) -> Option<String> {
        let one = |(fd, address): &(u64, String)| format!("descriptor {fd} listens on {address}");
        let all: Vec<String> = self.listens.iter().map(one).collect();
        (!all.is_empty()).then(|| format!("{}, and nobody connects", all.join(" and ")))
    }
}

/// How a wait for the program ended.
enum Waited {
    /// It is the engine's turn.
    Parked,
    /// It is the script's turn.
    Asked,
    /// It is neither's turn, and the script's time limit is over.
    Late,
    /// The zygote is gone.
    Gone(ExitStatus),
    /// It took no step for too long.
    Stuck,
    /// The user wants to stop, or time is over.
    Over(Error),
}

impl Zygote {
    pub(crate) fn wire(&self) -> &Wire {
        self.mapping.wire()
    }

    /// Whether the user wants to stop.
    pub(crate) fn interrupted(&self) -> bool {
        self.config.stop.load(Relaxed)
    }

    /// From now on, makes these accesses scheduling points.
    pub fn set_points(&mut self, points: &Arc<Points>) {
        if !Arc::ptr_eq(points, &self.config.points) {
            self.config.points = points.clone();
            self.all_points().write(self.wire());
        }
    }

    fn all_points(&self) -> Points {
        let accesses = &self.config.world.accesses;
        let mut points = Points::resolve(&accesses.points, self.pid());
        points.all = accesses.all || self.config.symbolic.is_some();
        points.extend(&self.config.points);
        points
    }

    /// The accesses that are scheduling points, in the form in which files record them.
    pub(crate) fn points(&self, symbols: &mut Symbols) -> Vec<CodePlace> {
        let points = self.all_points();
        let Ok(mut view) = View::new(symbols, self.pid()) else { return Vec::new() };
        points.places(self.pid(), |pc| {
            let stack = Stack(view.frame_at(pc, true));
            stack.place().map_or(String::new(), |f| format!("{} {}", f.place(), f.function))
        })
    }

    /// The process id of the parked program; before it is parked, that of the started process.
    pub fn pid(&self) -> i32 {
        match self.wire().zygote.load(Relaxed) {
            0 => self.child.id() as i32,
            pid => pid as i32,
        }
    }

    /// Waits until it is the engine's turn. The observer sees every pause in between.
    fn wait(&mut self, since: u32, mut observer: Option<&mut dyn Observer>) -> Waited {
        let mut moved = Instant::now();
        let mut steps = (0, 0);
        let mut asked: Option<Instant> = None;
        let mut suspect = self.suspicion;
        let mut effort = Effort::new();
        // Whether the program was asked where it is but goes on, because it computes and something else will
        // end it.
        let mut goes_on = false;
        let events = self.wire().script.events.load(Relaxed);
        let mut last: Option<Instant> = None;
        loop {
            let wire = self.mapping.wire();
            let rung = wire.bell.load(SeqCst);
            if let Some(why) = self.config.over() {
                wire.enough.store(1, SeqCst);
                let ending = *last.get_or_insert_with(Instant::now);
                let parked = wire.turn.load(SeqCst) == turn::ENGINE;
                if !parked && (since == turn::BOOTING || ending.elapsed() > LAST) {
                    return Waited::Over(why);
                }
            }
            if wire.stop.state.load(SeqCst) == stop::STOPPED {
                let stuck = wire.stop.reason.load(Relaxed) == stop::STUCK;
                if let Some(observer) = observer.as_deref_mut() {
                    observer.stopped(wire, wire.child.load(SeqCst) as i32);
                }
                if stuck && !goes_on {
                    return Waited::Stuck;
                }
                asked = None;
                wire.stop.state.store(stop::RUNNING, SeqCst);
                sys::futex_wake(&wire.stop.state);
                moved = Instant::now();
                continue;
            }
            if wire.turn.load(SeqCst) == turn::ENGINE {
                return Waited::Parked;
            }
            if wire.script.turn.load(SeqCst) == script::turn::SCRIPT {
                return Waited::Asked;
            }
            if self.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return Waited::Late;
            }
            sys::futex_wait(&wire.bell, rung, if since == turn::BOOTING { LOOK } else { GLANCE });
            if wire.bell.load(SeqCst) != rung {
                continue;
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
                effort.moved(wire.child.load(SeqCst) as i32);
                wire.spin.store(wire_spin::SAME, SeqCst);
                (asked, goes_on) = (None, false);
                suspect = self.suspicion;
            } else if suspect < RARELY && wire.script.events.load(Relaxed) != events {
                // It takes steps that a script sees; but a spin loop may contain events.
                suspect = RARELY;
            } else if since != turn::BOOTING
                && asked.is_none()
                && suspect < moved.elapsed()
                && wire.spin.load(SeqCst) != wire_spin::ALONE
            {
                if self.yields(if suspect >= THOROUGH { WatchLevel::Thorough } else { WatchLevel::Glance }) {
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
            } else if !goes_on && moved.elapsed() > self.config.hang / 2 {
                let pid = wire.child.load(SeqCst) as i32;
                let measured = if pid == 0 { self.pid() } else { pid };
                let Some(why) = effort.exceeds(measured, self.config.hang) else { continue };
                if since == turn::BOOTING || pid == 0 {
                    return Waited::Stuck;
                }
                if wire.unverified.load(Relaxed) != 0 {
                    // It began in memory that was restored by prediction. After its end the zygote discards it, and
                    // the engine runs its plan again.
                    sys::kill(pid, libc::SIGKILL);
                    moved = Instant::now();
                    effort.moved(pid);
                    continue;
                }
                self.spinning = why == Idle::Computes;
                if self.spinning
                    && wire.spin.load(SeqCst) != wire_spin::ALONE
                    && self.yields(WatchLevel::Force)
                {
                    moved = Instant::now();
                    effort.moved(pid);
                    continue;
                }
                let wire = self.mapping.wire();
                goes_on = self.spinning && self.config.computes;
                wire.question.store(libc::SIGSTKFLT as u32, SeqCst);
                sys::kill(pid, libc::SIGSTKFLT);
                asked = Some(Instant::now());
            }
        }
    }

    /// Where the current execution waits for connections, unless someone outside has already taken part in
    /// it.
    fn listens_in_vain(&self, number: usize) -> Vec<(u64, String)> {
        let notes = self.wire().slots[number].report.notes.load(Relaxed);
        match self.wire().child.load(SeqCst) as i32 {
            pid if pid != 0 && notes & 1 << (Note::Outside as u8) == 0 => descriptor::listening(pid),
            _ => Vec::new(),
        }
    }

    /// Whether the current execution waits in a spin loop. If so, it was made to yield.
    fn yields(&mut self, look: WatchLevel) -> bool {
        let wire = self.mapping.wire();
        let pid = wire.child.load(SeqCst) as i32;
        let Some(tid) = (pid != 0).then(|| running(pid)).flatten() else { return false };
        let tell = |what| wire.spin.store(what, SeqCst);
        wire.question.store(SPINS as u32, SeqCst);
        let yields = spin_watch::yields(tid, look, &mut self.known, &self.config.loops, tell);
        if !yields {
            wire.question.store(0, SeqCst);
        }
        yields
    }

    /// Runs one execution. With [`Detail::All`], the observer sees every pause.
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
        let turn = self.take_turn(jobs, detail, observer)?;
        if let Some(cut) = turn.cut {
            return Err(cut.why);
        }
        (0..turn.ran).map(|number| self.read(&turn, number)).collect()
    }

    /// Like [`Zygote::run_all`], but the caller [`read`](Zygote::read)s the results.
    pub(crate) fn take_turn(
        &mut self,
        jobs: &[Job<'_>],
        detail: Detail,
        mut observer: Option<&mut dyn Observer>,
    ) -> Result<Turn> {
        // Each execution with a trace or with inputs needs a turn of its own, because they share the memory of the trace.
        let chooses = |job: &Job<'_>| !job.inputs().is_empty();
        let alone = detail == Detail::Symbolic || jobs.iter().any(chooses);
        let jobs = if alone { &jobs[..jobs.len().min(1)] } else { jobs };
        let mut again = MOST_AGAIN;
        loop {
            let observer: Option<&mut dyn Observer> = match &mut observer {
                Some(observer) => Some(&mut **observer),
                None => None,
            };
            let turn = self.take_one_turn(jobs, detail, observer)?;
            let memory = self.symbolic.as_ref().filter(|_| detail == Detail::Symbolic);
            if turn.cut.is_some() || again == 0 || !memory.is_some_and(TraceMemory::must_run_again) {
                return Ok(turn);
            }
            again -= 1;
        }
    }

    fn take_one_turn(
        &mut self,
        jobs: &[Job<'_>],
        detail: Detail,
        observer: Option<&mut dyn Observer>,
    ) -> Result<Turn> {
        if let Some(why) = self.config.over() {
            return Err(why);
        }
        // The engine runs the hooks before and after an execution, so each execution needs a turn of its own.
        let jobs = if self.hooks.is_some() { &jobs[..jobs.len().min(1)] } else { jobs };
        if let Some(hooks) = &mut self.hooks {
            hooks.before()?;
        }
        let wanted = self.begin(jobs, detail, 0)?;
        let waited = self.wait(turn::ZYGOTE, observer);
        let stuck = match waited {
            Waited::Parked | Waited::Asked | Waited::Late => None,
            Waited::Stuck => Some(self.wire().slot.load(SeqCst) as usize),
            Waited::Over(why) => {
                let number = self.wire().slot.load(SeqCst);
                let cut = Some(Cut { why, listens: self.listens_in_vain(number as usize % MAX_SLOTS) });
                self.kill_execution();
                let ran = self.wire().slots_run.load(Relaxed).min(number) as usize;
                return Ok(Turn { ran: ran.min(wanted), stuck: None, cut, after: None });
            }
            Waited::Gone(status) => {
                self.gone = true;
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
        let after = self.hooks.as_mut().map_or(Ok(None), Hooks::after)?;
        Ok(Turn { ran, stuck, cut: None, after })
    }

    /// Reads the result of an execution of the last turn.
    pub(crate) fn read(&self, turn: &Turn, number: usize) -> Result<Run> {
        let mut run = slots::read_run(self.wire(), number, turn.stuck == Some(number))?;
        if number + 1 == turn.ran {
            run.tail.after.clone_from(&turn.after);
            let flags = self.wire().slots[number].plan.flags.load(Relaxed);
            if let Some(memory) = self.symbolic.as_ref().filter(|_| flags & flag::SYMBOLIC != 0) {
                run.execution.symbolic = Some(Arc::new(memory.read(self.pid())));
            }
        }
        Ok(run)
    }

    /// How the inputs of a schedule, which its last execution had, do not fit what the program has read.
    pub(crate) fn misfit(&self) -> Option<Misfit> {
        let inputs = &self.config.symbolic.as_ref()?.inputs;
        self.symbolic.as_ref().filter(|_| !inputs.is_empty())?.misfit(inputs)
    }

    /// Reads a result in its short form, if the execution ended with this exit status and has nothing else to
    /// report.
    pub(crate) fn read_brief(&self, turn: &Turn, number: usize, expected: i32) -> Option<BriefResult> {
        let looked_at = turn.stuck == Some(number) || turn.after.is_some();
        BriefResult::read(self.wire(), number, expected).filter(|_| !looked_at)
    }

    /// The events of the last execution, if it was the only one of its turn and logged them.
    pub fn events(&self) -> Vec<Event> {
        slots::read_events(self.wire())
    }

    /// Passes the turn to the zygote, with plans that have these flags besides the usual ones. Returns how
    /// many plans.
    pub(crate) fn begin(&mut self, jobs: &[Job<'_>], detail: Detail, flags: u32) -> Result<usize> {
        if let Some(memory) = &self.symbolic {
            memory.prepare(jobs.first().map_or(&[], Job::inputs));
        }
        let input = self.config.input.as_deref();
        recorded_input::give(self.wire(), input);
        let input = match detail {
            _ if input.is_some() => flag::REPLAY_INPUT,
            Detail::All | Detail::Accesses => flag::RECORD_INPUT,
            _ => 0,
        };
        let flags = flags | input | self.config.carrier.flags();
        let (together, shared_until) = shared_steps(jobs);
        let wanted = slots::write_plans(self.wire(), &jobs[..together], detail, flags, &self.config)?;
        let wire = self.wire();
        wire.shared_until.store(shared_until, Relaxed);
        wire.slots_wanted.store(wanted as u32, Relaxed);
        wire.slots_run.store(0, Relaxed);
        wire.slot.store(0, Relaxed);
        wire.enough.store(0, Relaxed);
        wire.turn.store(turn::ZYGOTE, SeqCst);
        sys::futex_wake(&wire.turn);
        Ok(wanted)
    }

    /// Whether the last execution that took no steps was running, rather than blocked in the kernel.
    pub fn was_spinning(&self) -> bool {
        self.spinning
    }

    /// Whether the parked program has ended although Heisen did not end it.
    pub fn is_gone(&self) -> bool {
        self.gone
    }

    /// Kills the current execution and waits until the zygote notices.
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

    /// Ends the program and returns its captured output, if any.
    pub fn end_output(&mut self) -> String {
        self.quit();
        self.capture.as_ref().map(Capture::text).unwrap_or_default()
    }

    /// Ends the parked program and every process that it left behind in its session.
    fn quit(&mut self) {
        if self.ended {
            return;
        }
        self.ended = true;
        let started = self.child.id() as i32;
        if self.pid() != started && self.keeper_ends(started) {
            return;
        }
        sys::kill(-started, libc::SIGKILL);
        sys::kill(-self.pid(), libc::SIGKILL);
        let running = self.wire().child.load(SeqCst) as i32;
        if running != 0 {
            // An execution leads a process group of its own, so that its descendants are killed with it.
            sys::kill(-running, libc::SIGKILL);
        }
        let _ = self.child.wait();
    }
}

impl Zygote {
    /// Asks the program's reaper, which was started in its place, to end all processes. Returns whether it
    /// has done so.
    fn keeper_ends(&mut self, keeper: i32) -> bool {
        let until = Instant::now() + KEEPER;
        sys::kill(keeper, libc::SIGTERM);
        while Instant::now() < until {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return true;
            }
            std::thread::sleep(Duration::from_micros(100));
        }
        false
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
        // The state follows the name, which may itself contain spaces and parentheses.
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('R'))
    });
    runs?.file_name().to_str()?.parse().ok()
}
