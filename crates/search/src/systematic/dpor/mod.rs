//! Dynamic partial order reduction: one execution of each class of equivalent ones.
//!
//! Abdulla, Aronis, Jonsson, Sagonas: Optimal Dynamic Partial Order Reduction, POPL 2014; Source Sets: A Foundation for
//! Optimal Dynamic Partial Order Reduction, JACM 2017. Depth first over the states of one execution: a race that can be
//! reversed (`reversal`) adds to the state before its first event a sequence that reverses it, unless that leads to what
//! was explored. What was explored from a state sleeps (Godefroid's sleep sets) until something it depends on has happened.
//!
//! - [`Dpor::optimal`] keeps whole sequences, in wake-up trees (`wakeup`): no execution is started that is not of a new
//!   class. The exceptions are named in `reversal` ("perhaps") and in the paragraphs below.
//! - [`Dpor::source`] keeps first steps only, from source sets: less work for each execution, but some of them find, on the
//!   way, that all threads sleep.
//! - [`Dpor::sleeping`] branches to every thread, as depth-first search does, and has sleep sets alone.
//!
//! Guarantees: of a program whose executions all end, at least one execution of every class is explored, so every final
//! state, deadlock and failure is found; and no class is explored to its end twice. All of it speaks of what touches show:
//! data that is shared but not seen by the runtime must be protected by what is. It knows no bounds.
//!
//! *Plans.* A sequence leads through states that were not visited, so it names threads and not choices
//! ([`Override::thread`]), and who sleeps goes with the plan, so that the rest of the execution is of a new class, too. An
//! execution that lets a sleeping thread go on though another could is cut off there, and run again with that one.
//!
//! *Other choices* than of threads are part of an event, and all of them are explored. Until they are its thread does not
//! sleep, and then it does with what any of the outcomes touches. Sequences are not made for that: what a step does in
//! another place, with another outcome, may touch something else. So the optimal variant starts over with source sets when it
//! first sees such a choice; on random programs that have them, sequences were seen to miss a class in several thousand.
//!
//! *The end of the process* depends on all events: threads that could still go on are tried before it. What threads wait
//! for in vain at the end is treated as an event.
//!
//! *Barriers.* Arrivals commute as long as no more threads meet at a barrier than it is made for. The first execution in which
//! more do makes the search start over, with arrivals that do not commute (`relation`).
//!
//! *Several at a time.* Executions are taken in depth-first order, however many plans are out. Plans that come later in that
//! order are handed out early if nothing that is found until then can change them, and their executions kept.

mod blocks;
pub mod bounded;
pub(crate) mod in_order;
mod path_plan;
mod reversal;
mod sequence;
mod wakeup_tree;

use crate::Status;
use crate::analysis::relation::{Clocks, Event, Events, Footprint, Outcome};
use crate::systematic::dpor::in_order::{InTurn, Pick, Turns};
use crate::systematic::dpor::path_plan::Todo;
use crate::systematic::dpor::reversal::Races;
use crate::systematic::dpor::sequence::Sequence;
use crate::systematic::dpor::wakeup_tree::{Branch, Step};
use heisen_trace::plan::Touches as Asleep;
use heisen_trace::{Override, Plan, Sleep, Sleeper};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Dynamic partial order reduction.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Dpor {
    variant: Variant,
    /// The states that the execution in hand went through, but for those that nothing is left to try from.
    path: Vec<Node>,
    turns: Turns<Way>,
    /// The places in the code, where executions tell them, of accesses that took part in a race that can be reversed.
    #[serde(default)]
    raced: BTreeSet<u64>,
    classes: u64,
    blocked: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Variant {
    Sleeping,
    Source,
    Optimal,
}

/// A state.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Node {
    /// The event that leads from here to the next state of the path.
    event: Event,
    /// What the events of its thread touch that were explored from here; none while there is none.
    explored: Option<Footprint>,
    /// Who sleeps here.
    sleep: Vec<Footprint>,
    /// What is left to be explored with the thread of the event.
    outcomes: Vec<Todo>,
    /// What is left to be explored with others.
    branches: Vec<Branch>,
}

/// How the next thing to explore leaves the path.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Way {
    /// Steps of other threads, each with the branches of the state after it.
    Steps(Vec<(Step, Vec<Branch>)>),
    /// The same thread, with other outcomes: those before this index are as before.
    Outcomes(usize),
}

