//! Takes close-ups: one execution of a schedule with stacks, names and source lines recorded. A failure that
//! does not occur again in the close-up is not a finding.
//!
//! `watcher` examines the execution at its pauses. `describe` finds the names and places, with `namer` for the names of
//! memory. `moments` runs the execution once more to look at events in libraries and at memory that the end of the
//! execution cannot name. `messages` finds the parts of the message that only a close-up can know.

mod blocked;
mod describe;
mod globals;
mod messages;
mod moments;
mod namer;
mod outside_waits;
mod race_watch;
mod watcher;

use crate::error::Result;
use crate::explain::heap_error;
use crate::explain::judge;
use crate::explain::judge::Verdict;
use crate::process::access_points::Conflict;
use crate::process::recorded_input;
use crate::process::run_config::{Output, RunConfig};
use crate::process::slots::{Detail, Event, Job, Run};
use crate::process::stdin;
use crate::process::symbolic_trace::Misfit;
use crate::process::zygote::Zygote;
use crate::program::{self, Program};
pub(crate) use blocked::takes;
use describe::block_name;
use globals::Globals;
use heisen_inspect::Symbols;
use heisen_trace::cycle::Cycle;
use heisen_trace::finding::{Block, GlobalValues, Switch, ThreadEnd};
use heisen_trace::schedule::{Entry, ThreadLine};
use heisen_trace::{CodePlace, End, Finding, FindingKind, Race, Schedule, Stack, ThreadId, World};
use heisen_wire::Wire;
pub(crate) use messages::circle;
pub use messages::panic_words;
use messages::{abort_words, describe_deadlock};
use moments::{Names, Wanted};
use race_watch::RaceWatch;
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use watcher::{Target, Watcher};

/// Everything recorded of one execution.
#[derive(Debug)]
pub struct Closeup {
    /// The execution.
    pub run: Run,
    /// The failure, if the execution failed.
    pub verdict: Option<Verdict>,
    /// Its switches: the decisions that leave the default.
    pub switches: Vec<Switch>,
    /// The thread that ended the execution.
    pub thread: Option<ThreadId>,
    /// After how many events the first panic began, if there was one. What comes later is a consequence of it.
    pub(crate) thrown_after: Option<u32>,
    /// The stack at which the execution ended.
    pub stack: Stack,
    /// The threads that were alive at the end.
    pub threads: Vec<ThreadEnd>,
    /// What its threads waited for outside the program, in vain.
    pub idle: Vec<String>,
    /// What it repeats, if it did not end.
    pub cycle: Option<Cycle>,
    /// Whether it reached the step limit without returning to an earlier state. Whether it would end is then
    /// unknown.
    pub too_long: bool,
    /// The block of memory that the failure is about, if there is one.
    pub block: Option<Block>,
    /// All threads, for the schedule file.
    pub lines: Vec<ThreadLine>,
    /// If the program is not instrumented: its global variables that changed between the switches.
    pub globals: Vec<GlobalValues>,
    /// Every event with its place and object, if a trace was requested.
    pub trace: Vec<TraceLine>,
    /// The operation at which a divergence was noticed; empty if the execution followed its plan.
    pub diverged: String,
    /// The program's output, if it was captured.
    pub output: String,
    /// Whether the execution received input from outside.
    pub outside: bool,
    /// The recorded input, if it is complete.
    pub input: Option<Arc<[u8]>>,
    /// The access points.
    pub points: Vec<CodePlace>,
    /// The data race that the close-up was asked for.
    pub race: Option<Race>,
    /// The stack of the access that the close-up was asked for.
    pub access: Option<Stack>,
    /// How the inputs of the schedule do not fit what the program has read.
    pub misfit: Option<Misfit>,
}

/// An access whose stack is wanted: the `nth` by this thread from this place at this address.
#[derive(Clone, Debug)]
pub(crate) struct WatchedAccess {
    pub(crate) address: u64,
    pub(crate) pc: u64,
    pub(crate) thread: ThreadId,
    pub(crate) nth: usize,
    pub(crate) stack: Option<Stack>,
}

impl WatchedAccess {
    /// Asks the runtime to pause at the access.
    fn watch(&self, wire: &Wire) {
        wire.watch.store(self.address, Relaxed);
        wire.watch_pc.store(self.pc, Relaxed);
        wire.watch_conflicts.store(0, Relaxed);
        wire.watch_thread.store(self.thread.0.into(), Relaxed);
    }

    /// Called at a pause before such an access.
    fn reached(&mut self, take: impl FnOnce() -> Stack) {
        self.nth = self.nth.saturating_sub(1);
        if self.nth == 0 && self.stack.is_none() {
            self.stack = Some(take());
        }
    }
}

/// One event with its names.
#[derive(Clone, Debug)]
pub struct TraceLine {
    /// The event.
    pub event: Event,
    /// The name of the event's object.
    pub object: String,
    /// The value of an access, as its type shows it; empty if there is none.
    pub value: String,
    /// The event's place.
    pub place: String,
    /// The function that the place is in; empty if unknown.
    pub function: String,
    /// Whether the place is in the program's own code.
    pub own: bool,
}

