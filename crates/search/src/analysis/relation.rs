//! Computes from a finished execution: the dependence of its events, happens-before, and its class.
//!
//! An *event* is one turn of a thread: its operation at a scheduling point, the decisions that are not about
//! threads on the way, and all touches until the next scheduling point. Two events are dependent if
//!
//! - they belong to the same thread,
//! - both touch an object that at least one of them writes,
//! - the first enables the thread of the second, or
//! - one of them ends the process.
//!
//! *Happens-before* is the order of an execution, restricted to dependent events and closed under
//! transitivity (vector clocks: Mattern, 1989). Executions with the same happens-before graph form a *class*
//! (a Mazurkiewicz trace). They differ only in the order of independent events, so they lead to the same
//! states and the same bugs.
//!
//! *Arrivals at a barrier* for n threads read the barrier, and each writes an object of its own. Threads that
//! leave the barrier read these objects. Arrivals therefore commute. This is correct as long as only n
//! threads ever meet there, because then all of them take part in every round. With more threads, the order
//! decides who takes part in a round. The relation is correct up to the arrival of the first thread too many,
//! so a search that relies on it reaches such an arrival if there is one. The runtime reports such an arrival
//! as a write (`Events::is_crowded`). From then on the search must treat all arrivals as writes, in all
//! executions (`Events::order_arrivals`).

use heisen_trace::touch::{NOWHERE, NOWHERE_END};
use heisen_trace::{Decision, DecisionKind, End, Execution, Op, Touch, TouchKind};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};

/// One object that an event touches, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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

impl Access {
    /// Whether this is the access of an arrival to its barrier. The other objects of barriers have no
    /// address.
    fn is_arrival(&self) -> bool {
        self.op == Op::Barrier as u8 && !(NOWHERE..NOWHERE_END).contains(&self.object)
    }
}

/// Everything that the dependence of an event is computed from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Footprint {
    pub thread: u16,
    pub accesses: Vec<Access>,
    pub enables: Vec<u16>,
    /// It depends on every event: it ends the process, or it is unknown.
    pub all: bool,
}

impl Footprint {
    /// The footprint of a step that no execution has taken yet.
    pub fn unknown(thread: u16) -> Footprint {
        Footprint { thread, all: true, ..Footprint::default() }
    }

    /// Whether an event with this footprint and a directly following one with the other cannot be swapped.
    pub fn precedes(&self, later: &Footprint) -> bool {
        self.thread == later.thread
            || self.all
            || later.all
            || self.enables.contains(&later.thread)
            || self.conflicts(later)
    }

    /// Whether two next steps that are both possible cannot be swapped. Which threads they enable does not
    /// matter: it concerns only later steps of threads that wait.
    pub fn rivals(&self, other: &Footprint) -> bool {
        self.thread == other.thread || self.all || other.all || self.conflicts(other)
    }

    /// Whether both touch an object that at least one of them writes.
    pub fn conflicts(&self, other: &Footprint) -> bool {
        if self.is_wide() && other.is_wide() {
            return conflict_in_order(&self.accesses, &other.accesses);
        }
        self.accesses
            .iter()
            .any(|a| other.accesses.iter().any(|b| a.object == b.object && (a.write || b.write)))
    }

    /// Whether it touches so many objects that they are compared in sorted order. A large copy touches each
    /// of its words.
    pub fn is_wide(&self) -> bool {
        self.accesses.len() > WIDE
    }

    /// Whether it writes an object.
    pub fn writes(&self, object: u64) -> bool {
        self.accesses.iter().any(|a| a.object == object && a.write)
    }

    /// Whether it is an atomic section.
    pub fn begins_section(&self) -> bool {
        self.accesses.iter().any(|a| a.op == Op::Section as u8)
    }

    /// Adds what another outcome of the same step depends on.
    pub fn add(&mut self, other: &Footprint) {
        self.all |= other.all;
        if self.accesses != other.accesses {
            let known: HashSet<Access> = self.accesses.iter().copied().collect();
            self.accesses.extend(other.accesses.iter().filter(|&a| !known.contains(a)));
            self.put_in_order();
        }
        for &t in &other.enables {
            if !self.enables.contains(&t) {
                self.enables.push(t);
            }
        }
    }
}

impl Footprint {
    /// Sorts the accesses of a wide footprint by object. Accesses of one object stay in their original order.
    fn put_in_order(&mut self) {
        if self.is_wide() {
            self.accesses.sort_by_key(|a| a.object);
        }
    }
}

