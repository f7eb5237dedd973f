//! Lets a depth-first search run several executions at a time and still process them in its own order.
//!
//! The search hands out early each plan that it is certain to need. The reorder buffer holds the executions
//! that come back early, until the search reaches them.

use crate::analysis::relation::Events;
use crate::halt::Halt;
use crate::store::ledger::Ledger;
use crate::{Status, Strategy, Touches};
use heisen_trace::{Execution, Note, Plan, Policy};
use serde::{Deserialize, Serialize};

/// What the search explores next: a plan that leaves the current path at some state.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Pick<W> {
    /// The number of the state at which it leaves the path.
    pub depth: usize,
    pub way: W,
    pub plan: Plan,
    /// Whether the plan was handed out.
    pub out: bool,
}

impl<W: Default> Pick<W> {
    /// The first execution of the search.
    pub fn first() -> Pick<W> {
        Pick { depth: 0, way: W::default(), plan: Plan::new(Policy::Default), out: false }
    }
}

/// The next pick of a search, and the executions that came back before the search needs them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ReorderBuffer<W> {
    /// The pick whose execution the search needs next.
    pub pick: Option<Pick<W>>,
    /// Executions that came back early. Their plans stay in the ledger, so a saved search runs them again.
    #[serde(skip)]
    early: Vec<(Plan, Execution)>,
    /// How many executions and steps `early` holds. In a search that was read back, how many it will run
    /// again.
    #[serde(default, rename = "ahead")]
    rerun: Rerun,
    /// Plans that were handed out before the search started over.
    #[serde(default)]
    stale: Vec<Plan>,
    /// Arrivals at barriers do not commute in this program; see [`Events::is_crowded`].
    #[serde(default)]
    crowded: bool,
    pub ledger: Ledger,
    /// Asks the search to put off processing executions.
    #[serde(skip)]
    pub halt: Halt,
}

/// Executions that were run before a search was saved and that it has to run again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rerun {
    /// How many executions.
    pub executions: u64,
    /// How many steps they have together.
    pub steps: u64,
}

impl<W> Default for ReorderBuffer<W> {
    fn default() -> ReorderBuffer<W> {
        ReorderBuffer {
            pick: None,
            early: Vec::new(),
            rerun: Rerun::default(),
            stale: Vec::new(),
            crowded: false,
            ledger: Ledger::default(),
            halt: Halt::default(),
        }
    }
}

impl<W> ReorderBuffer<W> {
    /// Adds an execution that came back.
    fn add(&mut self, plan: &Plan, execution: &Execution) {
        self.rerun.executions += 1;
        self.rerun.steps += u64::from(execution.steps);
        self.early.push((plan.clone(), execution.clone()));
    }

    /// Removes the execution of a plan, if it has come back.
    fn take(&mut self, plan: &Plan) -> Option<Execution> {
        let at = self.early.iter().position(|(early, _)| early == plan)?;
        let (_, execution) = self.early.swap_remove(at);
        self.rerun.executions -= 1;
        self.rerun.steps -= u64::from(execution.steps);
        Some(execution)
    }

    /// In a search that was just read back: the executions that it has to run again. Can be taken once.
    pub fn take_rerun(&mut self) -> Rerun {
        std::mem::take(&mut self.rerun)
    }

    /// Empties the buffer when the search starts over. Executions in it, and those of plans that are still
    /// out, count as executed, but the search does not use them.
    pub fn forget(&mut self) {
        self.rerun = Rerun::default();
        for (plan, execution) in std::mem::take(&mut self.early) {
            self.ledger.done(&plan, &execution);
        }
        self.stale = self.ledger.unfinished();
    }

    /// Counts the execution of a plan from before the search started over. Returns false if the plan is not
    /// such a plan.
    pub fn is_stale(&mut self, plan: &Plan, execution: &Execution) -> bool {
        let Some(at) = self.stale.iter().position(|stale| stale == plan) else { return false };
        self.stale.swap_remove(at);
        self.ledger.done(plan, execution);
        true
    }

    /// The status of the search, if `left` branches are left besides the plans that are out and the pick.
    pub fn status(&self, left: usize) -> Status {
        let mut status = self.ledger.status();
        let started = self.ledger.handed() > 0;
        status.out -= self.early.len();
        status.queued += left + usize::from(!started || self.pick.as_ref().is_some_and(|pick| !pick.out));
        status.exhausted = started && self.pick.is_none() && self.ledger.is_settled();
        status
    }
}

/// A search that processes executions in its own depth-first order.
pub(crate) trait OrderedSearch {
    /// How a pick leaves the path.
    type Way: Default;

    fn buffer(&self) -> &ReorderBuffer<Self::Way>;

    fn buffer_mut(&mut self) -> &mut ReorderBuffer<Self::Way>;

