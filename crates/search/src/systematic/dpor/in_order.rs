//! Searches that take in one execution after the other, in an order of their own, though several are run at a time: plans that
//! are sure to be needed are handed out early, and their executions kept until it is their turn.

use crate::analysis::relation::Events;
use crate::halt::Halt;
use crate::store::ledger::Ledger;
use crate::{Status, Strategy, Touches};
use heisen_trace::{Execution, Note, Plan, Policy};
use serde::{Deserialize, Serialize};

/// What is explored next: it leaves the path that the search is on by some way.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Pick<W> {
    /// The number of the state it leaves the path at.
    pub depth: usize,
    pub way: W,
    pub plan: Plan,
    /// Whether the plan was handed out.
    pub out: bool,
}

impl<W: Default> Pick<W> {
    /// The first execution of all.
    pub fn first() -> Pick<W> {
        Pick { depth: 0, way: W::default(), plan: Plan::new(Policy::Default), out: false }
    }
}

/// Whose turn it is, and who came before theirs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Turns<W> {
    /// What is explored now.
    pub pick: Option<Pick<W>>,
    /// Executions that came before their turn. Their plans stay in the ledger, so a search that is saved runs them again.
    #[serde(skip)]
    early: Vec<(Plan, Execution)>,
    /// How much these are; of a search that was read back, what it will do again.
    #[serde(default)]
    ahead: Again,
    /// Plans that were out when the search started over.
    #[serde(default)]
    stale: Vec<Plan>,
    /// Arrivals at barriers do not commute in this program; see [`Events::is_crowded`].
    #[serde(default)]
    crowded: bool,
    pub ledger: Ledger,
    /// When executions whose turn it is are kept for later.
    #[serde(skip)]
    pub halt: Halt,
}

/// Executions that were done, and that a search which was saved has to do again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Again {
    /// How many.
    pub executions: u64,
    /// Their steps.
    pub steps: u64,
}

impl<W> Default for Turns<W> {
    fn default() -> Turns<W> {
        Turns {
            pick: None,
            early: Vec::new(),
            ahead: Again::default(),
            stale: Vec::new(),
            crowded: false,
            ledger: Ledger::default(),
            halt: Halt::default(),
        }
    }
}

impl<W> Turns<W> {
    /// An execution came, perhaps before its turn.
    fn keep(&mut self, plan: &Plan, execution: &Execution) {
        self.ahead.executions += 1;
        self.ahead.steps += u64::from(execution.steps);
        self.early.push((plan.clone(), execution.clone()));
    }

    /// The execution of a plan, if it has come.
    fn take(&mut self, plan: &Plan) -> Option<Execution> {
        let at = self.early.iter().position(|(early, _)| early == plan)?;
        let (_, execution) = self.early.swap_remove(at);
        self.ahead.executions -= 1;
        self.ahead.steps -= u64::from(execution.steps);
        Some(execution)
    }

    /// Of a search that was just read back: what was done before it was saved, and is not known any more.
    pub fn take_again(&mut self) -> Again {
        std::mem::take(&mut self.ahead)
    }

    /// The search starts over. Executions that came before their turn, and those of plans that are out, count, but no more
    /// comes of them.
    pub fn forget(&mut self) {
        self.ahead = Again::default();
        for (plan, execution) in std::mem::take(&mut self.early) {
            self.ledger.done(&plan, &execution);
        }
        self.stale = self.ledger.unfinished();
    }

    /// Counts an execution that was out when the search started over; false if this is not one.
    pub fn is_stale(&mut self, plan: &Plan, execution: &Execution) -> bool {
        let Some(at) = self.stale.iter().position(|stale| stale == plan) else { return false };
        self.stale.swap_remove(at);
        self.ledger.done(plan, execution);
        true
    }

    /// How far the search is, if so many ways are left besides what is out or picked.
    pub fn status(&self, left: usize) -> Status {
        let mut status = self.ledger.status();
        let started = self.ledger.handed() > 0;
        status.out -= self.early.len();
        status.queued += left + usize::from(!started || self.pick.as_ref().is_some_and(|pick| !pick.out));
        status.exhausted = started && self.pick.is_none() && self.ledger.is_settled();
        status
    }
}

/// Such a search.
pub(crate) trait InTurn {
    /// How it leaves the path.
    type Way: Default;

    fn turns(&self) -> &Turns<Self::Way>;

    fn turns_mut(&mut self) -> &mut Turns<Self::Way>;

    /// A plan that is needed whatever comes of those before it, if there is one.
    fn early_plan(&mut self) -> Option<Plan>;

