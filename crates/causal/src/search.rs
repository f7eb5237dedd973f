//! The search: asks the open questions one by one, and hands out plans for those that have a solution.

use crate::bounds::{Bounds, Stop};
use crate::encode::Encoding;
use crate::exactness::{Exactness, Reason};
use crate::insert::{Inserted, insert};
use crate::meetings::{decides, ended_at, meetings, step_of};
use crate::questions::{Questions, State, Target, branch_before, level};
use crate::schedule;
use crate::tree::{Key, NodeId, Outcome};
use heisen_solver::{Formula, Limit};
use heisen_trace::symbolic::SymbolicTrace;
use heisen_trace::{End, Plan, Policy};
use std::collections::BTreeSet;

/// How to search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The largest number of steps that the solver may take for one question. The search goes on without the answer, but
    /// is no longer exact.
    pub steps: u64,
    /// Whether to ask for deadlocks.
    pub deadlocks: bool,
    /// Whether to choose inputs. If not, they keep the values that the program gives them.
    pub inputs: bool,
    /// Until so many pairs of places were seen, the search asks for two threads that are about to do conflicting accesses
    /// there, not both atomic: a data race. [`u32::MAX`] for all pairs; 0 if nobody looks for races.
    pub meetings: u32,
    /// The most rounds of a loop that repeats the same read or attempt without an effect on other threads.
    pub rounds: u32,
}

/// The default of [`Options::rounds`].
pub const ROUNDS: u32 = 8;

impl Default for Options {
    fn default() -> Options {
        Options { steps: 4_000_000, deadlocks: true, inputs: true, meetings: 0, rounds: ROUNDS }
    }
}

/// The state of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// How many questions the solver was asked, repeated ones included.
    pub questions: u64,
    /// How many of them had a solution.
    pub satisfiable: u64,
    /// How many of them had none.
    pub unsatisfiable: u64,
    /// How many of them the solver did not answer within its limit.
    pub unknown: u64,
    /// How many executions were given back.
    pub executions: u64,
    /// How many of them showed nothing new, although their plan was made for it.
    pub diverged: u64,
    /// How many nodes executions have reached.
    pub edges: usize,
    /// How many questions are open.
    pub open: usize,
    /// Whether a plan is out.
    pub is_out: bool,
    /// Whether outcomes were left out that lie behind more than [`Options::rounds`] rounds of a loop.
    pub bounded: bool,
    /// The number of rounds up to which everything was shown or excluded, as [`is_proof`](Status::is_proof) has it, if
    /// the search goes on beyond that.
    pub completed: Option<u32>,
    /// Whether executions may exist that the search does not know of, although nothing is open.
    pub exactness: Exactness,
}

impl Status {
    /// Whether the search has ended and has shown every local outcome and every deadlock that any execution can have,
    /// within the number of rounds if it is [`bounded`](Status::bounded).
    pub fn is_proof(&self) -> bool {
        self.executions > 0 && self.open == 0 && !self.is_out && self.exactness.is_exact()
    }
}

/// A plan that is out, and the question that it is for.
#[derive(Clone, Debug)]
struct Out {
    plan: Plan,
    target: Option<Target>,
    /// How many children the parent of the target had when the plan was made.
    siblings: usize,
}

/// The search; see the head of this crate.
///
/// To save it, save the plans whose executions it has taken, in order: the same executions give the same search.
#[derive(Debug)]
pub struct Causal {
    options: Options,
    encoding: Encoding,
    questions: Questions,
    exactness: Exactness,
    /// At most one: each execution decides what is asked next.
    out: Option<Out>,
    /// A plan that has to run again, or the first plan.
    again: Option<Plan>,
    restarts: u32,
    bounded: bool,
    /// The [`level`] of the question that was asked last.
    level: u32,
    /// See [`Status::completed`].
    completed: Option<u32>,
    bounds: Bounds,
    /// The largest [`SymbolicTrace::shared`] so far.
    shared: u64,
    counts: Counts,
    /// The places of conflicting accesses that executions have done one right after the other.
    met: BTreeSet<(u64, u64)>,
    /// How many of them are not both atomic.
    races: u32,
    /// The places of atomic accesses.
    atomics: BTreeSet<u64>,
    /// The places of loops in which a thread was made to stay.
    looped: BTreeSet<u64>,
}

