//! Finds races that can be reversed: pairs of events of which the second could have come before the first.
//!
//! In "Optimal Dynamic Partial Order Reduction" (POPL 2014, definition 4.1; JACM 2017, section 4) two
//! dependent events of different threads race if no event lies between them in happens-before. The race is
//! reversible if the thread of the second event was not blocked before the first. In real programs threads
//! block all the time, so this module uses a more general definition. Event j of thread p *can be moved
//! before* event i of another thread if
//!
//! 1. i and j are dependent, and neither an earlier event of p nor the event that enabled p happens after i;
//! 2. p can take its step in the state that is reached by the events before i and all events that do not
//!    happen after i;
//! 3. no later event between i and j in happens-before satisfies 1 and 2. Otherwise that event is reversed
//!    with j first, and i in the execution that results.
//!
//! Example: the unlock of a mutex cannot be reversed with the lock that waits for it, because 2 does not
//! hold. Therefore the lock before that unlock can.
//!
//! No execution has visited the state of condition 2. If p reached its step before i, the threads that were
//! enabled at i give the answer. Otherwise the operations give it. Where they do not (a semaphore that is
//! posted may have been above 0 before), the answer is "perhaps". Then only the other events are moved before
//! i, and running that sequence shows what p can do.

use crate::analysis::relation::{Access, Clocks, Events, Footprint};
use crate::systematic::dpor::sequence::Sequence;
use heisen_trace::Op;
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

/// A race that can be reversed.
pub(crate) struct Race {
    /// The event before which the other one is moved.
    pub first: usize,
    /// The event that is moved. A number past the last event is a step that a thread waits for at the end.
    pub second: usize,
    /// Whether the thread may turn out to be blocked there.
    pub perhaps: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Able {
    Yes,
    Perhaps,
    No,
}

/// An execution, prepared for the search for races.
pub(crate) struct Races<'a> {
    all: &'a Events,
    pub clocks: Clocks,
    /// For each event and then each waiting thread: the event before it of the same thread.
    previous: Vec<Option<usize>>,
    /// By object: the events that touch it, in order.
    touching: HashMap<u64, Vec<usize>>,
}

impl<'a> Races<'a> {
    /// Prepares these events and the steps that threads wait for.
    pub fn new(all: &'a Events) -> Races<'a> {
        let mut latest: HashMap<u16, usize> = HashMap::new();
        let mut touching: HashMap<u64, Vec<usize>> = HashMap::new();
        let mut previous = Vec::new();
        for (at, event) in all.events.iter().enumerate() {
            previous.push(latest.insert(event.thread(), at));
            for a in &event.foot.accesses {
                let list = touching.entry(a.object).or_default();
                if list.last() != Some(&at) {
                    list.push(at);
                }
            }
        }
        previous.extend(all.waits.iter().map(|w| latest.get(&w.thread).copied()));
        Races { all, clocks: all.clocks(), previous, touching }
    }

    /// The footprint of an event, or of the step that a thread waits for.
    pub fn foot(&self, event: usize) -> &'a Footprint {
        let events = self.all.events.len();
        match self.all.events.get(event) {
            Some(e) => &e.foot,
            None => &self.all.waits[event - events],
        }
    }

    /// The event before this one of the same thread.
    pub fn previous(&self, event: usize) -> Option<usize> {
        self.previous[event]
    }

    /// The events of other threads that an event depends on, reversible or not, the latest first.
    pub fn causes(&self, event: usize) -> Vec<usize> {
        // An event that happens only when no thread is enabled cannot happen earlier.
        if self.all.events.get(event).is_some_and(|e| e.idle) {
            return vec![];
        }
        let foot = self.foot(event);
        let since = self.previous[event].map_or(0, |p| p + 1)..event.min(self.all.events.len());
        let enables = since.filter(|&e| self.foot(e).enables.contains(&foot.thread));
        let mut causes: Vec<usize> = self.touched_before(event).chain(enables).collect();
        causes.retain(|&e| self.foot(e).thread != foot.thread && self.foot(e).precedes(foot));
        causes.sort_unstable_by(|a, b| b.cmp(a));
        causes.dedup();
        causes
    }

