//! What the steps of a finished execution have to do with each other: dependence, happens-before, and the class.
//!
//! An *event* is one turn of a thread: its operation at a scheduling point, the decisions on other things that it makes on
//! the way, and all it touches until the next point. Two events are dependent if they are of the same thread, if both touch an
//! object that at least one of them writes, if the first enables the thread of the second, or if one of them ends the
//! process. *Happens-before* is the order of an execution, restricted to dependent events and closed under transitivity
//! (vector clocks: Mattern, 1989). Executions with the same happens-before graph are a *class* (a Mazurkiewicz trace): they
//! differ only in the order of independent events, so they lead to the same states and the same bugs.

use heisen_trace::{Decision, DecisionKind, End, Execution, Op, Touch, TouchKind};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// One object that an event touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u64, bool, u8)", into = "(u64, bool, u8)")]
pub(crate) struct Access {
    pub object: u64,
    pub write: bool,
    pub op: u8,
}

impl From<(u64, bool, u8)> for Access {
    fn from((object, write, op): (u64, bool, u8)) -> Access {
        Access { object, write, op }
    }
}

impl From<Access> for (u64, bool, u8) {
    fn from(a: Access) -> Self {
        (a.object, a.write, a.op)
    }
}

/// What an event depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Footprint {
    pub thread: u16,
    pub accesses: Vec<Access>,
    pub enables: Vec<u16>,
    /// It depends on everything: it ends the process, or is not known.
    pub all: bool,
}

impl Footprint {
    /// That of a step that nobody has seen.
    pub fn unknown(thread: u16) -> Footprint {
        Footprint { thread, all: true, ..Footprint::default() }
    }

    /// Whether an event with this footprint, and then one with the other, could not be swapped.
    pub fn precedes(&self, later: &Footprint) -> bool {
        self.thread == later.thread
            || self.all
            || later.all
            || self.enables.contains(&later.thread)
            || self.conflicts(later)
    }

    /// Whether two next steps, which both can be taken, could not be swapped. Whom they enable does not matter then: that
    /// is some later step of a thread that waits.
    pub fn rivals(&self, other: &Footprint) -> bool {
        self.thread == other.thread || self.all || other.all || self.conflicts(other)
    }

    /// Whether both touch an object that at least one of them writes.
    pub fn conflicts(&self, other: &Footprint) -> bool {
        self.accesses
            .iter()
            .any(|a| other.accesses.iter().any(|b| a.object == b.object && (a.write || b.write)))
    }

    /// Whether it writes an object.
    pub fn writes(&self, object: u64) -> bool {
        self.accesses.iter().any(|a| a.object == object && a.write)
    }

    /// Adds what another outcome of the same step depends on.
    pub fn add(&mut self, other: &Footprint) {
        self.all |= other.all;
        for &a in &other.accesses {
            if !self.accesses.contains(&a) {
                self.accesses.push(a);
            }
        }
        for &t in &other.enables {
            if !self.enables.contains(&t) {
                self.enables.push(t);
            }
        }
    }
}

/// A decision on something else than threads that an event makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u8, u16, u16, u64)", into = "(u8, u16, u16, u64)")]
pub(crate) struct Outcome {
    pub kind: u8,
    pub options: u16,
    pub chosen: u16,
    pub hash: u64,
}

impl From<(u8, u16, u16, u64)> for Outcome {
    fn from((kind, options, chosen, hash): (u8, u16, u16, u64)) -> Outcome {
        Outcome { kind, options, chosen, hash }
    }
}

impl From<Outcome> for (u8, u16, u16, u64) {
    fn from(o: Outcome) -> Self {
        (o.kind, o.options, o.chosen, o.hash)
    }
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Event {
    pub foot: Footprint,
    /// The step at which its thread was chosen.
    pub step: u32,
    /// The threads that could have taken it, in the order of the choices.
    pub candidates: Vec<u16>,
    /// The decision by which its thread was chosen, if there was one: its choice, its hash, whether others preempt.
    pub chosen: Option<(u16, u64, bool)>,
    pub outcomes: Vec<Outcome>,
    /// Nobody could go on, and this is what came when time was let pass.
    pub idle: bool,
}

impl Event {
    pub fn thread(&self) -> u16 {
        self.foot.thread
    }

