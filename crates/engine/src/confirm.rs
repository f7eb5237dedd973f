//! The close look: one execution of one schedule with everything on. What the search only knows as "it went wrong" gets
//! its stacks, names and source lines here; what does not go wrong again is no finding.

use crate::error::Result;
use crate::input;
use crate::judge::{self, Verdict};
use crate::look::{Registers, Symbols, View};
use crate::memory;
use crate::points::Conflict;
use crate::program::{self, Program};
use crate::race::{self, Sight};
use crate::slot::{Detail, Event, Job, Run, diverged_place, read_events, report_of};
use crate::stdin;
use crate::zygote::{Limits, Observer, Output, Zygote};
use crate::{cycle, diverge};
use heisen_trace::cycle::{Cycle, Repeated};
use heisen_trace::finding::{Block, Held, Switch, SwitchKind, ThreadEnd};
use heisen_trace::schedule::{Entry, ThreadLine};
use heisen_trace::{
    CodePlace, DecisionKind, End, Fault, Finding, FindingKind, Op, Race, Schedule, Stack, ThreadId, World,
};
use heisen_wire::{MUTEX_OWNER, NO_THREAD, TID_BASE, Thread, Wire, end, misuse, saved, state, stop};
use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Switches beyond this many are described by the place of the call alone, without a stack.
const MAX_STACKS: usize = 200;

/// Everything that can be said of one execution.
#[derive(Debug)]
pub struct Closeup {
    /// The execution.
    pub run: Run,
    /// Whether it went wrong.
    pub verdict: Option<Verdict>,
    /// Its switches that are not the default.
    pub switches: Vec<Switch>,
    /// The thread that ended it, and where.
    pub thread: Option<ThreadId>,
    /// Where it ended.
    pub stack: Stack,
    /// The threads that were alive at the end.
    pub threads: Vec<ThreadEnd>,
    /// What it repeats, if it did not end.
    pub cycle: Option<Cycle>,
    /// The block of memory that it failed with, if it did with one.
    pub block: Option<Block>,
    /// All threads, for the schedule file.
    pub lines: Vec<ThreadLine>,
    /// Every event with its place and object, if a trace was asked for.
    pub trace: Vec<TraceLine>,
    /// The operation before which it was noticed that it does not follow its plan; empty if it does.
    pub diverged: String,
    /// What the program wrote, if it was kept.
    pub output: String,
    /// Whether someone outside took part, and what was recorded of that, if all of it was.
    pub outside: bool,
    /// The record.
    pub input: Option<Arc<[u8]>>,
    /// The accesses of memory that are scheduling points.
    pub points: Vec<CodePlace>,
    /// The race that was looked for.
    pub race: Option<Race>,
}

/// One event, described.
#[derive(Clone, Debug)]
pub struct TraceLine {
    /// The event.
    pub event: Event,
    /// The name of its object.
    pub object: String,
    /// Its place.
    pub place: String,
}

/// How to take a close look.
#[derive(Clone, Copy, Debug)]
pub struct Camera<'a> {
    /// The runtime's file.
    pub runtime: &'a Path,
    /// The program.
    pub program: &'a Program,
    /// Limits of the execution.
    pub limits: &'a Limits,
    /// The exit status that is right.
    pub expect_exit: i32,
    /// Where the program's output goes.
    pub output: Output,
    /// Whether every event is wanted.
    pub trace: bool,
}