/// Traces that lack events of memory that is shared.
enum Outdated {
    None,
    Earlier,
    /// The earlier ones and the new one.
    Both,
}

#[derive(Debug, Default)]
struct Counts {
    questions: u64,
    satisfiable: u64,
    unsatisfiable: u64,
    unknown: u64,
    executions: u64,
    diverged: u64,
}

fn encoding(options: &Options) -> Encoding {
    let mut encoding = Encoding::new(options.inputs);
    encoding.memory.conflicts = (options.meetings > 0).then(Vec::new);
    encoding
}

/// How often the search begins anew because memory turned out to be shared.
const MOST_RESTARTS: u32 = 64;

impl Causal {
    /// A new search.
    pub fn new(options: Options) -> Causal {
        Causal {
            options,
            encoding: encoding(&options),
            questions: Questions::default(),
            exactness: Exactness::default(),
            out: None,
            again: Some(Plan::new(Policy::Default)),
            restarts: 0,
            bounded: false,
            level: 0,
            completed: None,
            bounds: Bounds::default(),
            shared: 0,
            counts: Counts::default(),
            met: BTreeSet::new(),
            races: 0,
            atomics: BTreeSet::new(),
            looped: BTreeSet::new(),
        }
    }

    /// The next plan. `None` if the search waits for the plan that is out or, if none is out, has ended.
    pub fn next_plan(&mut self) -> Option<Plan> {
        if self.out.is_some() {
            return None;
        }
        let stop = self.bounds.stop.clone();
        let stop = || stop.as_ref().is_some_and(|stop| stop());
        if let Some(plan) = self.again.take() {
            self.out = Some(Out { plan: plan.clone(), target: None, siblings: 0 });
            return Some(plan);
        }
        if self.counts.executions == 0 {
            return None;
        }
        // A search that was saved and read back has run the same executions.
        let deep = self.counts.executions.is_multiple_of(2);
        while let Some(target) = self.questions.next(&self.encoding.tree, &self.encoding.clauses, deep) {
            if self.have_met(target) || self.has_looped(target) {
                self.questions.set(target, State::Shown);
                continue;
            }
            if stop() {
                return None;
            }
            self.complete_level(target);
            let limit = Limit { steps: Some(self.options.steps), stop: Some(&stop) };
            let formulas = self.formulas(target);
            self.counts.questions += 1;
            match self.encoding.clauses.ask(&formulas, &limit) {
                Ok(model) => {
                    self.counts.satisfiable += 1;
                    let tree = &self.encoding.tree;
                    let next = |node: NodeId| {
                        let (at, steps) = step_of(tree, node);
                        (tree[at].thread, steps)
                    };
                    let goes_on = match target {
                        Target::Reached(node) | Target::Livelock(node) => vec![(tree[node].thread, 0)],
                        Target::Stuck(_) => vec![],
                        Target::Meeting(a, b) => vec![next(a), next(b)],
                        Target::Late(access, _) => vec![next(access)],
                    };
                    let plan = schedule::plan(&self.encoding, &model, &goes_on);
                    self.questions.set(target, State::Out);
                    let siblings = self.siblings(target);
                    self.out = Some(Out { plan: plan.clone(), target: Some(target), siblings });
                    return Some(plan);
                }
                Err(Some(core)) => {
                    self.counts.unsatisfiable += 1;
                    self.questions.set(target, State::Impossible(core));
                }
                // The question stays open.
                Err(None) if stop() => return None,
                Err(None) => {
                    self.counts.unknown += 1;
                    self.exactness.add(Reason::SolverLimit);
                    self.questions.set(target, State::GivenUp);
                }
            }
        }
        None
    }

