//! Best-first search: every schedule, the most promising first.
//!
//! Pearl: Heuristics, 1984, for the search; what is promising is known from testing by chance: Bron et al. (PPoPP 2005) look for
//! places in the code that did not follow each other yet, and a search for a regression (as in Jagannath, Luo, Marinov:
//! Change-Aware Preemption Prioritization, ISSTA 2011) begins where the code has changed.
//!
//! The plans are those of depth-first search. They wait in ranks. The first criterion is whether the execution is left where
//! the code has changed: there is the thread that is left, or else one that could go on instead. The second is whether
//! the execution that is left was the first of its happens-before class, the third how often one of those places was left
//! for the other before. Within a rank the oldest is taken first, so that few switches come before many.
//!
//! Guarantees: each schedule is explored exactly once, within the bound if there is one. Says nothing of a bound before it is
//! through.

use crate::analysis::branch_points;
use crate::analysis::relation::{in_order, mix};
use crate::store::hb_cache::Edges;
use crate::store::ledger::Ledger;
use crate::store::pool::Pool;
use crate::systematic::branch::Leaving;
use crate::{Room, Status, Strategy, Touches};
use heisen_trace::{Execution, Plan, Policy, TouchKind};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

/// Kinds of each criterion, and of all together.
const CHANGES: usize = 3;
const CLASSES: usize = 2;
const RARITIES: usize = 3;
const RANKS: usize = CHANGES * CLASSES * RARITIES;
/// A pair of places that was met less often than this is rare, or not so rare.
const RARE: [u32; RARITIES - 1] = [4, 64];
/// Pairs of places that are counted; of more than these the others are as common as can be.
const MOST_PAIRS: usize = 1 << 16;
/// Which part of the memory is for classes.
const FOR_CLASSES: usize = 4;

/// Best-first search.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Best {
    max_bound: Option<u32>,
    /// Addresses of changed code, first and end, in order.
    changed: Vec<(u64, u64)>,
    /// The most promising first.
    ranks: [Pool; RANKS],
    /// Happens-before classes that were seen.
    classes: Edges,
    /// How often a thread at one place was or is to be left for one at another.
    pairs: BTreeMap<u64, u32>,
    /// Plans beyond the bound.
    beyond: u64,
    ledger: Ledger,
}

impl Best {
    /// A search that starts with the default schedule, among those of at most `max_bound` preemptions. It prefers code at
    /// these addresses, first and end of each range.
    pub fn new(max_bound: Option<u32>, mut changed: Vec<(u64, u64)>) -> Best {
        changed.sort_unstable();
        let (ranks, classes, pairs, beyond, ledger) = Default::default();
        Best { max_bound, changed, ranks, classes, pairs, beyond, ledger }
    }

    /// Whether the code that calls from here has changed.
    fn is_changed(&self, place: u64) -> bool {
        // A call is the instruction before the one that it returns to.
        let call = place.saturating_sub(1);
        let before = self.changed.partition_point(|&(start, _)| start <= call);
        self.changed[..before].last().is_some_and(|&(_, end)| call < end)
    }

    /// How promising it is to leave an execution at a step: the number of the rank.
    fn rank(&mut self, whereabouts: &Whereabouts, step: u32, new: bool) -> usize {
        let mut places = whereabouts.at(step).into_iter();
        let left = places.next().unwrap_or(0);
        let others: Vec<u64> = places.collect();
        let change = if self.is_changed(left) {
            0
        } else if others.iter().any(|&place| self.is_changed(place)) {
            1
        } else {
            2
        };
        let mut least = u32::MAX;
        for other in others.iter().chain(others.is_empty().then_some(&0)) {
            let pair = mix(mix(left) ^ other);
            if self.pairs.len() < MOST_PAIRS || self.pairs.contains_key(&pair) {
                let seen = self.pairs.entry(pair).or_default();
                least = least.min(*seen);
                *seen = seen.saturating_add(1);
            }
        }
        let rarity = RARE.iter().position(|&rare| least < rare).unwrap_or(RARE.len());
        (change * CLASSES + usize::from(!new)) * RARITIES + rarity
    }
}

/// Where in the code the threads of an execution were.
struct Whereabouts {
    /// By thread: the steps that it took, and where from.
    places: Vec<Vec<(u32, u64)>>,
    /// Who could go on: choice 0, and the words of the set.
    choices: HashMap<u32, (u16, Vec<(usize, u64)>)>,
    /// Who ran from which step on.
    turns: Vec<(u32, u16)>,
}