impl Camera<'_> {
    /// Runs the job once and looks closely.
    pub fn shoot(&self, job: Job<'_>) -> Result<Closeup> {
        self.shoot_at(job, None)
    }

    /// The same. If a race is looked for and comes up, that is the verdict, whatever the execution came to in the end.
    pub(crate) fn shoot_at(&self, job: Job<'_>, race: Option<&Conflict>) -> Result<Closeup> {
        let mut symbols = Symbols::new();
        symbols.hide(self.runtime);
        let mut zygote = Zygote::start(self.runtime, self.program, self.limits, self.output)?;
        symbols.set_moved(self.limits.patches.moved());
        let sight = race.map(|conflict| Sight::of(conflict, zygote.wire())).unwrap_or_default();
        let mut watcher = Watcher { symbols, sight, trace_wanted: self.trace, ..Watcher::default() };
        let run = zygote.run(job, Detail::All, Some(&mut watcher))?;
        let outside = self.limits.input.is_none() && input::took_part(zygote.wire(), &run.execution);
        let input = outside.then(|| input::recorded(zygote.wire(), &run.execution)).flatten();
        let points = zygote.points(&mut watcher.symbols);
        let output = zygote.end_output();
        let race = watcher.sight.race;
        let verdict = race.as_ref().map(race::verdict).or_else(|| judge::judge(&run, self.expect_exit));
        let mut closeup = Closeup {
            verdict,
            switches: watcher.switches,
            thread: watcher.thread,
            stack: watcher.stack,
            threads: watcher.threads,
            cycle: watcher.cycle,
            block: None,
            lines: watcher.lines,
            trace: watcher.trace,
            diverged: watcher.diverged,
            output,
            run,
            outside,
            input,
            points,
            race,
        };
        let kind = closeup.verdict.as_ref().map(|v| v.kind);
        let better = match kind {
            Some(FindingKind::Panic) => watcher.thrown,
            Some(FindingKind::Misuse) => watcher.misused,
            Some(FindingKind::DataRace) => {
                closeup.race.as_ref().map(|race| (race.second.thread, race.second.stack.clone()))
            }
            Some(kind) if kind.is_of_memory() => watcher.misused,
            Some(FindingKind::GoodSamaritan) => {
                let number = ThreadId((closeup.run.tail.code - 1) as u16);
                closeup.threads.iter().find(|t| t.thread == number).map(|t| (number, t.stack.clone()))
            }
            _ => None,
        };
        if let Some((thread, stack)) = better {
            closeup.thread = Some(thread);
            closeup.stack = stack;
        }
        closeup.refine();
        if let (Some(error), Some(verdict)) = (watcher.memory, &mut closeup.verdict) {
            verdict.message = error.message();
            closeup.block = error.block;
        }
        if let Some(block) = &mut closeup.block {
            memory::complete(self, job, &mut watcher.symbols, block)?;
        }
        // A leak fails where it was allocated, and nowhere else.
        if let Some(block) = closeup.block.take_if(|_| kind == Some(FindingKind::Leak)) {
            closeup.thread = Some(block.allocated.thread);
            closeup.stack = block.allocated.stack;
        }
        Ok(closeup)
    }
}

impl Closeup {
    /// Puts what only the close look can know into the verdict's words.
    fn refine(&mut self) {
        let Some(verdict) = &mut self.verdict else { return };
        match verdict.kind {
            FindingKind::Deadlock => verdict.message = describe_deadlock(&self.threads),
            FindingKind::Panic => {
                if let Some(words) = panic_words(&self.output) {
                    verdict.message = words;
                }
            }
            FindingKind::Crash if self.run.execution.end == End::Signal(libc::SIGABRT) => {
                // The C and C++ libraries say why they abort.
                if let Some(words) = abort_words(&self.output) {
                    verdict.message = format!("{}: {words}", verdict.message);
                }
            }
            _ => {}
        }
    }

    /// A short name of the bug: equal for two findings of the same kind at the same places.
    pub fn signature(&self) -> String {
        let mut text = match &self.verdict {
            None => "clean".to_owned(),
            Some(verdict) => verdict.kind.to_string(),
        };
        let place =
            |stack: &Stack| stack.place().map_or(String::new(), |f| format!("{} {}", f.function, f.place()));
        if let Some(race) = &self.race {
            text.push_str(&race.identity());
        } else if self.verdict.as_ref().is_some_and(|v| v.kind == FindingKind::Deadlock) {
            let mut places: Vec<String> =
                self.threads.iter().filter(|t| t.blocked).map(|t| place(&t.stack)).collect();
            places.sort();
            text.push_str(&places.join("\n"));
        } else {
            text.push_str(&place(&self.stack));
        }
        program::hash(text.as_bytes())[..16].to_owned()
    }

