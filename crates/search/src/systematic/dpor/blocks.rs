//! Finds the threads that a bounded reduction must also explore, so that the bound on preemptions hides no
//! class.
//!
//! A *block* of a thread is the sequence of its events from where it is scheduled to where another thread is
//! scheduled.
//!
//! *Why blocks.* Say thread t is explored from a state s, and an execution w within the bound continues
//! differently from s: first a sequence u without t, then t. Let u be independent of what t does next.
//!
//! - Then w is equivalent to an execution that begins with t. But moving t's first event alone is not enough:
//!   leaving t after that event may be a preemption that w does not have.
//! - Moving the *entire* block that t has in w is enough. Then t is left where w leaves it, so there is no
//!   further preemption.
//! - If t was running, w begins with a preemption of t. Then moving the first event is enough, because t is
//!   preempted later instead.
//!
//! *One more condition.* Moving the block forward must not enable a thread that u leaves while that thread
//! waits, because leaving it would then be a preemption. The next step of such a thread also depends on the
//! block, but cannot be reversed with it.
//!
//! *The demands.* Let event y depend on event i of another thread t, and let no earlier event of y's thread
//! happen after i. Then y makes a demand at the state before i. It also makes one at each earlier state where
//! a block of t begins, if t needed no other thread to get from there to i. The demand is that one of the
//! threads of u be explored: a thread whose next event there is needed by y, or y's own thread.

use crate::analysis::relation::Events;
use crate::systematic::dpor::reversal::Races;

/// One of these threads must be explored from a state.
#[derive(Debug)]
pub(crate) struct Demand {
    /// The state, by the number of the event that follows it.
    pub at: usize,
    pub one_of: Vec<u16>,
}

/// An execution, prepared for the search for demands.
pub(crate) struct Blocks<'a> {
    all: &'a Events,
    races: Races<'a>,
    /// The events of each thread.
    threads: Vec<Vec<usize>>,
}

impl<'a> Blocks<'a> {
    /// Prepares an execution.
    pub fn new(all: &'a Events) -> Blocks<'a> {
        let mut threads: Vec<Vec<usize>> = Vec::new();
        for (at, event) in all.events.iter().enumerate() {
            let thread = usize::from(event.thread());
            threads.resize(threads.len().max(thread + 1), vec![]);
            threads[thread].push(at);
        }
        Blocks { all, races: Races::new(all), threads }
    }

    /// The demands of the events from `new` on, of the threads that wait at the end, and of the end itself.
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
            // The end cuts off every other thread that could have run first.
            for at in self.states(last) {
                let candidates = self.all.events[at].candidates.iter();
                demands.extend(candidates.map(|&thread| Demand { at, one_of: vec![thread] }));
            }
        }
        demands
    }

    /// Whether an earlier event of the thread of `second` happens after `first`.
    fn is_ordered(&self, first: usize, second: usize) -> bool {
        self.races.previous(second).is_some_and(|p| self.races.clocks.before(first, p))
    }

    /// The states at which an event makes demands, by the numbers of the events that follow them.
    fn states(&self, event: usize) -> impl Iterator<Item = usize> + '_ {
        let thread = self.all.events[event].thread();
        let own = &self.threads[usize::from(thread)];
        let other = |(other, events): (usize, &Vec<usize>)| {
            let count = self.races.clocks.count(event, other);
            (other != usize::from(thread) && count > 0).then(|| events[count - 1])
        };
        // The last event of another thread that this event needed.
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

    /// The threads that are enabled before event `at` and that `second` needs in order to come before it.
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
