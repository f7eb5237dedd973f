//! Observes the pauses of an execution: a switch at each decision, the cause at a panic or misuse, all
//! threads at the end. The program is paused meanwhile, and is read from outside.

use super::blocked::{self, settle};
use super::describe::{
    Pointed, describe_cycle, describe_events, describe_thread, held_by, holders_for, is_timer, object_name,
    or_place, path_of, paused_stack, thread_name,
};
use super::globals::Globals;
use super::moments::{MAX_MOMENTS, Wanted};
use super::namer::Namer;
use super::outside_waits;
use super::race_watch::RaceWatch;
use super::{TraceLine, WatchedAccess};
use crate::explain::livelock::Recurrence;
use crate::explain::necessary::operations;
use crate::explain::{cycle, divergence, heap_error};
use crate::process::slots::{Event, diverged_place, read_events, registers, report_of};
use crate::process::zygote::Observer;
use heisen_inspect::{Symbols, View};
use heisen_trace::cycle::Cycle;
use heisen_trace::finding::{Switch, SwitchKind, ThreadEnd};
use heisen_trace::schedule::ThreadLine;
use heisen_trace::{DecisionKind, Fault, Op, Stack, ThreadId};
use heisen_wire::{Wire, end, misuse, state, stop};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering::Relaxed;

/// Later switches are described only by the place of the call, without a stack.
const MAX_STACKS: usize = 200;

/// Collects the observations at the pauses of an execution.
#[derive(Debug, Default)]
pub(super) struct Watcher {
    pub(super) symbols: Symbols,
    pub(super) race_watch: RaceWatch,
    pub(super) access: Option<WatchedAccess>,
    pub(super) trace_wanted: bool,
    pub(super) switches: Vec<Switch>,
    pub(super) thread: Option<ThreadId>,
    pub(super) stack: Stack,
    pub(super) threads: Vec<ThreadEnd>,
    pub(super) idle: Vec<String>,
    pub(super) cycle: Option<Cycle>,
    pub(super) lines: Vec<ThreadLine>,
    pub(super) trace: Vec<TraceLine>,
    pub(super) diverged: String,
    /// The thread and the stack of the first panic, and how many events came before it.
    pub(super) thrown: Option<(ThreadId, Stack, u32)>,
    pub(super) misused: Option<(ThreadId, Stack)>,
    pub(super) memory: Option<heap_error::Error>,
    pub(super) recurrence: Recurrence,
    pub(super) namer: Namer,
    pub(super) globals: Globals,
    pub(super) pointed: Pointed,
    /// Events whose stack or name only a pause at the event can show, by their number.
    pub(super) wanted: Vec<(u32, Wanted, Target)>,
}

/// The part of the close-up that an event describes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Target {
    /// A lock that a thread holds at the end: the indices of both.
    Held(usize, usize),
    /// A step of the cycle.
    Step(usize),
    /// A line of the trace.
    Line(usize),
}