    /// The schedule that makes this execution happen again.
    pub fn schedule(&self, camera: &Camera<'_>) -> Schedule {
        let entry = |s: &Switch| Entry {
            step: s.step,
            from: s.from,
            to: s.to,
            kind: s.kind,
            op: s.op,
            options: s.options,
            object: s.object.clone(),
            place: s.stack.place().map_or(String::new(), |f| format!("{} {}", f.place(), f.function)),
        };
        Schedule {
            program: camera.program.path.as_os_str().as_bytes().to_vec(),
            args: camera.program.args.iter().map(|a| a.as_bytes().to_vec()).collect(),
            source: camera.program.source.as_ref().map(|s| s.as_os_str().as_bytes().to_vec()),
            instrumented: camera.program.source.is_some() && camera.program.instrumented,
            with_std: camera.program.with_std,
            binary: camera.program.hash.clone(),
            at_ready: camera.program.at_ready,
            steps_limit: camera.limits.steps,
            expect_exit: camera.expect_exit,
            spurious: camera.limits.spurious,
            faults: camera.limits.faults,
            input: None,
            world: self.world(camera),
            outcome: self.verdict.as_ref().map(|v| (v.kind, v.message.clone())),
            signature: self.signature(),
            threads: self.lines.clone(),
            entries: self.switches.iter().map(entry).collect(),
        }
    }

    fn world(&self, camera: &Camera<'_>) -> World {
        let mut world = stdin::recorded(&camera.limits.world, camera.program);
        world.accesses.points.clone_from(&self.points);
        world
    }

    /// The finding, if the execution went wrong.
    pub fn into_finding(self, camera: &Camera<'_>, executions_to_find: u64) -> Option<Finding> {
        let verdict = self.verdict.clone()?;
        let schedule = self.schedule(camera);
        Some(Finding {
            kind: verdict.kind,
            message: verdict.message,
            preemptions: schedule.preemptions(),
            executions_to_find,
            thread: self.thread,
            signature: self.signature(),
            stack: self.stack,
            switches: self.switches,
            threads: self.threads,
            cycle: self.cycle,
            race: self.race,
            block: self.block,
            output: self.output,
            input: None,
            schedule,
        })
    }
}

/// Collects what is to be seen at the pauses of an execution.
#[derive(Debug, Default)]
struct Watcher {
    symbols: Symbols,
    sight: Sight,
    trace_wanted: bool,
    switches: Vec<Switch>,
    thread: Option<ThreadId>,
    stack: Stack,
    threads: Vec<ThreadEnd>,
    cycle: Option<Cycle>,
    lines: Vec<ThreadLine>,
    trace: Vec<TraceLine>,
    diverged: String,
    thrown: Option<(ThreadId, Stack)>,
    misused: Option<(ThreadId, Stack)>,
    memory: Option<memory::Error>,
}

impl Observer for Watcher {
    fn stopped(&mut self, wire: &Wire, pid: i32) {
        if self.sight.watched(wire, pid) {
            return;
        }
        let mut symbols = std::mem::take(&mut self.symbols);
        if let Ok(mut view) = View::new(&mut symbols, pid) {
            let thread = ThreadId(wire.stop.thread.load(Relaxed) as u16);
            match wire.stop.reason.load(Relaxed) {
                stop::CONFLICT => self.sight.conflict(wire, &mut view),
                stop::DECISION => self.decision(wire, &mut view),
                stop::THROW => {
                    // The first panic is the cause; those after it are mostly about the first.
                    let stack = view.stack(registers(wire));
                    self.thrown.get_or_insert((thread, stack));
                }
                stop::MISUSE => {
                    self.misused = Some((thread, view.stack(registers(wire))));
                    let report = report_of(wire);
                    let what = report.misuse.load(Relaxed);
                    if (misuse::HEAP..=misuse::HEAP_LAST).contains(&what) {
                        let address = report.misuse_object.load(Relaxed);
                        self.memory = Some(memory::Error::read(wire, &mut view, what, thread, address));
                    }
                }
                _ => self.end(wire, &mut view),
            }
        }
        self.symbols = symbols;
    }
}