/// Whether two lists of accesses have an object in common that at least one of them writes. The lists are
/// sorted by object, unless they come from a search that an older version has saved.
fn conflict_in_order(one: &[Access], other: &[Access]) -> bool {
    let object = |a: &Access| a.object;
    if !one.is_sorted_by_key(object) || !other.is_sorted_by_key(object) {
        let mut objects: HashMap<u64, bool> = HashMap::new();
        for a in one {
            *objects.entry(a.object).or_default() |= a.write;
        }
        return other.iter().any(|b| objects.get(&b.object).is_some_and(|&write| write || b.write));
    }
    let runs = |list: &'_ [Access]| {
        let runs = list.chunk_by(|a, b| a.object == b.object);
        runs.map(|run| (run[0].object, run.iter().any(|a| a.write))).collect::<Vec<_>>()
    };
    let (one, other) = (runs(one), runs(other));
    let mut rest = other.iter().peekable();
    one.iter().any(|&(object, write)| {
        while rest.next_if(|(before, _)| *before < object).is_some() {}
        rest.peek().is_some_and(|(same, writes)| *same == object && (write || *writes))
    })
}

/// With more accesses than this, two events are too expensive to compare access by access.
const WIDE: usize = 32;

/// A decision of an event that is not about threads.
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
    /// The step at which its thread was scheduled.
    pub step: u32,
    /// The threads that were enabled, in the order of the choices.
    pub candidates: Vec<u16>,
    /// The decision that scheduled its thread, if there was one: the choice, the hash, and whether other
    /// choices preempt.
    pub chosen: Option<(u16, u64, bool)>,
    pub outcomes: Vec<Outcome>,
    /// No thread was enabled, and this event came when virtual time was advanced.
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
    /// The next steps of threads that wait at the end for an object to be released.
    pub waits: Vec<Footprint>,
    /// The next steps of threads that were enabled when the process ended.
    pub ready: Vec<Footprint>,
    /// Whether the execution recorded all threads that wait at the end.
    pub waits_known: bool,
    /// Events that access memory, in order, with the places of the accesses, if places were recorded.
    places: Vec<(usize, u64)>,
}

