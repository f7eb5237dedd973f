//! Dynamic partial-order reduction: explores one execution of each happens-before class.
//!
//! Abdulla, Aronis, Jonsson, Sagonas: Optimal Dynamic Partial Order Reduction, POPL 2014; Source Sets: A
//! Foundation for Optimal Dynamic Partial Order Reduction, JACM 2017.
//!
//! The search goes depth first over the states of one execution. For each race that can be reversed
//! (`reversal`), it adds a sequence of steps that reverses the race to the state before the first event. It
//! does not add a sequence that leads to an execution already explored. A thread that was explored from a
//! state sleeps (Godefroid's sleep sets) until an event happens that its next step depends on.
//!
//! There are three variants:
//!
//! - [`Dpor::optimal`] stores complete sequences in wake-up trees (`wakeup_tree`). Every execution that it
//!   starts belongs to a new class. The exceptions are named in `reversal` ("perhaps") and in the paragraphs
//!   below.
//! - [`Dpor::source`] stores only first steps, from source sets. Each execution takes less work, but in some
//!   executions all threads turn out to sleep.
//! - [`Dpor::sleeping`] branches to every thread, as depth-first search does, and uses sleep sets alone.
//!
//! Guarantees: let all executions of the program end. At least one execution of every class is explored, so
//! every final state, deadlock and failure is found. No class is explored to its end twice. All this holds
//! for what touches show: shared data that the runtime does not see must be protected by synchronisation that
//! it sees. There is no bound on preemptions.
//!
//! *Plans.* A sequence leads through states that no execution has visited. A plan therefore names threads
//! instead of choices ([`Override::thread`]). It also names the sleeping threads, so that the rest of the
//! execution belongs to a new class, too. If an execution schedules a sleeping thread although another one is
//! enabled, the search cuts the execution off there and runs it again with the other thread.
//!
//! *Decisions that are not about threads* are part of an event, and all their choices are explored. The
//! thread of the event does not sleep before that. Then it sleeps with everything that any of the outcomes
//! touches. Wake-up trees do not cover such decisions: the same step in another place, with another outcome,
//! may touch another object. The optimal variant therefore starts over with source sets when it first sees
//! such a decision. On random programs with such decisions, wake-up trees missed about one class in several
//! thousand.
//!
//! *The end of the process* depends on all events: the search tries all enabled threads before it. The
//! operations that threads wait for at the end are treated as events.
//!
//! *Barriers.* Arrivals commute as long as no more threads meet at a barrier than it is made for. The first
//! execution in which more threads do makes the search start over, with arrivals that do not commute
//! (`relation`).
//!
//! *Several executions at a time.* The search processes executions in depth-first order, however many plans
//! are out. It hands out a later plan early if no execution before it can change that plan, and buffers the
//! execution.

mod blocks;
pub mod bounded;
mod path_plan;
pub(crate) mod reorder_buffer;
mod reversal;
mod sequence;
mod wakeup_tree;

use crate::Status;
use crate::analysis::relation::{Clocks, Event, Events, Footprint, Outcome};
use crate::systematic::dpor::path_plan::Todo;
use crate::systematic::dpor::reorder_buffer::{OrderedSearch, Pick, ReorderBuffer};
use crate::systematic::dpor::reversal::Races;
use crate::systematic::dpor::sequence::Sequence;
use crate::systematic::dpor::wakeup_tree::{Branch, Step};
use heisen_trace::plan::Touches as Asleep;
use heisen_trace::{Override, Plan, Sleep, Sleeper};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Dynamic partial-order reduction; see the head of this file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Dpor {
    variant: Variant,
    /// The states of the current execution, up to the last one from which something is left to explore.
    path: Vec<Node>,
    #[serde(rename = "turns")]
    buffer: ReorderBuffer<Way>,
    /// The places of accesses that took part in a reversible race, if executions record places.
    #[serde(default, rename = "raced")]
    reversed_places: BTreeSet<u64>,
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

/// A state of the current execution.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Node {
    /// The event that leads from here to the next state.
    event: Event,
    /// What the events of its thread touched that were explored from here. `None` before the first.
    explored: Option<Footprint>,
    /// The threads that sleep here.
    sleep: Vec<Footprint>,
    /// The other outcomes of this event that are left to explore.
    outcomes: Vec<Todo>,
    /// The sequences of other threads that are left to explore.
    branches: Vec<Branch>,
}