impl Watcher {
    fn decision(&mut self, wire: &Wire, view: &mut View<'_>) {
        let stop = &wire.stop;
        let from = stop.thread.load(Relaxed);
        let op = Op::from_code(stop.op.load(Relaxed) as u8).unwrap_or(Op::Start);
        let packed = stop.kind.load(Relaxed);
        let to = stop.to.load(Relaxed) as u16;
        let kind = match DecisionKind::from_code(packed as u8) {
            Some(DecisionKind::Waiter) => SwitchKind::Wake,
            Some(DecisionKind::Choose) => SwitchKind::Choose(to),
            Some(DecisionKind::Spurious) => SwitchKind::Spurious,
            Some(DecisionKind::Fault) => {
                SwitchKind::Fault(Fault::from_code(to as u8).unwrap_or(Fault::Malloc))
            }
            _ if packed >> 8 != 0 => SwitchKind::Preempt,
            _ => SwitchKind::Free,
        };
        let stack = if self.switches.len() < MAX_STACKS {
            view.stack(registers(wire))
        } else {
            Stack(view.frame_at(wire.threads[from as usize].pc.load(Relaxed), true))
        };
        let options = stop.options.load(Relaxed) as u16;
        let object = match kind {
            SwitchKind::Choose(value) => format!("{value} of {options}"),
            _ => object_name(view, wire, op, stop.object.load(Relaxed)),
        };
        self.switches.push(Switch {
            step: stop.step.load(Relaxed),
            from: ThreadId(from as u16),
            op,
            object,
            to: ThreadId(if kind.is_value() { from as u16 } else { to }),
            kind,
            options,
            stack,
        });
    }

    fn end(&mut self, wire: &Wire, view: &mut View<'_>) {
        let running = wire.stop.thread.load(Relaxed) as usize;
        self.thread = Some(ThreadId(running as u16));
        self.stack = or_place(view.stack(registers(wire)), view, &wire.threads[running]);
        let events = read_events(wire);
        let count = report_of(wire).threads.load(Relaxed) as usize;
        self.threads.clear();
        self.lines.clear();
        for (number, t) in wire.threads.iter().enumerate().take(count) {
            let id = ThreadId(number as u16);
            let ended = t.state.load(Relaxed) == state::ENDED;
            let stack = match number {
                _ if ended => Stack::default(),
                _ if number == running => self.stack.clone(),
                _ => or_place(paused_stack(view, t), view, t),
            };
            // A timer has a place among the threads, but is none of the program's.
            let timer = t.op.load(Relaxed) == Op::Timer as u32 && is_timer(view, t);
            let name = match number {
                0 => "main".to_owned(),
                _ if timer => "timer".to_owned(),
                _ => thread_name(view, t, &stack),
            };
            self.lines.push(ThreadLine { thread: id, path: path_of(wire, number), start: name });
            if ended || timer {
                continue;
            }
            self.threads.push(describe_thread(view, wire, number, stack, &events));
        }
        if let Some(place) = diverged_place(report_of(wire)) {
            self.diverged = diverge::describe(view, place);
        }
        if report_of(wire).end.load(Relaxed) == end::STEP_LIMIT {
            self.cycle = cycle::find(&events).map(|found| describe_cycle(view, wire, found));
        }
        if self.trace_wanted {
            self.trace = describe_events(view, wire, events);
        }
    }
}

/// The registers of the thread that runs, at a stop.
pub(crate) fn registers(wire: &Wire) -> Registers {
    let r: [u64; 8] = std::array::from_fn(|i| wire.stop.registers[i].load(Relaxed));
    Registers { rip: r[0], rsp: r[1], rbp: r[2], rbx: r[3], r12: r[4], r13: r[5], r14: r[6], r15: r[7] }
}

/// The stack of a thread that is switched out, from the registers that the switch left on it.
fn paused_stack(view: &mut View<'_>, t: &Thread) -> Stack {
    if t.state.load(Relaxed) == state::NEW {
        return Stack(view.frame_at(t.start.load(Relaxed), false));
    }
    let sp = t.sp.load(Relaxed);
    let mut words = [0; saved::WORDS];
    if sp == 0 || view.read_words(sp, &mut words).is_err() {
        return Stack::default();
    }
    view.stack(Registers {
        rip: words[saved::RIP],
        rsp: sp + 8 * saved::WORDS as u64,
        rbp: words[saved::RBP],
        rbx: words[saved::RBX],
        r12: words[saved::R12],
        r13: words[saved::R13],
        r14: words[saved::R14],
        r15: words[saved::R15],
    })
}

/// The stack or, where none can be told, as the thread was made to yield by a signal, the place of its last step.
fn or_place(stack: Stack, view: &mut View<'_>, t: &Thread) -> Stack {
    let op = t.op.load(Relaxed);
    if op != Op::Yield as u32 || stack.place().is_some() {
        return stack;
    }
    Stack(view.frame_at(t.pc.load(Relaxed), true))
}

