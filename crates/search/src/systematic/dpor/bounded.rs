//! Partial order reduction within a bound on preemptions.
//!
//! After Coons, Musuvathi, McKinley: Bounded Partial-Order Reduction, OOPSLA 2013, whose idea it is to go back not only to
//! where two dependent events could be swapped, but also to the beginning of the block of the thread that would be preempted
//! there: to the same end another way may lead that takes fewer preemptions. Depth first over the states of one execution, as
//! [`dpor`](crate::systematic::dpor); `blocks` tells what is to be tried from which state, and why that is enough.
//!
//! Guarantees: of a program whose executions all end, every class of equivalent executions that has one of at most so many
//! preemptions is explored, by such a one; so is every final state, deadlock and failure within the bound. And no
//! execution with more preemptions is. What touches do not show is as in `dpor`.
//!
//! A class may be explored more than once. Sleep sets would see to that, but hide ways here: a thread sleeps as all that begins with
//! it was explored, and within a bound it was not. What begins with it and then goes on with it may take a preemption more when
//! others come in between, as they do where it is asleep.
//!
//! *Other choices* than of threads are part of an event, and all of them are explored. *Several at a time* are as in `dpor`;
//! what is to be explored never changes by what is found before it, so all of it may be handed out early.

use crate::Status;
use crate::analysis::relation::{Event, Events};
use crate::systematic::dpor::blocks::Blocks;
use crate::systematic::dpor::in_order::{InTurn, Pick, Turns};
use crate::systematic::dpor::path_plan;
use crate::systematic::dpor::path_plan::Todo;
use heisen_trace::Plan;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// Partial order reduction within a bound on preemptions.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Bpor {
    bound: u32,
    /// The states that the execution in hand went through, but for those that nothing is left to try from.
    path: Vec<Node>,
    turns: Turns<Way>,
    /// Ways that were left out since they take a preemption too many.
    beyond: u64,
    /// The classes that were explored, by their fingerprints.
    classes: HashSet<u64>,
}

/// A state.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Node {
    /// The event that leads from here to the next state of the path.
    event: Event,
    /// How many preemptions there were before it.
    preemptions: u32,
    /// What is left to be explored with the thread of the event.
    outcomes: Vec<Todo>,
    /// The threads that are explored from here, or would be but for the bound.
    threads: Vec<u16>,
    /// What is left of them, and whether its plan was handed out.
    left: Vec<(u16, bool)>,
}

/// If it goes on with the same thread: how many outcomes of the event are as before.
type Way = Option<usize>;

impl Node {
    /// How many preemptions there were if a thread goes on from here.
    fn preemptions_with(&self, thread: u16) -> u32 {
        let preemptive = self.event.chosen.is_some_and(|(_, _, preemptive)| preemptive);
        self.preemptions + u32::from(preemptive && self.event.candidates.first() != Some(&thread))
    }
}

impl Bpor {
    /// A search among the executions with at most so many preemptions.
    pub fn new(bound: u32) -> Bpor {
        Bpor { bound, path: vec![], turns: Turns::default(), beyond: 0, classes: HashSet::new() }
    }

    /// Makes the path that of an execution.
    fn extend(&mut self, pick: &Pick<Way>, events: &Events) {
        for (at, event) in events.events.iter().enumerate().skip(pick.depth) {
            if let Some(node) = self.path.get_mut(at) {
                node.event = event.clone();
                node.outcomes.extend(path_plan::other_outcomes(event, pick.way.unwrap_or(0)));
                continue;
            }
            let last = self.path.last();
            self.path.push(Node {
                event: event.clone(),
                preemptions: last.map_or(0, |node| node.preemptions_with(node.event.thread())),
                outcomes: path_plan::other_outcomes(event, 0),
                threads: vec![event.thread()],
                left: vec![],
            });
        }
    }

    /// The plan that goes along the path to a state.
    fn plan_to(&self, depth: usize) -> Plan {
        path_plan::plan_of(self.path[..depth].iter().map(|node| &node.event))
    }