impl Events {
    /// The events of an execution whose plan asked for all touches. `None` if a thread decision has no
    /// candidates: then they were not recorded.
    pub fn read(execution: &Execution) -> Option<Events> {
        // At a deadlock no thread runs after the last scheduling point, unless the runtime saw the deadlock
        // before it.
        let is_cut = |t: &Touch| t.kind == TouchKind::All && t.op != Op::Sleep as u8;
        let stood_still = execution.end == End::Deadlock && !execution.touches.iter().any(is_cut);
        let last = execution.steps.saturating_sub(u32::from(stood_still));
        let mut touches = execution.touches.iter().filter(|t| t.kind != TouchKind::Waits).peekable();
        let mut decisions = execution.decisions.iter().peekable();
        let mut events: Vec<Event> = Vec::new();
        let mut running = 0;
        // The accesses of the last event so far.
        let mut touched: HashSet<Access> = HashSet::new();
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
                touched.clear();
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
                        if touched.insert(access) {
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
        events.iter_mut().for_each(|event| event.foot.put_in_order());
        let ended = |e: &Event| e.foot.accesses.iter().any(|a| a.op == Op::End as u8);
        if matches!(execution.end, End::Exit(_) | End::Signal(_))
            && let Some(event) = events.last_mut().filter(|e| !ended(e))
        {
            // The end of the process cuts off all other threads, so it depends on every event.
            event.foot.all = true;
        }
        // After a crash the runtime does not record which threads wait.
        let mut waits_known = !matches!(execution.end, End::Deadlock | End::Signal(1..=5 | 7..));
        let at_end: Vec<&Touch> = execution.touches.iter().filter(|t| t.kind == TouchKind::Waits).collect();
        for (at, t) in at_end.iter().enumerate() {
            waits_known |= execution.end == End::Deadlock;
            // A program that exits records its waiting threads at the start of exit and at its end; the last
            // record counts.
            if at_end[at + 1..].iter().any(|later| later.thread == t.thread) {
                continue;
            }
            let ran = |e: &Event| e.thread() == t.thread && e.step > t.step;
            if events.iter().any(ran) {
                continue;
            }
            // A thread that waits to be woken competes with no other thread.
            let op = Op::from_code(t.op);
            if !matches!(op, Some(Op::CondWait | Op::CondTimedWait | Op::FutexWait | Op::SigWait)) {
                let write = op != Some(Op::Join);
                let accesses = vec![Access { object: t.word, write, op: t.op }];
                let foot = Footprint { thread: t.thread, accesses, ..Footprint::default() };
                // The search explores a thread that was enabled instead of the end of the process at that
                // event.
                let tried = |e: &Event| e.foot.all && e.could_be(t.thread);
                if events.last().is_some_and(tried) { &mut ready } else { &mut waits }.push(foot);
            }
        }
        Some(Events { events, waits, ready, waits_known, places })
    }

    /// Whether more threads have arrived at a barrier than it is made for.
    pub fn is_crowded(&self) -> bool {
        let crowds = |a: &Access| a.is_arrival() && a.write;
        self.events.iter().any(|e| e.foot.accesses.iter().any(crowds))
    }

    /// Makes arrivals at barriers depend on each other.
    pub fn order_arrivals(&mut self) {
        for event in &mut self.events {
            for a in event.foot.accesses.iter_mut().filter(|a| a.is_arrival()) {
                *a = Access { write: true, op: 0, ..*a };
            }
        }
    }

    /// Removes an event and all that follow. Adds to `waits` the next steps of the threads that were disabled
    /// there.
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

    /// The places from which an event accesses memory, if places were recorded.
    pub fn places(&self, event: usize) -> impl Iterator<Item = u64> {
        let from = self.places.partition_point(|&(at, _)| at < event);
        self.places[from..].iter().take_while(move |&&(at, _)| at == event).map(|&(_, place)| place)
    }

    /// The vector clocks of the events.
    pub fn clocks(&self) -> Clocks {
        Clocks::new(self.events.iter().map(|e| &e.foot))
    }

    /// A hash of the class: equal for executions of the same class and, very probably, only for those.
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

/// The hash of an execution's class, if its touches were recorded; see the head of this file.
pub fn fingerprint(execution: &Execution) -> Option<u64> {
    Events::read(execution).map(|events| events.fingerprint())
}

/// The threads of a set of bits, `first` first and the others in cyclic order after it.
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

/// Mixes the bits of a word, so that different sets of words very probably have different sums of results.
pub(crate) const fn mix(word: u64) -> u64 {
    crate::analysis::seeds::nth(word, 0)
}

/// Vector clocks: how many events of each thread happen before an event, itself included.
#[derive(Clone, Debug)]
pub(crate) struct Clocks {
    threads: usize,
    counts: Vec<u32>,
    /// For each event: its thread, and its number among the events of that thread, from 1.
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

    /// Whether the first event happens before the second, or is the second.
    pub fn before(&self, first: usize, second: usize) -> bool {
        let (thread, number) = self.places[first];
        self.clock(second)[usize::from(thread)] >= number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Accesses of `words` words from one on, and of a few other objects.
    fn foot(from: u64, words: u64, write: bool, others: &[(u64, bool)]) -> Footprint {
        let wide = (from..from + words).map(|object| Access { object, write, op: 0 });
        let others = others.iter().map(|&(object, write)| Access { object, write, op: 1 });
        Footprint { accesses: wide.chain(others).collect(), ..Footprint::default() }
    }

    #[test]
    fn wide_footprints_conflict_as_narrow_ones_do() {
        let feet = [
            foot(1000, 400, false, &[(5, true)]),
            foot(1200, 400, false, &[(5, false)]),
            foot(1399, 400, true, &[(9, true), (4, true)]),
            foot(1400, 400, false, &[(9, false), (1450, true)]),
            foot(9000, 400, true, &[(1000, false)]),
            foot(9400, 400, true, &[]),
            foot(0, 3, true, &[(9001, false)]),
        ];
        let slow = |a: &Footprint, b: &Footprint| {
            let meets = |x: &Access, y: &Access| x.object == y.object && (x.write || y.write);
            a.accesses.iter().any(|x| b.accesses.iter().any(|y| meets(x, y)))
        };
        let mut conflicts = 0;
        for a in &feet {
            for b in &feet {
                let expected = slow(a, b);
                conflicts += usize::from(expected);
                // Unsorted, as an older version saved them, and then sorted.
                assert_eq!(a.conflicts(b), expected, "{a:?} {b:?}");
                let (mut a, mut b) = (a.clone(), b.clone());
                a.put_in_order();
                b.put_in_order();
                assert_eq!(a.conflicts(&b), expected, "in order: {a:?} {b:?}");
            }
        }
        assert!(conflicts > 10 && conflicts < 40, "{conflicts}");
    }

    #[test]
    fn what_is_added_is_there_once() {
        let mut one = foot(0, 100, false, &[]);
        one.add(&foot(50, 100, false, &[(3, true)]));
        assert_eq!(one.accesses.len(), 151);
        assert!(one.accesses.is_sorted_by_key(|a| a.object));
    }
}