    /// Notes that everything below the level of the next question has an answer. What was shown stays true as the tree
    /// grows: no execution within those rounds leaves it.
    fn complete_level(&mut self, next: Target) {
        let Encoding { tree, clauses, .. } = &self.encoding;
        let next = level(next.rounds(tree));
        let below = next / 2;
        if next > self.level
            && below > 0
            && self.exactness.is_exact()
            && self.questions.are_settled(below, tree, clauses)
        {
            self.completed = self.completed.max(Some(below));
        }
        self.level = next;
    }

    fn formulas(&self, target: Target) -> Vec<Formula> {
        let Encoding { tree, deadlocks, .. } = &self.encoding;
        match target {
            Target::Reached(node) => vec![Formula::Holds(tree[node].active)],
            Target::Late(access, end) => {
                let ended = Formula::Holds(tree[end].active);
                self.stands_before(access).into_iter().chain([ended]).collect()
            }
            Target::Stuck(node) => deadlocks.deadlock(node),
            Target::Livelock(node) => deadlocks.livelock(tree, node),
            Target::Meeting(a, b) => [self.stands_before(a), self.stands_before(b)].concat(),
        }
    }

    /// What must hold for the thread of an access to be about to do it.
    fn stands_before(&self, node: NodeId) -> Vec<Formula> {
        let tree = &self.encoding.tree;
        let (step, _) = step_of(tree, node);
        let within = std::iter::successors(Some(node), |&node| tree[node].parent.filter(|_| node != step));
        let decided = within.filter_map(|node| decides(&self.encoding, node));
        let before = tree[step].parent.unwrap_or(step);
        let goes_on = tree.next_of(before).map(|child| Formula::Holds(tree[child].active).not());
        decided.chain(goes_on).chain([Formula::Holds(tree[before].active)]).collect()
    }

    /// How many siblings the target of a question has.
    fn siblings(&self, target: Target) -> usize {
        let tree = &self.encoding.tree;
        tree[target.node()].parent.map_or(0, |parent| tree[parent].children.len())
    }

    /// Takes back a plan that is out, with the trace of its execution and how that ended.
    ///
    /// # Panics
    /// If the plan is not out.
    pub fn done(&mut self, plan: &Plan, trace: &SymbolicTrace, end: &End) {
        let Out { mut target, siblings, .. } = self.take(plan);
        self.counts.executions += 1;
        match self.outdates(trace) {
            Outdated::Both => return self.restart(Some(Plan::new(Policy::Default))),
            Outdated::Earlier => {
                self.restart(None);
                target = None;
            }
            Outdated::None => {}
        }
        let new = self.learn(trace, end);
        if let Some(target) = target {
            self.settle(target, siblings, new, (trace, end));
        }
    }

    /// Puts an execution into the tree. Returns whether it has shown something new.
    fn learn(&mut self, trace: &SymbolicTrace, end: &End) -> bool {
        self.questions.learnt();
        let Causal { encoding, exactness, options, bounds, .. } = self;
        let inserted = insert(encoding, exactness, options.rounds, bounds, (trace, end));
        let Inserted { new, open, stuck, loops, bounded, full } = inserted;
        self.bounded |= bounded;
        for node in open {
            self.questions.add(Target::Reached(node));
        }
        if self.options.deadlocks {
            for place in self.encoding.deadlocks.places() {
                self.questions.add(Target::Stuck(place));
            }
            for place in loops {
                let Encoding { tree, clauses, deadlocks, .. } = &mut self.encoding;
                deadlocks.loops(clauses, tree, place);
                self.questions.add(Target::Livelock(place));
            }
        }
        let mut new = new > 0;
        for &place in &stuck {
            new |= self.questions.show(Target::Stuck(place));
        }
        for (end, access) in self.encoding.ends.pairs.drain(..) {
            self.questions.add(Target::Late(access, end));
        }
        if let Some(conflicts) = &mut self.encoding.memory.conflicts {
            self.atomics.extend(&trace.atomics);
            let tree = &self.encoding.tree;
            let is_race = |a: u64, b: u64| !(self.atomics.contains(&a) && self.atomics.contains(&b));
            for (a, b) in conflicts.drain(..).filter(|(a, b)| is_race(tree[*a].pc, tree[*b].pc)) {
                self.questions.add(Target::Meeting(a.min(b), a.max(b)));
            }
            for (a, b) in meetings(trace) {
                let is_new = self.met.insert((a, b));
                self.races += u32::from(is_new && is_race(a, b));
                new |= is_new;
            }
        }
        self.note_failure(trace, end);
        if full {
            self.questions.give_up();
        }
        new
    }