/// How a pick leaves the path.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Way {
    /// With steps of other threads, each with the branches of the state after it.
    Steps(Vec<(Step, Vec<Branch>)>),
    /// With the same thread and other outcomes. The outcomes before this index are unchanged.
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

    /// Adds a branch to a thread whose next step is not known.
    fn add_unknown(&mut self, thread: u16) {
        let known = self.branches.iter().any(|b| b.step.foot.thread == thread);
        if !known && !self.sleeps(thread) {
            self.branches.push(Branch::unknown(thread));
        }
    }

    /// Whether a branch has to be explored: its thread is enabled and does not sleep.
    fn allows(&self, branch: &Branch) -> bool {
        let thread = branch.step.foot.thread;
        self.event.could_be(thread) && !self.sleeps(thread)
    }
}

/// An event wakes the threads whose next step depends on it.
fn wake(sleep: &mut Vec<Footprint>, event: &Footprint) {
    sleep.retain(|q| !event.precedes(q));
}

impl Dpor {
    fn new(variant: Variant) -> Dpor {
        let (buffer, reversed_places) = (ReorderBuffer::default(), BTreeSet::new());
        Dpor { variant, path: vec![], buffer, reversed_places, classes: 0, blocked: 0 }
    }

    /// The places of accesses whose order with others was or will be reversed, if executions record places.
    pub fn reversed_places(&self) -> &BTreeSet<u64> {
        &self.reversed_places
    }

    /// Optimal dynamic partial-order reduction.
    pub fn optimal() -> Dpor {
        Dpor::new(Variant::Optimal)
    }

    /// Dynamic partial-order reduction with source sets and sleep sets.
    pub fn source() -> Dpor {
        Dpor::new(Variant::Source)
    }

    /// Depth-first search with sleep sets.
    pub fn sleeping() -> Dpor {
        Dpor::new(Variant::Sleeping)
    }

    /// Replaces the path by the states of an execution. Returns the first event of a sleeping thread, if
    /// there is one: everything from there on was explored.
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

    /// Adds to the states of the path the sequences that reverse the races of its events.
    fn reverse_races(&mut self, events: &Events) {
        let races = Races::new(events);
        for race in races.all() {
            let pair = [race.first, race.second];
            // Atomic sections are ordered as units, whatever they access.
            if !pair.iter().all(|&event| races.foot(event).begins_section()) {
                self.reversed_places.extend(pair.iter().flat_map(|&event| events.places(event)));
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

    /// The plan that follows the path to a state.
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

    /// The plan for steps of other threads from a state, while the threads of `sleep` sleep there.
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

/// The sleeping threads in the form that a plan has.
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

impl OrderedSearch for Dpor {
    type Way = Way;

    fn buffer(&self) -> &ReorderBuffer<Way> {
        &self.buffer
    }

    fn buffer_mut(&mut self) -> &mut ReorderBuffer<Way> {
        &mut self.buffer
    }

    /// Finds a plan that will be needed later and that no execution until then can change.
    fn early_plan(&mut self) -> Option<Plan> {
        let (now, now_steps) = match &self.buffer.pick {
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
                // The set of threads that a step enables depends on which threads already wait.
                let same = |step: &Step, event: &Event| step.foot.accesses == event.foot.accesses;
                steps.iter().enumerate().all(|(at, (step, _))| {
                    let taken = |e: &Event| e.thread() == step.foot.thread && (!step.sure || same(step, e));
                    step.perhaps || rest.get(at).is_some_and(taken)
                })
            }
        }
    }

    fn process(&mut self, pick: Pick<Way>, mut events: Events) -> Option<Pick<Way>> {
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
            // The end of the process is part of the sequence, so that it wakes every sleeping thread.
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
        self.buffer.forget();
        self.blocked = self.buffer.ledger.status().executions;
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
        status.exhaustive = status.exhausted && !status.has_gaps();
    }

    /// The execution is wasted, because the search explores its class again.
    fn discarded(&mut self) {
        self.blocked += 1;
    }
}