impl Observer for Watcher {
    fn stopped(&mut self, wire: &Wire, pid: i32) {
        if self.access.is_none() && self.race_watch.watched(wire, pid) {
            return;
        }
        self.namer.at_pause();
        let mut symbols = std::mem::take(&mut self.symbols);
        if let Ok(mut view) = View::new(&mut symbols, pid) {
            let thread = ThreadId(wire.stop.thread.load(Relaxed) as u16);
            match wire.stop.reason.load(Relaxed) {
                stop::WATCHED => {
                    if let Some(access) = &mut self.access {
                        access.reached(|| view.stack(registers(wire)));
                    }
                }
                stop::STATE => self.recurrence.stopped(wire, &view),
                stop::CONFLICT => self.race_watch.conflict(wire, &mut view, &mut self.namer),
                stop::DECISION => self.decision(wire, &mut view),
                stop::THROW => {
                    // The first panic is the cause; later ones are mostly its consequences.
                    let stack = view.stack(registers(wire));
                    self.thrown.get_or_insert((thread, stack, report_of(wire).events.load(Relaxed)));
                }
                stop::MISUSE => {
                    self.misused = Some((thread, view.stack(registers(wire))));
                    let report = report_of(wire);
                    let what = report.misuse.load(Relaxed);
                    if (misuse::HEAP..=misuse::HEAP_LAST).contains(&what) {
                        let address = report.misuse_object.load(Relaxed);
                        self.memory = Some(heap_error::Error::read(wire, &mut view, what, thread, address));
                    }
                }
                _ => {
                    self.end(wire, &mut view);
                    // Threads that wait for each other in a cycle wait for ever, even if someone outside
                    // comes.
                    self.idle = match blocked::has_cycle(&self.threads) {
                        true => Vec::new(),
                        false => outside_waits::waits(wire, pid),
                    };
                }
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
            _ => object_name(view, wire, &mut self.namer, op, stop.object.load(Relaxed)),
        };
        self.globals.at_switch(view);
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
        self.globals.at_end(view);
        let events = read_events(wire);
        let count = report_of(wire).threads.load(Relaxed) as usize;
        let mut holders = Vec::new();
        self.threads.clear();
        self.lines.clear();
        self.wanted.clear();
        for (number, t) in wire.threads.iter().enumerate().take(count) {
            let id = ThreadId(number as u16);
            let ended = t.state.load(Relaxed) == state::ENDED;
            let stack = match number {
                _ if ended => Stack::default(),
                _ if number == running => self.stack.clone(),
                _ => or_place(paused_stack(view, t), view, t),
            };
            // A timer has a number among the threads, but is not a thread of the program.
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
            self.threads.push(describe_thread(view, wire, &mut self.namer, number, stack, &events));
            self.want_locks(view, wire, id, &events);
            holders.push(holders_for(view, t, &events));
        }
        settle(&mut self.threads, &holders);
        let ended = |id: ThreadId| {
            wire.threads.get(id.0 as usize).is_some_and(|t| t.state.load(Relaxed) == state::ENDED)
        };
        for thread in &mut self.threads {
            thread.holder_ended = thread.holder.is_some_and(ended);
        }
        if let Some(place) = diverged_place(report_of(wire)) {
            self.diverged = divergence::describe(view, place);
        }
        if report_of(wire).end.load(Relaxed) == end::STEP_LIMIT {
            // If every thread waits for memory, the execution ends long before its last, fair quarter.
            let early = (report_of(wire).end_code.load(Relaxed) as i32) < 0;
            let fair = if early { cycle::Fair::Half } else { cycle::Fair::Quarter };
            let found = cycle::find(&events, fair);
            self.want_steps(wire, &events, found.as_ref());
            self.cycle = found.map(|found| describe_cycle(view, wire, &mut self.namer, found));
        }
        if self.trace_wanted {
            let first = first_number(wire, &events);
            let (trace, unnamed) = describe_events(view, wire, events, &mut self.pointed);
            self.want_lines(first, &trace, &unnamed);
            self.trace = trace;
        }
    }

    /// The places where a thread took the locks that it holds, if they are in a library.
    fn want_locks(&mut self, view: &mut View<'_>, wire: &Wire, thread: ThreadId, events: &[Event]) {
        let held = held_by(view, wire, &mut self.namer, thread, events);
        let first = first_number(wire, events);
        for (index, lock) in held.iter().enumerate().filter(|(_, lock)| !lock.own) {
            let wanted = Wanted { event: events[lock.event], place: true, name: false };
            let target = Target::Held(self.threads.len() - 1, index);
            self.wanted.push((first + lock.event as u32, wanted, target));
        }
    }

    /// The places of the steps of a cycle, each at its last occurrence.
    fn want_steps(&mut self, wire: &Wire, events: &[Event], found: Option<&cycle::Found>) {
        let first = first_number(wire, events);
        for (step, (event, _)) in found.iter().flat_map(|found| &found.events).enumerate() {
            let key = |e: &Event| (e.thread, e.pc, e.op, e.object, e.ok);
            if let Some(index) = events.iter().rposition(|e| key(e) == key(event)) {
                let wanted = Wanted { event: *event, place: true, name: false };
                self.wanted.push((first + index as u32, wanted, Target::Step(step)));
            }
        }
    }

    /// The places of events in libraries, and the names of memory outside of global variables: each at its first use
    /// by each place. If there are too many, those of calls and of memory that several threads use count first, and then the
    /// last ones, which lead to the failure.
    fn want_lines(&mut self, first: u32, trace: &[TraceLine], unnamed: &[bool]) {
        let mut seen = HashSet::new();
        let mut all = Vec::new();
        let lines: Vec<(usize, &TraceLine, bool)> = trace
            .iter()
            .zip(unnamed)
            .enumerate()
            .map(|(index, (line, unnamed))| (index, line, *unnamed))
            .collect();
        let mut users: HashMap<u64, HashSet<ThreadId>> = HashMap::new();
        for line in trace {
            users.entry(line.event.object).or_default().insert(line.event.thread);
        }
        for &(index, line, unnamed) in operations(&lines, |(_, line, _)| &line.event) {
            let event = line.event;
            let is_shared = !event.op.is_access() || users[&event.object].len() > 1;
            let name = unnamed && seen.insert((event.object, event.pc, event.thread));
            let place = !line.own && event.pc != 0 && event.op != Op::Start;
            if name || place {
                let wanted = Wanted { event, place, name };
                all.push((is_shared, first + index as u32, wanted, Target::Line(index)));
            }
        }
        all.sort_by_key(|&(is_shared, number, ..)| (is_shared, number));
        let chosen = all.drain(all.len().saturating_sub(MAX_MOMENTS)..);
        self.wanted.extend(chosen.map(|(_, number, wanted, target)| (number, wanted, target)));
    }
}

/// The number of the first of these events, which are the last that were logged.
fn first_number(wire: &Wire, events: &[Event]) -> u32 {
    (report_of(wire).events.load(Relaxed) + 1).saturating_sub(events.len() as u32)
}