    fn plan_of_outcomes(&self, depth: usize, todo: &Todo) -> Plan {
        let mut plan = self.plan_to(depth);
        path_plan::add_other_outcomes(&mut plan, &self.path[depth].event, &todo.outcomes);
        plan
    }

    fn plan_of_thread(&self, depth: usize, thread: u16) -> Plan {
        let mut plan = self.plan_to(depth);
        path_plan::add_other_thread(&mut plan, &self.path[depth].event, thread);
        plan
    }
}

impl InTurn for Bpor {
    type Way = Way;

    fn turns(&self) -> &Turns<Way> {
        &self.turns
    }

    fn turns_mut(&mut self) -> &mut Turns<Way> {
        &mut self.turns
    }

    /// Finds a plan that will come later.
    fn early_plan(&mut self) -> Option<Plan> {
        for depth in (0..self.path.len()).rev() {
            let node = &mut self.path[depth];
            if let Some(todo) = node.outcomes.iter_mut().find(|todo| !todo.out) {
                todo.out = true;
                let todo = todo.clone();
                return Some(self.plan_of_outcomes(depth, &todo));
            }
            if let Some((thread, out)) = node.left.iter_mut().find(|(_, out)| !out) {
                *out = true;
                let thread = *thread;
                return Some(self.plan_of_thread(depth, thread));
            }
        }
        None
    }

    fn is_as_planned(&self, pick: &Pick<Way>, events: &Events) -> bool {
        let events = &events.events;
        let same = |(node, event): (&Node, &Event)| node.event == *event;
        events.len() >= pick.depth && self.path[..pick.depth].iter().zip(events).all(same)
    }

    fn take_in(&mut self, pick: Pick<Way>, mut events: Events) -> Option<Pick<Way>> {
        self.classes.insert(events.fingerprint());
        self.extend(&pick, &events);
        // Within a bound it may be too late to try at the end.
        events.waits.append(&mut events.ready);
        for demand in Blocks::new(&events).demands(pick.depth) {
            let node = &mut self.path[demand.at];
            if demand.one_of.iter().any(|t| node.threads.contains(t)) {
                continue;
            }
            let thread = demand.one_of[0];
            node.threads.push(thread);
            if node.preemptions_with(thread) <= self.bound {
                node.left.push((thread, false));
            } else {
                self.beyond += 1;
            }
        }
        self.advance()
    }

    fn start_over(&mut self) {
        self.path.clear();
        self.classes.clear();
        self.beyond = 0;
        self.turns.forget();
    }

    fn advance(&mut self) -> Option<Pick<Way>> {
        loop {
            let depth = self.path.len().checked_sub(1)?;
            let node = &mut self.path[depth];
            if !node.outcomes.is_empty() {
                let todo = node.outcomes.remove(0);
                let (plan, same) = (self.plan_of_outcomes(depth, &todo), todo.outcomes.len());
                return Some(Pick { depth, way: Some(same), plan, out: todo.out });
            }
            if !node.left.is_empty() {
                let (thread, out) = node.left.remove(0);
                return Some(Pick { depth, way: None, plan: self.plan_of_thread(depth, thread), out });
            }
            self.path.pop();
        }
    }

    fn left(&self) -> usize {
        let left = |node: &Node| {
            let outcomes = node.outcomes.iter().filter(|todo| !todo.out).count();
            outcomes + node.left.iter().filter(|(_, out)| !out).count()
        };
        self.path.iter().map(left).sum()
    }

    fn describe(&self, status: &mut Status) {
        status.classes = Some(self.classes.len() as u64);
        status.blocked = status.executions.saturating_sub(self.classes.len() as u64);
        status.beyond = self.beyond;
        status.bound = Some(self.bound);
        status.explored_bound = status.exhausted.then_some(self.bound);
        status.whole = status.exhausted && self.beyond == 0 && !status.has_gaps();
    }
}