impl Whereabouts {
    fn new(execution: &Execution) -> Whereabouts {
        let mut found = Whereabouts { places: vec![], choices: HashMap::new(), turns: vec![(0, 0)] };
        for touch in &execution.touches {
            match touch.kind {
                TouchKind::At => {
                    let thread = usize::from(touch.thread);
                    found.places.resize(found.places.len().max(thread + 1), vec![]);
                    found.places[thread].push((touch.step, touch.word));
                }
                TouchKind::Choices => {
                    let (first, set) = found.choices.entry(touch.step).or_default();
                    *first = touch.thread;
                    set.push((usize::from(touch.op), touch.word));
                }
                TouchKind::Switch => found.turns.push((touch.step, touch.thread)),
                _ => {}
            }
        }
        found
    }

    /// Where those are who can go on at a step: choice 0 first. A decision on something else is its thread's own.
    fn at(&self, step: u32) -> Vec<u64> {
        let threads = match self.choices.get(&step) {
            Some((first, set)) => in_order(*first, set),
            None => {
                let before = self.turns.partition_point(|&(from, _)| from <= step);
                vec![self.turns[before.saturating_sub(1)].1]
            }
        };
        threads.into_iter().map(|thread| self.place(thread, step)).collect()
    }

    /// Where a thread stands before a step: where it goes on from when it takes its next one. 0 if that is not known.
    fn place(&self, thread: u16, step: u32) -> u64 {
        let Some(places) = self.places.get(usize::from(thread)) else { return 0 };
        let next = places.partition_point(|&(at, _)| at < step);
        places.get(next).map_or(0, |&(_, place)| place)
    }
}

impl Strategy for Best {
    fn next(&mut self) -> Option<Plan> {
        if let Some(plan) = self.ledger.again() {
            return Some(plan);
        }
        if self.ledger.handed() == 0 {
            return Some(self.ledger.hand_out(Plan::new(Policy::Default)));
        }
        let waiting = self.ranks.iter_mut().find(|rank| !rank.is_empty())?.oldest()?;
        Some(self.ledger.hand_out(waiting.plan))
    }

    fn done(&mut self, plan: &Plan, execution: &Execution) {
        if !self.ledger.done(plan, execution) {
            return;
        }
        let new = execution.fingerprint.is_none_or(|class| self.classes.insert(class.max(1)));
        let whereabouts = Whereabouts::new(execution);
        let all_used = self.max_bound.is_some_and(|max| plan.preemptions >= max);
        let mut ranks = HashMap::new();
        for point in branch_points::points(plan, execution) {
            if all_used && point.preemptive {
                self.beyond += u64::from(point.options) - 1;
            } else {
                ranks.insert(point.step, self.rank(&whereabouts, point.step, new));
            }
        }
        let leaving = Leaving::new(plan, execution, None);
        for (number, rank) in self.ranks.iter_mut().enumerate() {
            if let Some(spread) = leaving.spread(plan, 1.0, |point| ranks.get(&point.step) == Some(&number)) {
                rank.add(spread);
            }
        }
    }

    fn give_back_unrun(&mut self, plan: &Plan) {
        self.ledger.give_back(plan);
    }

    fn needs_decisions(&self) -> bool {
        true
    }

    fn needs_touches(&self) -> Touches {
        Touches::Places
    }

    fn bound_memory(&mut self, room: Room) {
        let classes = room.bytes / FOR_CLASSES;
        self.classes.set_room(classes);
        let each = Room { bytes: room.bytes - classes, ..room }.part(RANKS);
        for rank in &mut self.ranks {
            rank.set_room(each.clone());
        }
    }

    fn status(&self) -> Status {
        let mut status = self.ledger.status();
        status.trouble = self.ranks.iter().find_map(Pool::trouble).map(str::to_owned);
        let started = self.ledger.handed() > 0;
        status.queued += self.ranks.iter().map(Pool::len).sum::<usize>() + usize::from(!started);
        status.beyond = self.beyond;
        status.exhausted = status.queued == 0 && status.out == 0;
        status.whole = status.exhausted && self.beyond == 0 && !status.has_gaps();
        status.explored_bound = self.max_bound.filter(|_| status.exhausted);
        status
    }
}