    /// All races that can be reversed.
    pub fn all(&self) -> Vec<Race> {
        let mut races = Vec::new();
        for second in 0..self.previous.len() {
            self.with_second(second, &mut races);
        }
        races
    }

    fn with_second(&self, second: usize, races: &mut Vec<Race>) {
        // An event that happens only when no thread is enabled cannot happen earlier.
        if self.all.events.get(second).is_some_and(|e| e.idle) {
            return;
        }
        let foot = self.foot(second);
        let found = races.len();
        let mut before = self.touched_before(second);
        while let Some(first) = before.next() {
            let other = self.foot(first);
            let own = other.thread == foot.thread;
            if !own && !other.precedes(foot) {
                continue;
            }
            let mut reversed = races[found..].iter().filter(|r| !r.perhaps);
            let after = own
                || self.previous[second].is_some_and(|p| self.clocks.before(first, p))
                || reversed.any(|r| self.clocks.before(first, r.first));
            let able = if after { Able::No } else { self.able(first, second) };
            if able != Able::No {
                races.push(Race { first, second, perhaps: able == Able::Perhaps });
            }
            if after || able == Able::Yes {
                // Events that touched an object before `first` wrote it happen before `first`, and are not
                // reversed with `second`. The same holds for events that wrote an object before this thread
                // itself read it. A thread that polls an object therefore has few events to examine.
                let over = |a: &&Access| a.write || own && !foot.writes(a.object);
                before.leave_out(other.accesses.iter().filter(over).map(|a| a.object));
            }
        }
    }

    /// The events before an event that touch the same objects, the latest first.
    fn touched_before(&self, event: usize) -> Before<'_> {
        let foot = self.foot(event);
        let end = event.min(self.all.events.len());
        if foot.all || foot.is_wide() {
            return Before::All(0..end);
        }
        let mut lists: Vec<(u64, &[usize])> = Vec::new();
        for a in &foot.accesses {
            if lists.iter().all(|(object, _)| *object != a.object) {
                let list = self.touching.get(&a.object).map_or(&[][..], Vec::as_slice);
                lists.push((a.object, &list[..list.partition_point(|&e| e < end)]));
            }
        }
        Before::Some(lists)
    }

    /// Whether the thread of `second` can take that step before `first`.
    fn able(&self, first: usize, second: usize) -> Able {
        let events = &self.all.events;
        let thread = self.foot(second).thread;
        let end = second.min(events.len());
        let came = self.previous[second];
        if came.is_none_or(|p| p < first) && events[first].could_be(thread) {
            return Able::Yes;
        }
        // From here on the thread was about to take the step, as far as that is after `first`.
        let from = came.map_or(first, |p| p.max(first));
        let kept = |e: usize| e != first && !self.clocks.before(first, e);
        let enabling = |e: usize| events[e].foot.enables.contains(&thread);
        let could = |e: usize| events.get(e).is_some_and(|e| e.could_be(thread));
        let mut wakers = (from..end).filter(|&e| enabling(e)).peekable();
        let able = if wakers.peek().is_some() {
            // A thread that is woken needs an event that wakes it.
            wakers.any(kept)
        } else {
            // A thread that was blocked before `first` needs an event that releases the object it waits for.
            came.is_some_and(|p| p > first) || (from..end).any(|e| kept(e) && !could(e) && could(e + 1))
        };
        if able { self.by_operations(first, second) } else { Able::No }
    }

    /// Whether the operations allow `second` without the effects of `first` and of the events that happen
    /// after `first`.
    fn by_operations(&self, first: usize, second: usize) -> Able {
        // An atomic section can always begin: if the thread has to wait inside, the section ends there.
        if self.foot(second).begins_section() {
            return Able::Yes;
        }
        let end = second.min(self.all.events.len());
        let mut able = Able::Yes;
        for b in &self.foot(second).accesses {
            // The first operation on an object shows the state before it, because an event may both lock and
            // unlock an object.
            let list = self.touching.get(&b.object).map_or(&[][..], Vec::as_slice);
            let list = &list[list.partition_point(|&e| e < first)..list.partition_point(|&e| e < end)];
            let Some(&e) = list.iter().find(|&&e| self.clocks.before(first, e)) else { continue };
            if let Some(a) = self.foot(e).accesses.iter().find(|a| a.object == b.object) {
                able = able.max(before(Op::from_code(a.op), a.write, Op::from_code(b.op)));
            }
        }
        able
    }

    /// The sequence that reverses a race: the events between `first` and `end` that do not happen after
    /// `first`, and then `second`.
    pub fn reversal(&self, race: &Race, end: usize) -> Sequence<'_> {
        let mut sequence = Sequence::new(&self.clocks);
        let moved = self.foot(race.second);
        for at in race.first + 1..end {
            if !self.clocks.before(race.first, at) {
                let mut foot = Cow::Borrowed(self.foot(at));
                if at > race.second && foot.enables.contains(&moved.thread) {
                    // In the sequence, this event would enable the thread after its moved step, not before.
                    foot.to_mut().enables.retain(|&t| t != moved.thread);
                }
                sequence.push_event(at, foot);
            }
        }
        let mut foot = Cow::Borrowed(moved);
        // A step that ends the process may not do so before the value that it has read is written. If it
        // still ends the process there, the search tries all enabled threads anyway.
        if foot.all && foot.conflicts(self.foot(race.first)) {
            foot.to_mut().all = false;
        }
        sequence.push_moved(foot, race.perhaps);
        sequence
    }
}

