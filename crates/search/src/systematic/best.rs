//! Best-first search: explores every schedule, the most promising first.
//!
//! The search is that of Pearl: Heuristics, 1984. Two papers on random testing say which schedules are
//! promising. Bron et al. (PPoPP 2005) look for places in the code that have not followed each other yet.
//! Jagannath, Luo, Marinov (Change-Aware Preemption Prioritization, ISSTA 2011), who look for regressions,
//! begin where the code has changed.
//!
//! The plans are those of depth-first search. Each one leaves a finished execution at some step, and waits in
//! a rank. Three criteria give the rank:
//!
//! 1. Has the code changed at that step? Best is a change at the place of the thread that is left, second
//!    best one at the place of another enabled thread.
//! 2. Was the execution that is left the first of its happens-before class?
//! 3. How often was a thread at the first place left for one at the second before?
//!
//! Within a rank the oldest plan is taken first, so that schedules with few switches come before those with
//! many.
//!
//! Guarantees: each schedule is explored exactly once, within the bound if there is one. The search makes no
//! claim about a bound before it has ended.

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

/// How many values each criterion has, and how many ranks there are.
const CHANGES: usize = 3;
const CLASSES: usize = 2;
const RARITIES: usize = 3;
const RANKS: usize = CHANGES * CLASSES * RARITIES;
/// A pair of places is rare if it was counted less than 4 times, and common from 64 times on.
const RARE: [u32; RARITIES - 1] = [4, 64];
/// How many pairs of places are counted at most. Pairs beyond that are ranked as common.
const MOST_PAIRS: usize = 1 << 16;
/// The share of the memory that is for classes: one in this many bytes.
const FOR_CLASSES: usize = 4;

/// Best-first search; see the head of this file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Best {
    max_bound: Option<u32>,
    /// Address ranges of changed code, start and end, in order.
    changed: Vec<(u64, u64)>,
    /// The waiting plans, the most promising rank first.
    ranks: [Pool; RANKS],
    /// The happens-before classes seen so far.
    classes: Edges,
    /// How often a thread at one place was, or will be, left for a thread at another place. The key is a hash
    /// of both.
    pairs: BTreeMap<u64, u32>,
    /// How many plans need more preemptions than the bound allows.
    beyond: u64,
    ledger: Ledger,
}

impl Best {
    /// Starts with the default schedule and explores schedules of at most `max_bound` preemptions. The search
    /// prefers code in the address ranges `changed`, each given by its start and end.
    pub fn new(max_bound: Option<u32>, mut changed: Vec<(u64, u64)>) -> Best {
        changed.sort_unstable();
        let (ranks, classes, pairs, beyond, ledger) = Default::default();
        Best { max_bound, changed, ranks, classes, pairs, beyond, ledger }
    }

    /// Whether the code of the call that returns to `place` has changed.
    fn is_changed(&self, place: u64) -> bool {
        // A return address is that of the instruction after the call.
        let call = place.saturating_sub(1);
        let before = self.changed.partition_point(|&(start, _)| start <= call);
        self.changed[..before].last().is_some_and(|&(_, end)| call < end)
    }

    /// The rank of the plans that leave an execution at a step. `new`: the execution was the first of its
    /// class.
    fn rank(&mut self, thread_places: &ThreadPlaces, step: u32, new: bool) -> usize {
        let mut places = thread_places.at(step).into_iter();
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

/// The places in the code where the threads of an execution were.
struct ThreadPlaces {
    /// By thread: its steps, each with the place.
    places: Vec<Vec<(u32, u64)>>,
    /// By step: the thread of choice 0, and the set of enabled threads as words of bits.
    choices: HashMap<u32, (u16, Vec<(usize, u64)>)>,
    /// From which step on which thread ran.
    turns: Vec<(u32, u16)>,
}

impl ThreadPlaces {
    fn new(execution: &Execution) -> ThreadPlaces {
        let mut found = ThreadPlaces { places: vec![], choices: HashMap::new(), turns: vec![(0, 0)] };
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

    /// The places of the threads that are enabled at a step, choice 0 first. A decision that is not about
    /// threads has one place: that of the running thread.
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

    /// The place of a thread before a step, which is where it takes its next step. 0 if unknown.
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
        let thread_places = ThreadPlaces::new(execution);
        let all_used = self.max_bound.is_some_and(|max| plan.preemptions >= max);
        let mut ranks = HashMap::new();
        for point in branch_points::points(plan, execution) {
            if all_used && point.preemptive {
                self.beyond += u64::from(point.options) - 1;
            } else {
                ranks.insert(point.step, self.rank(&thread_places, point.step, new));
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
        status.exhaustive = status.exhausted && self.beyond == 0 && !status.has_gaps();
        status.explored_bound = self.max_bound.filter(|_| status.exhausted);
        status
    }
}