/// Whether this is a timer of the program's: it runs nothing but the runtime.
fn is_timer(view: &mut View<'_>, t: &Thread) -> bool {
    let start = view.frame_at(t.start.load(Relaxed), false);
    start.iter().any(|f| f.function.contains("heisen_runtime"))
}

/// What a thread runs: its start function or, where that is a library's, the outermost function of the program's own.
fn thread_name(view: &mut View<'_>, t: &Thread, stack: &Stack) -> String {
    let start = view.frame_at(t.start.load(Relaxed), false);
    let own = start.iter().chain(stack.0.iter().rev()).find(|f| f.own);
    own.map_or(String::new(), |f| f.function.clone())
}

/// The creation path of a thread, such as `0.1.3`.
fn path_of(wire: &Wire, number: usize) -> String {
    let t = &wire.threads[number];
    match t.parent.load(Relaxed) {
        NO_THREAD => "0".to_owned(),
        parent if (parent as usize) < number => {
            format!("{}.{}", path_of(wire, parent as usize), t.child.load(Relaxed))
        }
        _ => "?".to_owned(),
    }
}

/// What an operation is about: the name of a variable, a thread, or an address.
fn object_name(view: &mut View<'_>, wire: &Wire, op: Op, object: u64) -> String {
    if object == 0 || op == Op::Assert {
        return String::new();
    }
    match op {
        Op::Point => object.to_string(),
        Op::Choose => format!("{} of {}", object & 0xffff, object >> 16),
        Op::Alloc => format!("{object} bytes"),
        Op::WaitChild => match object as i32 {
            process @ 1.. => format!("process {process}"),
            _ => "any process".to_owned(),
        },
        op if op.is_on_descriptor() => format!("descriptor {object}"),
        Op::Create | Op::Handler => {
            view.frame_at(object, false).last().map_or(String::new(), |f| f.function.clone())
        }
        Op::Join | Op::Kill => match thread_of_handle(wire, object) {
            Some(id) => id.to_string(),
            None => format!("{object:#x}"),
        },
        _ => view.object_name(object).unwrap_or_else(|| format!("{object:#x}")),
    }
}

/// The thread whose handle this is.
fn thread_of_handle(wire: &Wire, handle: u64) -> Option<ThreadId> {
    let count = report_of(wire).threads.load(Relaxed) as usize;
    let number = wire.threads.iter().take(count).position(|t| t.handle.load(Relaxed) == handle)?;
    Some(ThreadId(number as u16))
}

fn describe_thread(
    view: &mut View<'_>,
    wire: &Wire,
    number: usize,
    stack: Stack,
    events: &[Event],
) -> ThreadEnd {
    let t = &wire.threads[number];
    let id = ThreadId(number as u16);
    let op = Op::from_code(t.op.load(Relaxed) as u8).unwrap_or(Op::Start);
    let object = t.object.load(Relaxed);
    let needs = t.needs.load(Relaxed);
    let holder = match op {
        Op::Lock | Op::TimedLock | Op::Relock if needs != 0 => holder_of(view, needs),
        _ => None,
    };
    let holder_ended = holder.is_some_and(|h| {
        wire.threads.get(h.0 as usize).is_some_and(|h| h.state.load(Relaxed) == state::ENDED)
    });
    ThreadEnd {
        thread: id,
        op,
        object: object_name(view, wire, op, object),
        holder,
        holder_ended,
        blocked: t.state.load(Relaxed) == state::BLOCKED,
        holds: held_by(view, wire, id, events),
        stack,
    }
}

fn holder_of(view: &View<'_>, mutex: u64) -> Option<ThreadId> {
    let mut word = [0];
    // A mutex that is held starts with a word that is not 0. A spin lock, which has no owner, is 0 while held.
    view.read_words(mutex, &mut word).ok().filter(|()| word[0] as u32 != 0)?;
    view.read_words(mutex + MUTEX_OWNER as u64, &mut word).ok()?;
    let number = (word[0] as u32 as i32).checked_sub(TID_BASE)?;
    u16::try_from(number).ok().map(ThreadId)
}