/// The settings of a close-up.
#[derive(Clone, Copy, Debug)]
pub struct Recorder<'a> {
    /// The path of the runtime.
    pub runtime: &'a Path,
    /// The program.
    pub program: &'a Program,
    /// How the execution runs.
    pub config: &'a RunConfig,
    /// The correct exit status.
    pub expect_exit: i32,
    /// Where the program's output goes.
    pub output: Output,
    /// Whether to record every event.
    pub trace: bool,
    /// Whether to record every access of memory with its value. The events are then many more.
    pub accesses: bool,
}

impl Recorder<'_> {
    /// Runs the job once and takes a close-up.
    pub fn record(&self, job: Job<'_>) -> Result<Closeup> {
        self.record_race(job, None)
    }

    /// Like [`Recorder::record`]. If a data race is given and it occurs, it becomes the verdict, however the
    /// execution ended.
    pub(crate) fn record_race(&self, job: Job<'_>, race: Option<&Conflict>) -> Result<Closeup> {
        self.record_with(&mut self.symbols(), job, race, None)
    }

    /// Symbols for close-ups. Reading them takes most of the time of a close-up, so several share them.
    pub(crate) fn symbols(&self) -> Symbols {
        let mut symbols = Symbols::new();
        symbols.hide(self.runtime);
        symbols
    }

    /// Like [`Recorder::record_race`], with these symbols. If an access is given, its stack is taken.
    pub(crate) fn record_with(
        &self,
        symbols: &mut Symbols,
        job: Job<'_>,
        race: Option<&Conflict>,
        access: Option<WatchedAccess>,
    ) -> Result<Closeup> {
        let mut zygote = Zygote::start(self.runtime, self.program, self.config, self.output)?;
        symbols.set_moved(self.config.patches.moved());
        let race_watch = race.map(|conflict| RaceWatch::of(conflict, zygote.wire())).unwrap_or_default();
        if let Some(access) = &access {
            access.watch(zygote.wire());
        }
        let mut watcher = Watcher {
            symbols: std::mem::take(symbols),
            race_watch,
            access,
            trace_wanted: self.trace,
            globals: Globals::new(!self.program.instrumented),
            ..Watcher::default()
        };
        zygote.wire().recurrence.wanted.store(1, Relaxed);
        let detail = if self.accesses { Detail::Accesses } else { Detail::All };
        let run = zygote.run(job, detail, Some(&mut watcher))?;
        let outside = self.config.input.is_none() && recorded_input::took_part(zygote.wire(), &run.execution);
        let input = outside.then(|| recorded_input::recorded(zygote.wire(), &run.execution)).flatten();
        let points = zygote.points(&mut watcher.symbols);
        let misfit = zygote.misfit();
        let output = zygote.end_output();
        if !outside {
            self.complete_moments(job, detail, &mut watcher)?;
        }
        for line in watcher.trace.iter_mut().filter(|line| line.event.op.ends_memory()) {
            line.object = block_name(&line.object);
        }
        // The access that crashed has no value.
        for line in watcher.trace.iter_mut().filter(|line| line.event.access.is_some() && !line.event.ok) {
            line.value.clear();
        }
        let race = watcher.race_watch.race;
        let recurred = watcher.recurrence.found;
        let too_long = judge::is_too_long(&run) && recurred.is_none();
        let judged = judge::judge(&run, self.expect_exit).filter(|_| !too_long);
        let verdict = race.as_ref().map(race_watch::verdict).or(judged);
        let mut closeup = Closeup {
            verdict,
            too_long,
            switches: watcher.switches,
            thread: watcher.thread,
            thrown_after: watcher.thrown.as_ref().map(|(_, _, events)| *events),
            stack: watcher.stack,
            threads: watcher.threads,
            idle: watcher.idle,
            cycle: watcher.cycle,
            block: None,
            lines: watcher.lines,
            globals: watcher.globals.changed(),
            trace: watcher.trace,
            diverged: watcher.diverged,
            output,
            run,
            outside,
            input,
            points,
            race,
            access: None,
            misfit,
        };
        let kind = closeup.verdict.as_ref().map(|v| v.kind);
        let better = match kind {
            Some(FindingKind::Panic) => watcher.thrown.map(|(thread, stack, _)| (thread, stack)),
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
        if let (Some(recurred), Some(verdict)) = (recurred, &mut closeup.verdict)
            && judge::is_too_long(&closeup.run)
        {
            verdict.message +=
                &format!(", and was in the very same state at steps {} and {}", recurred.since, recurred.at);
        }
        // A data race is reported as such even if the execution ended with a memory error.
        if let (Some(error), Some(verdict)) = (watcher.memory, &mut closeup.verdict)
            && verdict.kind != FindingKind::DataRace
        {
            verdict.message = error.message();
            closeup.block = error.block;
        }
        if let Some(block) = &mut closeup.block {
            heap_error::complete(
                (self.runtime, self.program, self.config),
                job,
                &mut watcher.symbols,
                block,
            )?;
        }
        // The only place of a leak is its allocation.
        if let Some(block) = closeup.block.take_if(|_| kind == Some(FindingKind::Leak)) {
            closeup.thread = Some(block.allocated.thread);
            closeup.stack = block.allocated.stack;
        }
        closeup.access = watcher.access.and_then(|access| access.stack);
        *symbols = watcher.symbols;
        Ok(closeup)
    }
}

