//! What must be tried elsewhere in an execution, so that a bound on preemptions hides nothing.
//!
//! A *block* of a thread are its events from where it was given the turn to where it is taken away. Say that from a state s
//! thread t is explored, and that an execution w of the same bound goes on from s in another way: first u, in which t has no
//! part, and then t. If u is independent of what t does next, w is as good as one that begins with t; but not of t's first event
//! alone, for to leave t after that may be a preemption that w does not have. It is as good as one that begins with *all* of the
//! block that t has in w: t is left where it is left in w, so there is no preemption more. If t was running, and so w begins with a
//! preemption of it, the first event is enough: t is preempted later.
//!
//! One more must hold: moving the block forward must not make a thread able to go on that u leaves while it waits, as then
//! that is a preemption. Its next step, were it taken, would depend on the block, too, but cannot be reversed with it.
//!
//! So an event y that depends on an event i of another thread t, with nothing before y in its thread that happens after i, asks
//! for something at the state before i; and at each state before it where a block of t begins, if t needed nobody else to come
//! from there to i. What it asks for is one of the threads that u consists of: those whose next event there y needs, or y's own.

use crate::analysis::relation::Events;
use crate::systematic::dpor::reversal::Races;

/// One of these threads must be explored from a state.
#[derive(Debug)]
pub(crate) struct Demand {
    /// The number of the event before which that is.
    pub at: usize,
    pub one_of: Vec<u16>,
}

/// All there is to look for demands in an execution.
pub(crate) struct Blocks<'a> {
    all: &'a Events,
    races: Races<'a>,
    /// The events of each thread.
    threads: Vec<Vec<usize>>,
}

impl<'a> Blocks<'a> {
    /// Prepares to look for demands.
    pub fn new(all: &'a Events) -> Blocks<'a> {
        let mut threads: Vec<Vec<usize>> = Vec::new();
        for (at, event) in all.events.iter().enumerate() {
            let thread = usize::from(event.thread());
            threads.resize(threads.len().max(thread + 1), vec![]);
            threads[thread].push(at);
        }
        Blocks { all, races: Races::new(all), threads }
    }

    /// What the events from `new` on, the threads that wait at the end, and the end ask for.
    pub fn demands(&self, new: usize) -> Vec<Demand> {
        let mut demands = Vec::new();
        for second in new..self.all.events.len() + self.all.waits.len() {
            let causes = self.races.causes(second);
            for &first in &causes {
                if self.is_ordered(first, second) {
                    continue;
                }
                for at in self.states(first).filter(|&at| !self.is_ordered(at, second)) {
                    let one_of = self.needed(at, second, &causes);
                    if !one_of.is_empty() {
                        demands.push(Demand { at, one_of });
                    }
                }
            }
        }
        if let Some(last) = self.all.events.len().checked_sub(1)
            && self.all.events[last].foot.all
        {
            // Whatever else could have come first is cut off.
            for at in self.states(last) {
                let candidates = self.all.events[at].candidates.iter();
                demands.extend(candidates.map(|&thread| Demand { at, one_of: vec![thread] }));
            }
        }
        demands
    }

    /// Whether what the thread of `second` did before happens after `first`.
    fn is_ordered(&self, first: usize, second: usize) -> bool {
        self.races.previous(second).is_some_and(|p| self.races.clocks.before(first, p))
    }

    /// The states at which something is asked for on behalf of an event, by the numbers of the events that follow them.
    fn states(&self, event: usize) -> impl Iterator<Item = usize> + '_ {
        let thread = self.all.events[event].thread();
        let own = &self.threads[usize::from(thread)];
        let other = |(other, events): (usize, &Vec<usize>)| {
            let count = self.races.clocks.count(event, other);
            (other != usize::from(thread) && count > 0).then(|| events[count - 1])
        };
        // The last event of another thread that it needed.
        let needed = self.threads.iter().enumerate().filter_map(other).max();
        let alone = &own[own.partition_point(|&e| needed.is_some_and(|n| e <= n))..];
        let begins = move |&at: &usize| at < event && self.begins_block(at);
        std::iter::once(event).chain(alone.iter().copied().filter(begins))
    }

    fn begins_block(&self, at: usize) -> bool {
        let event = &self.all.events[at];
        let same = at.checked_sub(1).is_some_and(|p| self.all.events[p].thread() == event.thread());
        !same || event.chosen.is_some_and(|(_, _, preemptive)| !preemptive)
    }

    /// The threads that can go on before event `at`, and without which `second` cannot come before it.
    fn needed(&self, at: usize, second: usize, causes: &[usize]) -> Vec<u16> {
        let own = self.races.foot(second).thread;
        let event = &self.all.events[at];
        let clocks = &self.races.clocks;
        let needs = |e: usize| {
            let mut direct = causes.iter().filter(|&&c| c > at && !clocks.before(at, c));
            self.races.previous(second).is_some_and(|p| clocks.before(e, p))
                || direct.any(|&c| clocks.before(e, c))
        };
        let is_needed = |thread: u16| {
            let events = self.threads.get(usize::from(thread)).map_or(&[][..], Vec::as_slice);
            let next = events.get(events.partition_point(|&e| e < at));
            next.is_some_and(|&e| !clocks.before(at, e) && needs(e))
        };
        let others = event.candidates.iter().copied().filter(|&t| t != event.thread());
        let mut threads: Vec<u16> = others.filter(|&t| t == own || is_needed(t)).collect();
        threads.sort_by_key(|&t| t != own);
        threads
    }
}