impl Default for Way {
    fn default() -> Way {
        Way::Steps(vec![])
    }
}

impl Node {
    fn sleeps(&self, thread: u16) -> bool {
        self.sleep.iter().any(|q| q.thread == thread)
    }

    /// Adds a branch to a thread of which nothing else is known.
    fn add_unknown(&mut self, thread: u16) {
        let known = self.branches.iter().any(|b| b.step.foot.thread == thread);
        if !known && !self.sleeps(thread) {
            self.branches.push(Branch::unknown(thread));
        }
    }

    /// Whether a branch is to be explored at all.
    fn allows(&self, branch: &Branch) -> bool {
        let thread = branch.step.foot.thread;
        self.event.could_be(thread) && !self.sleeps(thread)
    }
}

/// An event wakes those that depend on it.
fn wake(sleep: &mut Vec<Footprint>, event: &Footprint) {
    sleep.retain(|q| !event.precedes(q));
}

impl Dpor {
    fn new(variant: Variant) -> Dpor {
        let (turns, raced) = (Turns::default(), BTreeSet::new());
        Dpor { variant, path: vec![], turns, raced, classes: 0, blocked: 0 }
    }

    /// The places in the code of accesses whose order with others was, or will be, reversed, where executions tell places.
    pub fn raced(&self) -> &BTreeSet<u64> {
        &self.raced
    }

    /// Optimal dynamic partial order reduction.
    pub fn optimal() -> Dpor {
        Dpor::new(Variant::Optimal)
    }

    /// Dynamic partial order reduction with source sets and sleep sets.
    pub fn source() -> Dpor {
        Dpor::new(Variant::Source)
    }

    /// Depth-first search with sleep sets.
    pub fn sleeping() -> Dpor {
        Dpor::new(Variant::Sleeping)
    }

    /// Makes the path that of an execution. Tells the event at which a thread goes on that sleeps, if there is one: all from
    /// there on was explored.
    fn extend(&mut self, pick: Pick<Way>, events: &Events) -> Option<usize> {
        let depth = pick.depth;
        let mut sleep = self.path.get(depth).map_or(vec![], |node| node.sleep.clone());
        let (mut left, from) = match pick.way {
            Way::Steps(steps) => (steps, 0),
            Way::Outcomes(from) => (vec![], from),
        };
        left.reverse();
        for (at, event) in events.events.iter().enumerate().skip(depth) {
            let foot = &event.foot;
            if let Some(node) = self.path.get_mut(at) {
                node.event = event.clone();
                node.explored.get_or_insert_with(|| foot.clone()).add(foot);
                node.outcomes.extend(path_plan::other_outcomes(event, from));
            } else {
                let branches = left.pop().map_or(vec![], |(_, branches)| branches);
                let mut node = Node {
                    event: event.clone(),
                    explored: Some(foot.clone()),
                    sleep: sleep.clone(),
                    outcomes: vec![],
                    branches,
                };
                if node.sleeps(foot.thread) {
                    node.explored = None;
                    if let Some(&awake) = event.candidates.iter().find(|&&t| !node.sleeps(t)) {
                        node.add_unknown(awake);
                        self.path.push(node);
                    }
                    return Some(at);
                }
                node.outcomes = path_plan::other_outcomes(event, 0);
                self.path.push(node);
            }
            wake(&mut sleep, foot);
        }
        None
    }

    /// Adds to the states of the path what reverses the races of its events.
    fn reverse_races(&mut self, events: &Events) {
        let races = Races::new(events);
        for race in races.all() {
            let pair = [race.first, race.second];
            // Sections are ordered as a whole, whatever they access.
            if !pair.iter().all(|&event| races.foot(event).begins_section()) {
                self.raced.extend(pair.iter().flat_map(|&event| events.places(event)));
            }
            let node = &mut self.path[race.first];
            if self.variant == Variant::Optimal {
                let sequence = races.reversal(&race, events.events.len());
                if !node.sleep.iter().any(|q| sequence.is_covered_by(q)) {
                    wakeup_tree::insert(&mut node.branches, sequence);
                }
            } else {
                let sequence = races.reversal(&race, race.second.min(events.events.len()));
                let explored =
                    |q: &Footprint| sequence.first_of(q.thread).is_some() && sequence.is_covered_by(q);
                let waits = |b: &Branch| {
                    sequence.first_of(b.step.foot.thread).is_some_and(|at| sequence.is_initial(at))
                };
                if !node.sleep.iter().any(explored) && !node.branches.iter().any(waits) {
                    node.branches.extend(sequence.first_thread().map(Branch::unknown));
                }
            }
        }
    }