    /// From now on the search stops working when this says so. Then [`next_plan`](Causal::next_plan) may return `None`
    /// although the search has not ended.
    pub fn heed(&mut self, stop: Stop) {
        self.bounds.stop = Some(stop);
    }

    /// The constraints of the search may take about so many bytes. A search that needs more ends, and is not exact.
    pub fn bound_memory(&mut self, bytes: usize) {
        self.bounds.bytes = bytes;
    }

    /// Takes the execution of a plan that this search has not handed out, for example one of an earlier search that was
    /// saved.
    pub fn absorb(&mut self, trace: &SymbolicTrace, end: &End) {
        self.again = None;
        self.counts.executions += 1;
        match self.outdates(trace) {
            Outdated::Both => return self.restart(Some(Plan::new(Policy::Default))),
            Outdated::Earlier => self.restart(None),
            Outdated::None => {}
        }
        self.learn(trace, end);
    }

    /// Which traces lack events, as this one shows.
    fn outdates(&mut self, trace: &SymbolicTrace) -> Outdated {
        let grown = trace.shared > self.shared;
        self.shared = self.shared.max(trace.shared);
        match (trace.losses.incomplete, grown && !self.is_new()) {
            (false, false) => Outdated::None,
            _ if self.restarts >= MOST_RESTARTS => {
                self.exactness.add(Reason::Incomplete);
                Outdated::None
            }
            (true, _) => Outdated::Both,
            (false, true) => Outdated::Earlier,
        }
    }

    /// Whether no execution is in the tree.
    fn is_new(&self) -> bool {
        self.encoding.tree.nodes.len() == 1
    }

    /// Whether this search has handed out the plan, and not taken it back.
    pub fn is_out(&self, plan: &Plan) -> bool {
        self.out.as_ref().is_some_and(|out| out.plan == *plan)
    }

    fn take(&mut self, plan: &Plan) -> Out {
        self.out.take_if(|out| out.plan == *plan).expect("a plan was given back that is not out")
    }

    /// Takes back a plan that is out and was not run to its end. It is handed out again.
    ///
    /// # Panics
    /// If the plan is not out.
    pub fn give_back_unrun(&mut self, plan: &Plan) {
        match self.take(plan).target {
            Some(target) => self.questions.set(target, State::Open),
            None => self.again = Some(plan.clone()),
        }
    }

    /// Takes an execution without a symbolic trace, whose plan this search has not handed out.
    pub fn absorb_without_trace(&mut self) {
        self.again = None;
        self.counts.executions += 1;
        self.exactness.add(Reason::NoTrace);
    }

    /// Takes back a plan whose execution has no symbolic trace. Nothing is learnt from it, and nothing is proven.
    ///
    /// # Panics
    /// If the plan is not out.
    pub fn done_without_trace(&mut self, plan: &Plan) {
        let Out { target, .. } = self.take(plan);
        self.counts.executions += 1;
        self.exactness.add(Reason::NoTrace);
        if let Some(target) = target {
            self.questions.set(target, State::GivenUp);
        }
    }

    /// Earlier traces lack events of memory that was not known to be shared, so they count for nothing. The search goes on
    /// with this plan.
    fn restart(&mut self, plan: Option<Plan>) {
        self.restarts += 1;
        self.encoding = encoding(&self.options);
        self.questions = Questions::default();
        self.exactness = Exactness::default();
        self.bounded = false;
        (self.level, self.completed) = (0, None);
        if let Some(out) = &mut self.out {
            out.target = None;
        }
        self.again = plan;
    }