    /// Whether a thread could have taken this step.
    pub fn could_be(&self, thread: u16) -> bool {
        self.candidates.contains(&thread)
    }
}

/// The events of an execution.
#[derive(Clone, Debug, Default)]
pub(crate) struct Events {
    pub events: Vec<Event>,
    /// What threads that wait at the end for something to be freed would do next.
    pub waits: Vec<Footprint>,
    /// What threads would do next that could go on when the process was ended.
    pub ready: Vec<Footprint>,
    /// Whether all is told of threads that wait at the end.
    pub told: bool,
    /// Events that access memory, in order, and the places in the code that do so, where these are told.
    places: Vec<(usize, u64)>,
}

impl Events {
    /// The events of an execution whose plan asked for all touches; none if it has a thread decision without candidates,
    /// so that they were not recorded.
    pub fn read(execution: &Execution) -> Option<Events> {
        // At a deadlock a point was passed after which nobody ran, unless the deadlock was seen before that.
        let is_cut = |t: &Touch| t.kind == TouchKind::All && t.op != Op::Sleep as u8;
        let stood_still = execution.end == End::Deadlock && !execution.touches.iter().any(is_cut);
        let last = execution.steps.saturating_sub(u32::from(stood_still));
        let mut touches = execution.touches.iter().filter(|t| t.kind != TouchKind::Waits).peekable();
        let mut decisions = execution.decisions.iter().peekable();
        let mut events: Vec<Event> = Vec::new();
        let mut running = 0;
        let (mut waits, mut ready, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for step in 0..=last {
            let decision = decisions.next_if(|d| d.step == step);
            let inner = decision.filter(|d| d.kind != DecisionKind::Thread);
            if let Some(d) = inner {
                let outcome =
                    Outcome { kind: d.kind as u8, options: d.options, chosen: d.chosen, hash: d.hash };
                events.last_mut()?.outcomes.push(outcome);
            } else {
                let foot = Footprint::default();
                let (candidates, outcomes) = (vec![], vec![]);
                events.push(Event { foot, step, candidates, chosen: None, outcomes, idle: false });
            }
            let at = events.len() - 1;
            let event = events.last_mut()?;
            let mut set: Vec<(usize, u64)> = Vec::new();
            let mut first = 0;
            while let Some(touch) = touches.next_if(|t| t.step <= step) {
                match touch.kind {
                    TouchKind::Switch => running = touch.thread,
                    TouchKind::Choices => {
                        first = touch.thread;
                        set.push((usize::from(touch.op), touch.word));
                    }
                    TouchKind::Read | TouchKind::Write => {
                        let write = touch.kind == TouchKind::Write;
                        let access = Access { object: touch.word, write, op: touch.op };
                        if !event.foot.accesses.contains(&access) {
                            event.foot.accesses.push(access);
                        }
                    }
                    TouchKind::Enables => event.foot.enables.push(touch.word as u16),
                    TouchKind::All => {
                        event.idle |= touch.op == Op::Sleep as u8;
                        event.foot.all |= event.idle || touch.word != 0;
                    }
                    TouchKind::At if Op::from_code(touch.op).is_some_and(Op::is_access) => {
                        places.push((at, touch.word));
                    }
                    TouchKind::State | TouchKind::Waits | TouchKind::At => {}
                }
            }
            if inner.is_none() {
                event.foot.thread = running;
                event.candidates = if set.is_empty() { vec![running] } else { in_order(first, &set) };
                event.chosen = decision.map(|d: &Decision| (d.chosen, d.hash, d.preemptive));
                let expected = decision.map_or(0, |d| d.chosen);
                if decision.is_some() && set.is_empty()
                    || event.candidates.get(usize::from(expected)) != Some(&running)
                {
                    return None;
                }
            }
        }
        let ended = |e: &Event| e.foot.accesses.iter().any(|a| a.op == Op::End as u8);
        if matches!(execution.end, End::Exit(_) | End::Signal(_))
            && let Some(event) = events.last_mut().filter(|e| !ended(e))
        {
            // Whoever could still have gone on, or had gone on before, is cut off here and not elsewhere.
            event.foot.all = true;
        }
        // A crash is not seen in time.
        let mut told = !matches!(execution.end, End::Deadlock | End::Signal(1..=5 | 7..));
        for t in execution.touches.iter().filter(|t| t.kind == TouchKind::Waits) {
            told |= execution.end == End::Deadlock;
            let ran = |e: &Event| e.thread() == t.thread && e.step > t.step;
            if events.iter().any(ran) {
                continue;
            }
            // Who waits to be woken is not in the way of anybody.
            let op = Op::from_code(t.op);
            if !matches!(op, Some(Op::CondWait | Op::CondTimedWait | Op::FutexWait | Op::SigWait)) {
                let write = op != Some(Op::Join);
                let accesses = vec![Access { object: t.word, write, op: t.op }];
                let foot = Footprint { thread: t.thread, accesses, ..Footprint::default() };
                // Who could have gone on instead of what ends the process is tried there.
                let tried = |e: &Event| e.foot.all && e.could_be(t.thread);
                if events.last().is_some_and(tried) { &mut ready } else { &mut waits }.push(foot);
            }
        }
        Some(Events { events, waits, ready, told, places })
    }

    /// Cuts off an event and all that follow, but for what threads that were in the way of nobody there, as they had to wait,
    /// would have done next.
    pub fn cut(&mut self, at: usize) {
        let Some(event) = self.events.get(at) else { return };
        let mut seen = event.candidates.clone();
        let rest = self.events.split_off(at);
        let next = rest.into_iter().map(|e| e.foot).chain(std::mem::take(&mut self.waits));
        for foot in next {
            if !seen.contains(&foot.thread) {
                seen.push(foot.thread);
                self.waits.push(foot);
            }
        }
    }

    /// The places in the code from which an event accesses memory, where these are told.
    pub fn places(&self, event: usize) -> impl Iterator<Item = u64> {
        let from = self.places.partition_point(|&(at, _)| at < event);
        self.places[from..].iter().take_while(move |&&(at, _)| at == event).map(|&(_, place)| place)
    }

    /// The vector clocks of the events.
    pub fn clocks(&self) -> Clocks {
        Clocks::new(self.events.iter().map(|e| &e.foot))
    }

    /// A number that is the same for executions of the same class and, in all likelihood, only for those.
    pub fn fingerprint(&self) -> u64 {
        let clocks = self.clocks();
        let mut sum = 0u64;
        for (at, event) in self.events.iter().enumerate() {
            let mut h = mix(u64::from(event.thread()) + 1);
            for o in &event.outcomes {
                h = mix(h ^ (u64::from(o.chosen) + 1));
            }
            for (thread, &count) in clocks.clock(at).iter().enumerate() {
                if count > 0 {
                    h = mix(h ^ ((thread as u64) << 32 | u64::from(count)));
                }
            }
            sum = sum.wrapping_add(h);
        }
        sum
    }
}

/// The number of an execution's class, if its touches were recorded; see the head of this file.
pub fn fingerprint(execution: &Execution) -> Option<u64> {
    Events::read(execution).map(|events| events.fingerprint())
}

/// The threads of a set given by words, `first` first and the others in cyclic order after it.
pub(crate) fn in_order(first: u16, set: &[(usize, u64)]) -> Vec<u16> {
    let mut threads: Vec<u16> = Vec::new();
    for &(word, bits) in set {
        threads.extend((0..64).filter(|b| bits >> b & 1 != 0).map(|b| (word * 64) as u16 + b));
    }
    threads.sort_unstable();
    let turn = threads.partition_point(|&t| t < first);
    threads.rotate_left(turn);
    threads
}

/// Mixes a word, so that sums of results tell sets apart.
pub(crate) const fn mix(word: u64) -> u64 {
    crate::seeds::nth(word, 0)
}

/// Vector clocks: how many events of each thread happen before an event, itself included.
#[derive(Clone, Debug)]
pub(crate) struct Clocks {
    threads: usize,
    counts: Vec<u32>,
    /// Of each event its thread and its number among that thread's events, from 1.
    places: Vec<(u16, u32)>,
}

/// The events that an access to an object comes after.
#[derive(Default)]
struct Last {
    write: Option<usize>,
    reads: Vec<usize>,
}

impl Clocks {
    /// The clocks of events in this order.
    pub fn new<'a>(feet: impl Iterator<Item = &'a Footprint> + Clone) -> Clocks {
        let threads = feet.clone().map(|f| usize::from(f.thread) + 1).max().unwrap_or(0);
        let mut clocks = Clocks { threads, counts: Vec::new(), places: Vec::new() };
        let mut latest: Vec<Option<usize>> = vec![None; threads];
        let mut enabled_by: Vec<Vec<usize>> = vec![Vec::new(); threads];
        let mut objects: HashMap<u64, Last> = HashMap::new();
        let mut unknown: Option<usize> = None;
        for (at, foot) in feet.enumerate() {
            let thread = usize::from(foot.thread);
            let mut clock = vec![0; threads];
            let mut after = |e: usize, clocks: &Clocks| {
                for (mine, &other) in clock.iter_mut().zip(clocks.clock(e)) {
                    *mine = other.max(*mine);
                }
            };
            for e in latest[thread].into_iter().chain(enabled_by[thread].drain(..)).chain(unknown) {
                after(e, &clocks);
            }
            if foot.all {
                latest.iter().flatten().for_each(|&e| after(e, &clocks));
                unknown = Some(at);
            }
            for a in &foot.accesses {
                let last = objects.entry(a.object).or_default();
                last.write.into_iter().for_each(|e| after(e, &clocks));
                if a.write {
                    last.reads.iter().for_each(|&e| after(e, &clocks));
                }
            }
            for a in &foot.accesses {
                let last = objects.entry(a.object).or_default();
                if a.write {
                    *last = Last { write: Some(at), reads: vec![] };
                } else if last.write != Some(at) {
                    last.reads.push(at);
                }
            }
            for &t in foot.enables.iter().filter(|&&t| usize::from(t) < threads) {
                enabled_by[usize::from(t)].push(at);
            }
            clock[thread] += 1;
            clocks.places.push((foot.thread, clock[thread]));
            clocks.counts.extend(clock);
            latest[thread] = Some(at);
        }
        clocks
    }

    fn clock(&self, event: usize) -> &[u32] {
        &self.counts[event * self.threads..][..self.threads]
    }

    /// How many events of a thread happen before an event, itself included.
    pub fn count(&self, event: usize, thread: usize) -> usize {
        self.clock(event)[thread] as usize
    }

    /// Whether the first event happens before the second, or is it.
    pub fn before(&self, first: usize, second: usize) -> bool {
        let (thread, number) = self.places[first];
        self.clock(second)[usize::from(thread)] >= number
    }
}