/// The locks that a thread holds, by the log.
pub(crate) fn held_by(view: &mut View<'_>, wire: &Wire, thread: ThreadId, events: &[Event]) -> Vec<Held> {
    let mut held: Vec<(u64, u64)> = Vec::new();
    for event in events.iter().filter(|e| e.thread == thread && e.ok) {
        match event.op {
            Op::Lock | Op::TryLock | Op::TimedLock | Op::Relock | Op::ReadLock | Op::WriteLock => {
                held.push((event.object, event.pc));
            }
            Op::Unlock | Op::RwUnlock => {
                if let Some(at) = held.iter().rposition(|(object, _)| *object == event.object) {
                    held.remove(at);
                }
            }
            _ => {}
        }
    }
    // A thread that waits for a lock has an event for the attempt only once it has it.
    let describe = |(object, pc): (u64, u64)| Held {
        object: object_name(view, wire, Op::Lock, object),
        place: Stack(view.frame_at(pc, true)).place().map_or(String::new(), |f| f.place()),
    };
    held.into_iter().map(describe).collect()
}

fn describe_events(view: &mut View<'_>, wire: &Wire, events: Vec<Event>) -> Vec<TraceLine> {
    let mut places: HashMap<u64, String> = HashMap::new();
    let mut objects: HashMap<(u64, Op), String> = HashMap::new();
    events
        .into_iter()
        .map(|event| {
            let place = places.entry(event.pc).or_insert_with(|| {
                let starts = event.op == Op::Start;
                Stack(view.frame_at(event.pc, !starts)).place().map_or(String::new(), |f| f.place())
            });
            let place = place.clone();
            let object = objects
                .entry((event.object, event.op))
                .or_insert_with(|| object_name(view, wire, event.op, event.object))
                .clone();
            TraceLine { event, object, place }
        })
        .collect()
}

fn describe_cycle(view: &mut View<'_>, wire: &Wire, found: cycle::Found) -> Cycle {
    let describe = |(event, times): (Event, u32)| Repeated {
        thread: event.thread,
        op: event.op,
        object: object_name(view, wire, event.op, event.object),
        ok: event.ok,
        times,
        stack: Stack(view.frame_at(event.pc, true)),
    };
    let steps = found.events.into_iter().map(describe).collect();
    Cycle { order: found.order, of: found.of as u32, length: found.length as u32, steps }
}

/// Says what kind of deadlock it is: a cycle, a lock that went with its thread, a wake-up that nobody is left to give.
fn describe_deadlock(threads: &[ThreadEnd]) -> String {
    let find = |id: ThreadId| threads.iter().find(|t| t.thread == id);
    for start in threads {
        let mut path = vec![start];
        while let Some(next) = path.last().and_then(|t| t.holder).and_then(find) {
            if next.thread == start.thread {
                if path.len() == 1 {
                    return format!("{} locks {}, which it holds already", start.thread, start.object);
                }
                let links: Vec<String> = path
                    .iter()
                    .map(|t| {
                        let holder = t.holder.map_or(String::new(), |h| h.to_string());
                        format!("{} waits for {}, held by {holder}", t.thread, t.object)
                    })
                    .collect();
                return links.join("; ");
            }
            if path.iter().any(|t| t.thread == next.thread) {
                break;
            }
            path.push(next);
        }
    }
    if let Some(t) = threads.iter().find(|t| t.holder_ended) {
        let holder = t.holder.map_or(String::new(), |h| h.to_string());
        return format!("{} waits for {}, which {holder} still held when it ended", t.thread, t.object);
    }
    let waits = |t: &&ThreadEnd| {
        matches!(t.op, Op::CondWait | Op::FutexWait | Op::SemWait | Op::Once | Op::Barrier | Op::SigWait)
            || t.op.is_on_descriptor()
    };
    if let Some(t) = threads.iter().find(waits) {
        let what = match t.op {
            Op::CondWait => {
                "lost wake-up: {T} waits on condition variable {O}, and no thread is left to signal it"
            }
            Op::FutexWait => "lost wake-up: {T} is asleep (futex {O}), and no thread is left to wake it",
            Op::SigWait => "{T} waits for a signal, and no thread or timer is left to send it",
            Op::SemWait => "{T} waits for semaphore {O}, and no thread is left to post it",
            Op::Read => "{T} waits to read from {O}, and no thread is left to write to it",
            Op::Write => "{T} waits to write to {O}, and no thread is left to read from it",
            Op::Accept => "{T} waits on {O} for a connection, and nobody is left to connect",
            Op::Poll => "{T} waits for {O} to be ready, and no thread is left to make it so",
            Op::Once => "{T} waits for the initialiser of pthread_once {O}, which cannot go on",
            _ => "{T} waits at {O}, and no thread is left to release it",
        };
        return what.replace("{T}", &t.thread.to_string()).replace("{O}", &t.object);
    }
    match threads.first() {
        Some(t) => format!("{} waits ({} {}), and no thread can go on", t.thread, t.op.name(), t.object),
        None => "no thread can go on".to_owned(),
    }
}