    /// Whether an execution was made to stay in the loop at this place in the code. One is enough: others only differ in
    /// what came before.
    fn has_looped(&self, target: Target) -> bool {
        matches!(target, Target::Livelock(node) if self.looped.contains(&self.encoding.tree[node].pc))
    }

    /// Whether the execution has shown what its plan was made for.
    fn settle(&mut self, target: Target, siblings: usize, new: bool, (trace, end): (&SymbolicTrace, &End)) {
        let node = target.node();
        let (pc, seen) = (self.encoding.tree[node].pc, self.encoding.tree[node].seen);
        match (&self.encoding.tree[node].key, target) {
            // How the execution ends says whether it is a livelock.
            (_, Target::Livelock(_)) => {
                self.looped.insert(pc);
                self.questions.set(target, State::Shown);
                return;
            }
            // There are always more values.
            (Key::Pin { .. }, Target::Reached(_))
                if self.encoding.tree[node].outcome == Outcome::Other && self.siblings(target) > siblings =>
            {
                self.questions.set(target, State::Open);
                return;
            }
            // The process ends there; a shift goes on, with a value that nothing defines.
            (Key::Defined { .. }, Target::Reached(_)) if !seen && !matches!(end, End::Signal(_)) => {
                self.exactness.add(Reason::Undefined { pc });
            }
            (_, Target::Reached(_)) if seen => {
                self.questions.set(target, State::Shown);
                return;
            }
            (_, Target::Stuck(_)) if self.questions.is_shown(target) => return,
            // The access has failed.
            (_, Target::Late(..)) if matches!(end, End::Signal(_)) => {
                self.questions.set(target, State::Shown);
                return;
            }
            (_, Target::Meeting(a, b))
                if self.have_met(target)
                    || ended_at(trace, [a, b].map(|node| self.encoding.tree[node].pc)) =>
            {
                self.questions.set(target, State::Shown);
                return;
            }
            _ => {}
        }
        if new {
            // What was learnt, such as an initial value, may lead to another solution.
            self.questions.set(target, State::Open);
            return;
        }
        self.counts.diverged += 1;
        self.exactness.add(Reason::Diverged { pc });
        self.questions.set(target, State::GivenUp);
    }

    /// Whether an execution has done the accesses of these places one right after the other, or enough others.
    fn have_met(&self, target: Target) -> bool {
        let Target::Meeting(a, b) = target else { return false };
        let places = [a, b].map(|node| self.encoding.tree[node].pc);
        self.races >= self.options.meetings
            || self.met.contains(&(places[0].min(places[1]), places[0].max(places[1])))
    }

    /// Remembers after which branch an execution failed.
    fn note_failure(&mut self, trace: &SymbolicTrace, end: &End) {
        if matches!(end, End::Exit(0) | End::Deadlock | End::StepLimit | End::Stuck) {
            return;
        }
        let last = trace.events.last().map(|event| event.pc);
        let tree = &self.encoding.tree;
        let ended = (0..tree.nodes.len())
            .rev()
            .map(NodeId)
            .find(|&node| tree[node].ends && Some(tree[node].pc) == last);
        if let Some((pc, outcome)) = ended.and_then(|node| branch_before(tree, node)) {
            self.questions.failed_after(pc, outcome);
        }
    }

    /// The state of the search.
    pub fn status(&self) -> Status {
        let Counts { questions, satisfiable, unsatisfiable, unknown, executions, diverged } = self.counts;
        Status {
            questions,
            satisfiable,
            unsatisfiable,
            unknown,
            executions,
            diverged,
            edges: self.encoding.tree.nodes.iter().filter(|node| node.seen).count(),
            open: self.questions.unsettled(&self.encoding.clauses),
            is_out: self.out.is_some(),
            bounded: self.bounded,
            completed: self.completed.filter(|_| !self.exactness.is_doubtful()),
            exactness: self.exactness.clone(),
        }
    }
}