    /// The plan that goes along the path to a state.
    fn plan_to(&self, depth: usize) -> Plan {
        path_plan::plan_of(self.path[..depth].iter().map(|node| &node.event))
    }

    /// The plan for other outcomes of the event at a state.
    fn plan_of_outcomes(&self, depth: usize, outcomes: &[Outcome]) -> Plan {
        let node = &self.path[depth];
        let mut plan = self.plan_to(depth);
        path_plan::add_other_outcomes(&mut plan, &node.event, outcomes);
        plan.sleep = asleep(node.event.step, &node.sleep);
        plan
    }

    /// The plan for steps of others from a state at which so many sleep.
    fn plan_of_steps<'a>(
        &self,
        depth: usize,
        steps: impl Iterator<Item = &'a Step>,
        sleep: &[Footprint],
    ) -> Plan {
        let node = &self.path[depth];
        let mut plan = self.plan_to(depth);
        let mut sleep = sleep.to_vec();
        let mut steps = (node.event.step..).zip(steps).enumerate().peekable();
        while let Some((at, (step, next))) = steps.next() {
            if at == 0 {
                path_plan::add_other_thread(&mut plan, &node.event, next.foot.thread);
            } else {
                plan.overrides.push(Override::thread(step, next.foot.thread));
                plan.expect = 0;
            }
            let last = steps.peek().is_none();
            if last && (next.foot.all || sleep.iter().any(|q| !next.foot.precedes(q))) {
                plan.sleep = asleep(step, &sleep);
            }
            wake(&mut sleep, &next.foot);
        }
        plan
    }
}

/// Who sleeps, as plans tell it.
fn asleep(from: u32, sleep: &[Footprint]) -> Sleep {
    let mut sleepers = Vec::new();
    for q in sleep {
        let mut add = |touches| sleepers.push(Sleeper { thread: q.thread, touches });
        if q.all {
            add(Asleep::Everything);
        } else if q.accesses.is_empty() {
            add(Asleep::Nothing);
        } else {
            q.accesses
                .iter()
                .for_each(|a| add(if a.write { Asleep::Writes(a.object) } else { Asleep::Reads(a.object) }));
        }
    }
    Sleep { from: if sleepers.is_empty() { 0 } else { from }, sleepers }
}

impl InTurn for Dpor {
    type Way = Way;

    fn turns(&self) -> &Turns<Way> {
        &self.turns
    }

    fn turns_mut(&mut self) -> &mut Turns<Way> {
        &mut self.turns
    }

    /// Finds a plan that will come later and that nothing can change until then.
    fn early_plan(&mut self) -> Option<Plan> {
        let (now, now_steps) = match &self.turns.pick {
            Some(Pick { depth, way: Way::Steps(steps), .. }) => (Some(*depth), steps.first()),
            Some(Pick { depth, way: Way::Outcomes(_), .. }) => (Some(*depth), None),
            None => (None, None),
        };
        for depth in (0..self.path.len()).rev() {
            let node = &self.path[depth];
            if let Some(at) = node.outcomes.iter().position(|t| !t.out) {
                let plan = self.plan_of_outcomes(depth, &node.outcomes[at].outcomes);
                self.path[depth].outcomes[at].out = true;
                return Some(plan);
            }
            if !node.outcomes.is_empty() || node.branches.iter().all(|branch| branch.out) {
                continue;
            }
            let mut sleep = node.sleep.clone();
            if now == Some(depth) {
                let Some((step, _)) = now_steps.filter(|(step, _)| step.sure) else { continue };
                sleep.push(step.foot.clone());
            } else {
                sleep.extend(node.explored.clone());
            }
            for at in 0..node.branches.len() {
                let branch = &node.branches[at];
                if !node.allows(branch) || sleep.iter().any(|q| q.thread == branch.step.foot.thread) {
                    continue;
                }
                if !branch.out {
                    let plan = self.plan_of_steps(depth, branch.first(), &sleep);
                    self.path[depth].branches[at].out = true;
                    return Some(plan);
                }
                if !branch.step.sure {
                    break;
                }
                sleep.push(branch.step.foot.clone());
            }
        }
        None
    }