impl Recorder<'_> {
    /// Runs the job once more and replaces places in libraries and bare addresses by those that the events show. An
    /// execution with input from outside cannot be run again.
    fn complete_moments(&self, job: Job<'_>, detail: Detail, watcher: &mut Watcher) -> Result<()> {
        let wanted: BTreeMap<u32, Wanted> =
            watcher.wanted.iter().fold(BTreeMap::new(), |mut all, (number, wanted, _)| {
                let one = all.entry(*number).or_insert(*wanted);
                *one = Wanted { place: one.place || wanted.place, name: one.name || wanted.name, ..*one };
                all
            });
        if wanted.is_empty() {
            return Ok(());
        }
        let target = (self.runtime, self.program, self.config);
        let seen = moments::look(target, job, detail, &mut watcher.symbols, &wanted)?;
        let mut first = None;
        for (number, _, of) in &watcher.wanted {
            let stack = seen.get(number).and_then(|seen| seen.stack.as_ref());
            let frame = stack.and_then(|stack| stack.place()).filter(|frame| frame.is_program());
            if let Target::Line(index) = of {
                first.get_or_insert(number.wrapping_sub(*index as u32));
            }
            let (Some(stack), Some(frame)) = (stack, frame) else { continue };
            match *of {
                Target::Held(thread, held) => watcher.threads[thread].holds[held].place = frame.place(),
                Target::Step(step) => {
                    if let Some(step) = watcher.cycle.as_mut().and_then(|cycle| cycle.steps.get_mut(step)) {
                        step.stack = stack.clone();
                    }
                }
                Target::Line(index) => {
                    let line = &mut watcher.trace[index];
                    (line.place, line.function, line.own) = (frame.place(), frame.function.clone(), true);
                }
            }
        }
        let names = Names::of(&seen);
        for (index, line) in watcher.trace.iter_mut().enumerate() {
            let Some(first) = first else { break };
            // Descriptors and the like are not addresses, whatever their number.
            if line.object.starts_with("0x")
                && let Some(name) = names.at(line.event.object, first + index as u32)
            {
                line.object = name.text.clone();
                if let Some(access) = line.event.access
                    && let Some(of) = name.value(access.size)
                {
                    let pointed = |address| watcher.pointed.get(&address).cloned().flatten();
                    line.value = of.text(access.value, access.size, pointed);
                }
            }
        }
        Ok(())
    }
}

impl Closeup {
    /// Adds the words that only a close-up can know to the verdict.
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
                // The C and C++ libraries print why they abort.
                if let Some(words) = abort_words(&self.output) {
                    verdict.message = format!("{}: {words}", verdict.message);
                }
            }
            _ => {}
        }
    }

    /// A short name of the bug, equal for two findings of the same kind at the same places.
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

    /// The schedule that repeats this execution.
    pub fn schedule(&self, recorder: &Recorder<'_>) -> Schedule {
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
            program: recorder.program.path.as_os_str().as_bytes().to_vec(),
            args: recorder.program.args.iter().map(|a| a.as_bytes().to_vec()).collect(),
            source: recorder.program.source.as_ref().map(|s| s.as_os_str().as_bytes().to_vec()),
            instrumented: recorder.program.source.is_some() && recorder.program.instrumented,
            with_std: recorder.program.with_std,
            symbolic: recorder.program.symbolic,
            binary: recorder.program.hash.clone(),
            at_ready: recorder.program.at_ready,
            steps_limit: recorder.config.steps,
            expect_exit: recorder.expect_exit,
            symmetry: recorder.config.symmetry,
            spurious: recorder.config.spurious,
            faults: recorder.config.faults,
            input: None,
            inputs: recorder
                .config
                .symbolic
                .as_ref()
                .map_or_else(Vec::new, |symbolic| symbolic.inputs.to_vec()),
            world: self.world(recorder),
            outcome: self.verdict.as_ref().map(|v| (v.kind, v.message.clone())),
            signature: self.signature(),
            threads: self.lines.clone(),
            entries: self.switches.iter().map(entry).collect(),
        }
    }

    fn world(&self, recorder: &Recorder<'_>) -> World {
        let mut world = stdin::recorded(&recorder.config.world, recorder.program);
        world.accesses.all |= recorder.config.points.all || recorder.config.symbolic.is_some();
        world.accesses.points.clone_from(&self.points);
        world
    }

    /// The finding, if the execution failed.
    pub fn into_finding(self, recorder: &Recorder<'_>, executions_to_find: u64) -> Option<Finding> {
        let verdict = self.verdict.clone()?;
        let schedule = self.schedule(recorder);
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
            predicted: None,
            globals: self.globals,
            minimised: None,
            explanation: None,
            output: self.output,
            input: None,
            schedule,
        })
    }
}