/// What a library wrote before it aborted: what C++'s `terminate` says, that Rust had no memory, or the last line. Cut to
/// a sensible length.
fn abort_words(output: &str) -> Option<String> {
    const LONGEST: usize = 200;
    let lines: Vec<&str> = output.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    if let Some(memory) = lines.iter().find(|l| l.starts_with("memory allocation of ")) {
        return Some(memory.chars().take(LONGEST).collect());
    }
    let first =
        lines.iter().rposition(|l| l.starts_with("terminate called")).unwrap_or(lines.len().checked_sub(1)?);
    Some(lines[first..].join("; ").chars().take(LONGEST).collect())
}

/// What Rust wrote about the first panic: place and message.
fn panic_words(output: &str) -> Option<String> {
    let mut lines = output.lines().skip_while(|l| !l.contains("panicked at "));
    let first = lines.next()?;
    let place = first[first.find("panicked at ")?..].trim_end_matches(':');
    match lines.next().map(str::trim) {
        Some(message) if !message.is_empty() && !message.starts_with("note: ") => {
            Some(format!("{place}: {message}"))
        }
        _ => Some(place.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(thread: u16, op: Op, object: &str, holder: Option<u16>) -> ThreadEnd {
        ThreadEnd {
            thread: ThreadId(thread),
            op,
            object: object.into(),
            holder: holder.map(ThreadId),
            holder_ended: false,
            blocked: true,
            holds: Vec::new(),
            stack: Stack::default(),
        }
    }

    #[test]
    fn a_cycle_is_told_from_end_to_end() {
        let threads = [
            waiting(0, Op::Join, "T1", None),
            waiting(1, Op::Lock, "b", Some(2)),
            waiting(2, Op::Lock, "a", Some(1)),
        ];
        assert_eq!(describe_deadlock(&threads), "T1 waits for b, held by T2; T2 waits for a, held by T1");
        assert_eq!(
            describe_deadlock(&[waiting(3, Op::Lock, "m", Some(3))]),
            "T3 locks m, which it holds already"
        );
    }

    #[test]
    fn other_deadlocks_are_named() {
        let mut ended = waiting(1, Op::Lock, "m", Some(2));
        ended.holder_ended = true;
        assert_eq!(describe_deadlock(&[ended]), "T1 waits for m, which T2 still held when it ended");
        let lost = [waiting(0, Op::Join, "T1", None), waiting(1, Op::CondWait, "ready", None)];
        assert!(describe_deadlock(&lost).starts_with("lost wake-up: T1 waits on condition variable ready"));
        assert!(describe_deadlock(&[waiting(0, Op::Join, "T1", None)]).starts_with("T0 waits (join T1)"));
    }

    #[test]
    fn what_the_library_said_before_it_aborted() {
        let thrown = "hello\nterminate called after throwing an instance of 'E'\n  what():  x\n";
        let words = "terminate called after throwing an instance of 'E'; what():  x";
        assert_eq!(abort_words(thrown).as_deref(), Some(words));
        assert_eq!(
            abort_words("one\nfree(): invalid pointer\n\n").as_deref(),
            Some("free(): invalid pointer")
        );
        assert_eq!(abort_words(&"x".repeat(9999)).map(|w| w.len()), Some(200));
        let rust = "hello\nmemory allocation of 24 bytes failed\nstack backtrace:\n  0: main\n";
        assert_eq!(abort_words(rust).as_deref(), Some("memory allocation of 24 bytes failed"));
        assert_eq!(abort_words("\n"), None);
    }

    #[test]
    fn the_first_panic_is_quoted() {
        let output = "hello\n\nthread 'main' (12) panicked at src/main.rs:3:5:\nindex out of bounds\nnote: run with\n\
                      thread 'x' panicked at b.rs:1:1:\nother\n";
        assert_eq!(panic_words(output).as_deref(), Some("panicked at src/main.rs:3:5: index out of bounds"));
        assert_eq!(panic_words("nothing"), None);
    }
}