    /// Whether an execution begins as those before it did, and then as it was told to.
    fn is_as_planned(&self, pick: &Pick<Self::Way>, events: &Events) -> bool;

    /// Takes in the events of what was picked; what is to be explored next, if anything.
    fn take_in(&mut self, pick: Pick<Self::Way>, events: Events) -> Option<Pick<Self::Way>>;

    /// Forgets what was explored: what was run until now was in vain.
    fn start_over(&mut self);

    /// Finds what is to be explored next, the deepest first, and leaves states behind from which nothing is.
    fn advance(&mut self) -> Option<Pick<Self::Way>>;

    /// How many ways are left besides the plans that are out and the next one.
    fn left(&self) -> usize;

    /// Completes the status with what only this search knows.
    fn describe(&self, status: &mut Status);

    /// An execution came back whose plan was out when the search started over.
    fn discarded(&mut self) {}
}

impl<S: InTurn> Strategy for S {
    fn next(&mut self) -> Option<Plan> {
        next(self)
    }

    fn done(&mut self, plan: &Plan, execution: &Execution) {
        assert!(self.turns().ledger.is_out(plan), "a plan was given back that is not out");
        if self.turns_mut().is_stale(plan, execution) {
            self.discarded();
        } else {
            self.turns_mut().keep(plan, execution);
            take_turns(self);
        }
    }

    fn give_back_unrun(&mut self, plan: &Plan) {
        self.turns_mut().ledger.give_back(plan);
    }

    fn heed(&mut self, halt: Halt) {
        self.turns_mut().halt = halt;
    }

    fn needs_decisions(&self) -> bool {
        true
    }

    fn needs_touches(&self) -> Touches {
        Touches::All
    }

    fn status(&self) -> Status {
        let mut status = self.turns().status(self.left());
        self.describe(&mut status);
        status
    }
}

/// The next plan, if there is one yet.
fn next<S: InTurn>(search: &mut S) -> Option<Plan> {
    take_turns(search);
    let turns = search.turns_mut();
    // Executions that come before their turn are lost when the search is saved, so that whose turn it is goes first.
    if let Some(pick) = &turns.pick {
        turns.ledger.prefer(&pick.plan);
    }
    if let Some(plan) = turns.ledger.again() {
        return Some(plan);
    }
    if turns.ledger.handed() == 0 {
        turns.pick = Some(Pick::first());
    }
    let plan = match turns.pick.as_mut()? {
        pick if !pick.out => {
            pick.out = true;
            pick.plan.clone()
        }
        _ => search.early_plan()?,
    };
    Some(search.turns_mut().ledger.hand_out(plan))
}

/// Takes in executions as long as the one is there whose turn it is. To take in one may take long, so the search may be halted
/// before each.
fn take_turns<S: InTurn>(search: &mut S) {
    while !search.turns_mut().halt.is_asked()
        && let Some(pick) = search.turns_mut().pick.take()
    {
        let turns = search.turns_mut();
        let Some(execution) = turns.take(&pick.plan) else {
            turns.pick = Some(pick);
            return;
        };
        let next = feed(search, pick, &execution);
        search.turns_mut().pick = next;
    }
}

/// Events of an execution that are looked at: to reverse two of them takes a sequence of those in between, so twice as many
/// take four times as long. An execution that has more is mostly one that does not end.
pub const MOST_EVENTS: usize = 1 << 13;

/// Takes in the execution of what was picked; what is to be explored next, if anything.
fn feed<S: InTurn>(search: &mut S, pick: Pick<S::Way>, execution: &Execution) -> Option<Pick<S::Way>> {
    if !search.turns_mut().ledger.done(&pick.plan, execution) {
        return search.advance();
    }
    let mut events = Events::read(execution);
    if let Some(events) = &mut events {
        if events.is_crowded() && !search.turns_mut().crowded {
            search.turns_mut().crowded = true;
            search.start_over();
            return Some(Pick::first());
        }
        if search.turns_mut().crowded {
            events.order_arrivals();
        }
    }
    let Some(mut events) = events.filter(|events| search.is_as_planned(&pick, events)) else {
        search.turns_mut().ledger.diverged();
        return search.advance();
    };
    if !events.told || execution.notes.iter().any(|n| matches!(n, Note::GaveWay | Note::NoPreempt)) {
        search.turns_mut().ledger.clipped();
    }
    if events.events.len() > MOST_EVENTS {
        events.cut(MOST_EVENTS);
        search.turns_mut().ledger.cut();
    }
    search.take_in(pick, events)
}