    fn is_as_planned(&self, pick: &Pick<Way>, events: &Events) -> bool {
        let events = &events.events;
        let same = |(node, event): (&Node, &Event)| node.event == *event;
        if events.len() < pick.depth || !self.path[..pick.depth].iter().zip(events).all(same) {
            return false;
        }
        let rest = &events[pick.depth..];
        match &pick.way {
            Way::Outcomes(_) => {
                rest.first().is_some_and(|e| e.thread() == self.path[pick.depth].event.thread())
            }
            Way::Steps(steps) => {
                // Whom a step enables depends on who waits already.
                let same = |step: &Step, event: &Event| step.foot.accesses == event.foot.accesses;
                steps.iter().enumerate().all(|(at, (step, _))| {
                    let taken = |e: &Event| e.thread() == step.foot.thread && (!step.sure || same(step, e));
                    step.perhaps || rest.get(at).is_some_and(taken)
                })
            }
        }
    }

    fn take_in(&mut self, pick: Pick<Way>, mut events: Events) -> Option<Pick<Way>> {
        if self.variant == Variant::Optimal && events.events.iter().any(|e| !e.outcomes.is_empty()) {
            self.variant = Variant::Source;
            if !self.path.is_empty() {
                self.start_over();
                return Some(Pick::first());
            }
        }
        let first_new = self.path.len();
        let cut = self.extend(pick, &events);
        match cut {
            Some(at) => {
                events.cut(at);
                self.blocked += 1;
            }
            None => self.classes += 1,
        }
        if self.variant == Variant::Sleeping {
            for node in &mut self.path[first_new..] {
                for thread in node.event.candidates.clone() {
                    if node.explored.as_ref().is_none_or(|e| e.thread != thread) {
                        node.add_unknown(thread);
                    }
                }
            }
        } else {
            self.reverse_races(&events);
        }
        if let Some(node) = self.path.last_mut()
            && cut.is_none()
            && node.event.foot.all
        {
            // With the end behind it, so that nobody sleeps any more after that.
            let end = node.event.foot.clone();
            let no_events = Clocks::new([].iter());
            for thread in node.event.candidates.clone() {
                if thread == node.event.thread() || node.sleeps(thread) {
                } else if self.variant == Variant::Optimal {
                    let mut sequence = Sequence::new(&no_events);
                    sequence.push_moved(Cow::Owned(Footprint::unknown(thread)), false);
                    sequence.push_moved(Cow::Borrowed(&end), true);
                    wakeup_tree::insert(&mut node.branches, sequence);
                } else {
                    node.add_unknown(thread);
                }
            }
        }
        self.advance()
    }

    fn start_over(&mut self) {
        self.path.clear();
        self.classes = 0;
        self.turns.forget();
        self.blocked = self.turns.ledger.status().executions;
    }

    fn advance(&mut self) -> Option<Pick<Way>> {
        loop {
            let depth = self.path.len().checked_sub(1)?;
            let node = &mut self.path[depth];
            if !node.outcomes.is_empty() {
                let todo = node.outcomes.remove(0);
                let plan = self.plan_of_outcomes(depth, &todo.outcomes);
                return Some(Pick { depth, way: Way::Outcomes(todo.outcomes.len()), plan, out: todo.out });
            }
            node.sleep.extend(node.explored.take());
            while !self.path[depth].branches.is_empty() {
                let branch = self.path[depth].branches.remove(0);
                if self.path[depth].allows(&branch) {
                    let out = branch.out;
                    let steps = branch.into_first();
                    let first = steps.iter().map(|(step, _)| step);
                    let plan = self.plan_of_steps(depth, first, &self.path[depth].sleep);
                    return Some(Pick { depth, way: Way::Steps(steps), plan, out });
                }
            }
            self.path.pop();
        }
    }

    fn left(&self) -> usize {
        let left = |node: &Node| {
            let outcomes = node.outcomes.iter().filter(|t| !t.out).count();
            let branches = node.branches.iter().map(|b| b.leaves() - usize::from(b.out));
            outcomes + branches.sum::<usize>()
        };
        self.path.iter().map(left).sum()
    }

    fn describe(&self, status: &mut Status) {
        status.classes = Some(self.classes);
        status.blocked = self.blocked;
        status.whole = status.exhausted && !status.has_gaps();
    }

    /// It would be of a class that the search explores again.
    fn discarded(&mut self) {
        self.blocked += 1;
    }
}