    /// A plan that the search needs whatever the executions before it show, if there is one.
    fn early_plan(&mut self) -> Option<Plan>;

    /// Whether an execution follows the path to the state of the pick, and then the plan of the pick.
    fn is_as_planned(&self, pick: &Pick<Self::Way>, events: &Events) -> bool;

    /// Processes the events of the picked execution. Returns the next pick, if anything is left.
    fn process(&mut self, pick: Pick<Self::Way>, events: Events) -> Option<Pick<Self::Way>>;

    /// Discards everything explored so far.
    fn start_over(&mut self);

    /// Finds the next pick, the deepest first, and drops states from which nothing is left to explore.
    fn advance(&mut self) -> Option<Pick<Self::Way>>;

    /// How many branches are left besides the plans that are out and the pick.
    fn left(&self) -> usize;

    /// Adds to the status what only this search knows.
    fn describe(&self, status: &mut Status);

    /// Called when an execution comes back whose plan was out when the search started over.
    fn discarded(&mut self) {}
}

impl<S: OrderedSearch> Strategy for S {
    fn next(&mut self) -> Option<Plan> {
        next(self)
    }

    fn done(&mut self, plan: &Plan, execution: &Execution) {
        assert!(self.buffer().ledger.is_out(plan), "a plan was given back that is not out");
        if self.buffer_mut().is_stale(plan, execution) {
            self.discarded();
        } else {
            self.buffer_mut().add(plan, execution);
            process_ready(self);
        }
    }

    fn give_back_unrun(&mut self, plan: &Plan) {
        self.buffer_mut().ledger.give_back(plan);
    }

    fn heed(&mut self, halt: Halt) {
        self.buffer_mut().halt = halt;
    }

    fn needs_decisions(&self) -> bool {
        true
    }

    fn needs_touches(&self) -> Touches {
        Touches::All
    }

    fn status(&self) -> Status {
        let mut status = self.buffer().status(self.left());
        self.describe(&mut status);
        status
    }
}

/// The next plan, or `None` if there is none yet.
fn next<S: OrderedSearch>(search: &mut S) -> Option<Plan> {
    process_ready(search);
    let buffer = search.buffer_mut();
    // A saved search loses the executions that came back early, so the plan of the pick is handed out first.
    if let Some(pick) = &buffer.pick {
        buffer.ledger.prefer(&pick.plan);
    }
    if let Some(plan) = buffer.ledger.again() {
        return Some(plan);
    }
    if buffer.ledger.handed() == 0 {
        buffer.pick = Some(Pick::first());
    }
    let plan = match buffer.pick.as_mut()? {
        pick if !pick.out => {
            pick.out = true;
            pick.plan.clone()
        }
        _ => search.early_plan()?,
    };
    Some(search.buffer_mut().ledger.hand_out(plan))
}

/// Processes executions as long as that of the pick is in the buffer. Processing one may take long, so the
/// search can be halted before each.
fn process_ready<S: OrderedSearch>(search: &mut S) {
    while !search.buffer_mut().halt.is_asked()
        && let Some(pick) = search.buffer_mut().pick.take()
    {
        let buffer = search.buffer_mut();
        let Some(execution) = buffer.take(&pick.plan) else {
            buffer.pick = Some(pick);
            return;
        };
        let next = feed(search, pick, &execution);
        search.buffer_mut().pick = next;
    }
}

/// How many events of an execution are analysed at most. Reversing a race copies the events in between, so
/// the time is quadratic in the number of events. An execution with more events is usually one that does not
/// end.
pub const MOST_EVENTS: usize = 1 << 13;

/// Processes the execution of a pick. Returns the next pick, if anything is left.
fn feed<S: OrderedSearch>(search: &mut S, pick: Pick<S::Way>, execution: &Execution) -> Option<Pick<S::Way>> {
    if !search.buffer_mut().ledger.done(&pick.plan, execution) {
        return search.advance();
    }
    let mut events = Events::read(execution);
    if let Some(events) = &mut events {
        if events.is_crowded() && !search.buffer_mut().crowded {
            search.buffer_mut().crowded = true;
            search.start_over();
            return Some(Pick::first());
        }
        if search.buffer_mut().crowded {
            events.order_arrivals();
        }
    }
    let Some(mut events) = events.filter(|events| search.is_as_planned(&pick, events)) else {
        search.buffer_mut().ledger.diverged();
        return search.advance();
    };
    if !events.waits_known || execution.notes.iter().any(|n| matches!(n, Note::GaveWay | Note::NoPreempt)) {
        search.buffer_mut().ledger.clipped();
    }
    if events.events.len() > MOST_EVENTS {
        events.cut(MOST_EVENTS);
        search.buffer_mut().ledger.cut();
    }
    search.process(pick, events)
}