/// Events, the latest first.
enum Before<'a> {
    /// All events.
    All(Range<usize>),
    /// The events that touch some objects: for each object the events that are left, in order.
    Some(Vec<(u64, &'a [usize])>),
}

impl Before<'_> {
    /// From here on, touching these objects does not make an event count.
    fn leave_out(&mut self, objects: impl Iterator<Item = u64>) {
        if let Before::Some(lists) = self {
            for object in objects {
                lists.retain(|(other, _)| *other != object);
            }
        }
    }
}

impl Iterator for Before<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let lists = match self {
            Before::All(range) => return range.next_back(),
            Before::Some(lists) => lists,
        };
        let latest = lists.iter().filter_map(|(_, list)| list.last().copied()).max()?;
        for (_, list) in lists {
            if let [rest @ .., last] = *list
                && *last == latest
            {
                *list = rest;
            }
        }
        Some(latest)
    }
}

/// Whether `second` was possible just before `first`, an earlier operation on the same object.
fn before(first: Option<Op>, writes: bool, second: Option<Op>) -> Able {
    use Op::*;
    // Steps without an operation of their own, and memory accesses, never wait.
    let Some(second) = second else { return Able::Yes };
    match (first, second) {
        // An operation with a deadline may have timed out.
        (Some(TimedLock | SemTimedWait), Lock | Relock | TimedLock | SemWait | SemTimedWait) => Able::Perhaps,
        // A lock that was acquired was free before, one that could not be acquired was held, and one that was
        // released was held.
        (Some(Lock | Relock), Lock | Relock | TimedLock) => Able::Yes,
        (Some(TryLock), Lock | Relock | TimedLock) if writes => Able::Yes,
        // A wait with a deadline may time out instead: perhaps.
        (None | Some(TryLock | Unlock | CondWait | CondTimedWait), Lock | Relock) => Able::No,
        (Some(SemWait), SemWait | SemTimedWait) => Able::Yes,
        (Some(SemTryWait), SemWait | SemTimedWait) if writes => Able::Yes,
        (Some(SemTryWait), SemWait) => Able::No,
        (Some(WriteLock), ReadLock | WriteLock) | (Some(ReadLock), ReadLock) => Able::Yes,
        // An access without an operation may be an attempt, whose success is not recorded.
        (Some(RwUnlock), WriteLock) => Able::No,
        (Some(End), Join) => Able::No,
        // No thread leaves a barrier before all have arrived; an arrival needs no other thread.
        (Some(Barrier), Barrier) if writes => Able::No,
        (_, Barrier) => Able::Yes,
        (_, Lock | Relock | TimedLock | SemWait | SemTimedWait | ReadLock | WriteLock | Join) => {
            Able::Perhaps
        }
        (
            _,
            Once | FutexWait | Read | Write | Accept | Connect | Poll | FileLock | WaitChild | SystemV
            | SigWait | StreamLock | Fork,
        ) => Able::Perhaps,
        _ => Able::Yes,
    }
}
