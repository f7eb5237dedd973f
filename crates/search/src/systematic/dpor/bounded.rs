//! Partial-order reduction within a bound on preemptions.
//!
//! After Coons, Musuvathi, McKinley: Bounded Partial-Order Reduction, OOPSLA 2013. Their idea is to backtrack
//! to two states: the one where two dependent events could be swapped, and the start of the block of the
//! thread that would be preempted there. From that start the same result may be reached with fewer
//! preemptions. The search goes depth first over the states of one execution, as in
//! [`dpor`](crate::systematic::dpor). `blocks` says which threads must be explored from which state, and
//! proves that this is enough.
//!
//! Guarantees: let all executions of the program end. Every class that has an execution within the bound is
//! explored, by an execution within the bound. The same holds for every final state, deadlock and failure. No
//! execution exceeds the bound. Touches must show all shared data, as in `dpor`.
//!
//! A class may be explored more than once. Sleep sets would prevent that, but within a bound they hide
//! executions. A thread sleeps because all executions that begin with it were explored; within a bound some
//! of them were not. An execution that begins with a thread and continues with it may need one more
//! preemption when other threads come in between, as they do where the thread sleeps.
//!
//! *Decisions that are not about threads* are part of an event, and all their choices are explored.
//!
//! *Several executions at a time* work as in `dpor`. Here every plan may be handed out early, because the
//! results of earlier executions never change it.

use crate::Status;
use crate::analysis::relation::{Event, Events};
use crate::systematic::dpor::blocks::Blocks;
use crate::systematic::dpor::path_plan;
use crate::systematic::dpor::path_plan::Todo;
use crate::systematic::dpor::reorder_buffer::{OrderedSearch, Pick, ReorderBuffer};
use heisen_trace::Plan;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// Partial-order reduction within a bound on preemptions; see the head of this file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Bpor {
    bound: u32,
    /// The states of the current execution, up to the last one from which something is left to explore.
    path: Vec<Node>,
    #[serde(rename = "turns")]
    buffer: ReorderBuffer<Way>,
    /// How many branches were left out because they exceed the bound.
    beyond: u64,
    /// The fingerprints of the classes explored so far.
    classes: HashSet<u64>,
}

/// A state of the current execution.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Node {
    /// The event that leads from here to the next state.
    event: Event,
    /// How many preemptions come before the event.
    preemptions: u32,
    /// The other outcomes of this event that are left to explore.
    outcomes: Vec<Todo>,
    /// The threads that are explored from here, or would be without the bound.
    threads: Vec<u16>,
    /// Those of these threads that are left to explore, and whether the plan was handed out.
    left: Vec<(u16, bool)>,
}

/// If the same thread continues: how many outcomes of the event are unchanged. `None` if another thread does.
type Way = Option<usize>;

impl Node {
    /// The number of preemptions after this state if `thread` runs next.
    fn preemptions_with(&self, thread: u16) -> u32 {
        let preemptive = self.event.chosen.is_some_and(|(_, _, preemptive)| preemptive);
        self.preemptions + u32::from(preemptive && self.event.candidates.first() != Some(&thread))
    }
}

impl Bpor {
    /// Explores the executions with at most `bound` preemptions.
    pub fn new(bound: u32) -> Bpor {
        Bpor { bound, path: vec![], buffer: ReorderBuffer::default(), beyond: 0, classes: HashSet::new() }
    }

    /// Replaces the path by the states of an execution.
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

    /// The plan that follows the path to a state.
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

impl OrderedSearch for Bpor {
    type Way = Way;

    fn buffer(&self) -> &ReorderBuffer<Way> {
        &self.buffer
    }

    fn buffer_mut(&mut self) -> &mut ReorderBuffer<Way> {
        &mut self.buffer
    }

    /// Finds a plan that will be needed later.
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

    fn process(&mut self, pick: Pick<Way>, mut events: Events) -> Option<Pick<Way>> {
        self.classes.insert(events.fingerprint());
        self.extend(&pick, &events);
        // Exploring these threads only at the end may take too many preemptions, so they make demands like
        // waiting threads.
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
        self.buffer.forget();
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
        status.exhaustive = status.exhausted && self.beyond == 0 && !status.has_gaps();
    }
}
