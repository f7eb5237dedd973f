//! The solver: asks whether an order of events and values of unknowns exist for which all formulas hold.
//!
//! A pair of events has one variable, which is true in one order and false in the other. Each part of a formula is only
//! implied by what contains it (Plaisted and Greenbaum, 1986). Values are circuits (`blast`); orders are a theory
//! (`order`). What a read implies is added when a solution violates it (`reads`).
//!
//! All first values together are the recorded run: events in the order in which they were added, and the values given by
//! [`Solver::prefer_value`], from which those of all gates and formulas follow when these are built.

use crate::blast::{Blaster, Built};
use crate::formula::Formula;
use crate::order::{Event, Orders};
use crate::reads::{Choice, Read, Write};
use crate::sat::{Lit, Outcome, Sat, Statistics, Var};
use crate::term::{Term, Terms};
use std::collections::{BTreeMap, HashMap};

/// The answer to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// There is a solution.
    Yes(Model),
    /// There is none. The assumptions with these indices, in order, exclude each other together with what was asserted.
    No(Vec<usize>),
    /// The limit was reached.
    Unknown,
}

/// A solution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    order: Vec<Event>,
    position: Vec<u32>,
    values: BTreeMap<Term, u128>,
}

impl Model {
    /// All events, in order.
    pub fn order(&self) -> &[Event] {
        &self.order
    }

    /// Whether one event comes before another.
    pub fn before(&self, first: Event, second: Event) -> bool {
        self.position[first.0 as usize] < self.position[second.0 as usize]
    }

    /// The value of an unknown; 0 if no formula says anything of it.
    pub fn value(&self, unknown: Term) -> u128 {
        self.values.get(&unknown).copied().unwrap_or(0)
    }
}

/// How long the solver may search for one answer.
#[derive(Clone, Copy, Default)]
pub struct Limit<'a> {
    /// How many steps the search may take: conflicts and decisions. The same questions always take the same number.
    pub steps: Option<u64>,
    /// Asked now and then: whether to give up.
    pub stop: Option<&'a dyn Fn() -> bool>,
}

impl std::fmt::Debug for Limit<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Limit").field("steps", &self.steps).finish_non_exhaustive()
    }
}

/// A set of formulas, and the questions asked about it.
pub struct Solver {
    /// The terms of the formulas.
    pub terms: Terms,
    sat: Sat,
    blaster: Blaster,
    orders: Orders,
    /// By two events, the older one first: the variable that is true in this order.
    before: HashMap<(Event, Event), Var>,
    /// For each [`Solver::push`]: the literal that its formulas depend on, and how many reads there were.
    levels: Vec<(Lit, usize)>,
    /// By two terms, the older one first: the unknown of [`Solver::same`].
    same: HashMap<(Term, Term), Term>,
    reads: Vec<Read>,
    eager: usize,
    /// Whether the edges that are always there have no cycle.
    consistent: bool,
}

/// Counts the steps of one search, and ends it.
struct Steps<'a> {
    limit: Limit<'a>,
    taken: u64,
    /// Once the search was told to end, each further question must have the same answer.
    ended: bool,
}

impl Steps<'_> {
    /// Called at each step of the search: whether to give up.
    fn next(&mut self) -> bool {
        /// A clock takes longer than a step.
        const OFTEN: u64 = 16;
        self.taken += 1;
        self.ended |= self.limit.steps.is_some_and(|most| self.taken > most)
            || self.taken.is_multiple_of(OFTEN) && self.limit.stop.is_some_and(|stop| stop());
        self.ended
    }
}

impl std::fmt::Debug for Solver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (variables, clauses) = self.sat.size();
        f.debug_struct("Solver")
            .field("events", &self.orders.count())
            .field("variables", &variables)
            .field("clauses", &clauses)
            .finish_non_exhaustive()
    }
}

/// What [`Solver::set_eager`] begins with: formulas of reads with so few writes are shorter than the search for violations.
const EAGER: usize = 12;

impl Default for Solver {
    fn default() -> Solver {
        Solver::new()
    }
}

impl Solver {
    /// Creates a solver without formulas.
    pub fn new() -> Solver {
        Solver {
            terms: Terms::new(),
            sat: Sat::new(),
            blaster: Blaster::default(),
            orders: Orders::default(),
            before: HashMap::new(),
            levels: Vec::new(),
            same: HashMap::new(),
            reads: Vec::new(),
            eager: EAGER,
            consistent: true,
        }
    }

    /// What the searches for all answers did so far.
    pub fn statistics(&self) -> Statistics {
        self.sat.statistics
    }

    /// About how many bytes of memory its formulas take.
    pub fn bytes(&self) -> usize {
        self.sat.bytes()
    }

    /// Adds an event. If no formula decides on the order of two events, the search tries the order in which they were
    /// added first: add events in the order of the recorded run.
    pub fn event(&mut self) -> Event {
        self.orders.event()
    }

    /// Puts an event before another for good, whatever is pushed and popped. This is cheaper than a formula.
    pub fn precedes(&mut self, first: Event, second: Event) {
        self.sat.take_back(&mut self.orders);
        self.consistent &= self.orders.fix(first, second);
    }

    /// Suggests an order other than that in which the events were added. The search tries it first.
    pub fn prefer(&mut self, first: Event, second: Event) {
        if first != second {
            let lit = self.order_literal(first, second);
            self.sat.set_phase(lit.var(), lit.sign());
        }
    }

    /// Suggests a value for an unknown. The search tries it first. What is computed from the unknown is tried with the
    /// values that follow from the suggestion at the time when a formula first uses it. Suggest the values of the recorded
    /// run before formulas use the unknowns; a suggestion after that changes only the unknown itself.
    pub fn prefer_value(&mut self, unknown: Term, value: u128) {
        self.blaster.build(&mut self.sat, &self.terms, unknown);
        let Some(built) = self.blaster.built(unknown) else { unreachable!("built") };
        for (at, bit) in built.bits.iter().enumerate() {
            self.sat.set_phase(bit.var(), (value >> at & 1 == 1) == bit.sign());
        }
    }

    /// From now on the formula holds, until the matching [`Solver::pop`].
    pub fn assert(&mut self, formula: &Formula) {
        let mut clause = match formula {
            Formula::Any(formulas) => formulas.iter().map(|formula| self.implied(formula, true)).collect(),
            formula => vec![self.implied(formula, true)],
        };
        clause.extend(self.levels.last().map(|&(level, _)| !level));
        self.sat.add(&clause);
    }

    /// A formula from which follows that two terms have values, and the same. Its negation says nothing. This is cheaper
    /// than the circuit of a comparison, which decides whether they are equal.
    ///
    /// # Panics
    /// If the terms have different widths.
    pub fn same(&mut self, first: Term, second: Term) -> Formula {
        assert_eq!(self.terms.width(first), self.terms.width(second), "values of one width");
        let pair = (first.min(second), first.max(second));
        if let Some(&known) = self.same.get(&pair) {
            return Formula::Holds(known);
        }
        let same = self.terms.unknown(1);
        for term in [first, second, same] {
            self.blaster.build(&mut self.sat, &self.terms, term);
        }
        let [a, b, same_built] = [first, second, same].map(|term| self.blaster.built(term).cloned());
        let (Some(a), Some(b), Some(same_built)) = (a, b, same_built) else { unreachable!("built") };
        let lit = same_built.bits[0];
        let phases = a.bits.iter().zip(&b.bits).all(|(&a, &b)| self.sat.phase(a) == self.sat.phase(b));
        self.sat.set_phase(lit.var(), phases == lit.sign());
        self.imply_equal(lit, &a, &b);
        self.same.insert(pair, same);
        Formula::Holds(same)
    }

    /// If the literal is true, both have values, and the same.
    fn imply_equal(&mut self, lit: Lit, first: &Built, second: &Built) {
        for side in [first, second] {
            self.sat.add(&[!lit, side.proper]);
            self.sat.add(&[!lit, side.defined]);
        }
        for (&a, &b) in first.bits.iter().zip(&second.bits) {
            self.sat.add(&[!lit, !a, b]);
            self.sat.add(&[!lit, a, !b]);
        }
    }

    /// From now on, until the matching [`Solver::pop`]: if the guard holds, the read has the value of the last write before
    /// it. Writes whose guard does not hold do not happen. Some write must be before the read.
    ///
    /// This means the same as a formula over all writes, and is faster: most of the formula is left out until a solution
    /// violates it. Of the writes, the search tries that first which was added last before the read.
    pub fn read(&mut self, event: Event, guard: &Formula, value: Term, writes: &[Write]) {
        self.sat.take_back(&mut self.orders);
        let mut some = vec![self.implied(guard, false)];
        some.extend(self.levels.last().map(|&(level, _)| !level));
        let mut choices = Vec::new();
        let recorded = writes.iter().filter_map(|write| write.event).filter(|&write| write < event).max();
        self.blaster.build(&mut self.sat, &self.terms, value);
        for write in writes {
            let is_later = |write: Event| write == event || self.orders.is_fixed(event, write);
            if write.event.is_some_and(is_later) {
                continue;
            }
            let happens = self.implied(&write.guard, true);
            let absent = self.implied(&write.guard, false);
            if self.sat.fixed(absent) == Some(true) {
                continue;
            }
            let var = self.sat.new_choice(write.event == recorded);
            let seen = Lit::new(var, true);
            self.sat.add(&[!seen, happens]);
            if let Some(write) = write.event.filter(|&write| !self.orders.is_fixed(write, event)) {
                if writes.len() <= self.eager {
                    let before = self.order_literal(write, event);
                    self.sat.add(&[!seen, before]);
                } else {
                    self.sat.set_theory(var);
                    self.orders.declare(var, write, event, true);
                }
            }
            self.blaster.build(&mut self.sat, &self.terms, write.value);
            some.push(seen);
            choices.push(Choice { event: write.event, value: write.value, absent, seen, is_equal: false });
        }
        self.sat.demand(&some);
        let mut read = Read { event, value, choices };
        // The search tries what was recorded, so values must pass from there without a round of refinement.
        if let Some(at) = read.choices.iter().position(|choice| choice.event == recorded) {
            self.equate(&mut read, at);
        }
        if read.choices.len() <= self.eager {
            for at in 0..read.choices.len() {
                self.equate(&mut read, at);
                for other in 0..read.choices.len() {
                    self.separate(&read, at, other);
                }
            }
        }
        self.reads.push(read);
    }

    /// Later reads of at most this many writes have all their consequences added at once. This changes how long answers
    /// take, not whether there is one.
    pub fn set_eager(&mut self, writes: usize) {
        self.eager = writes;
    }

    /// The read has the value of a write if it sees the write.
    fn equate(&mut self, read: &mut Read, at: usize) {
        let choice = &mut read.choices[at];
        choice.is_equal = true;
        let seen = choice.seen;
        let [value, written] = [read.value, choice.value].map(|term| self.blaster.built(term).cloned());
        let (Some(value), Some(written)) = (value, written) else { unreachable!("built with the read") };
        self.imply_equal(seen, &value, &written);
    }

    /// If the read sees a write, another one does not come between.
    fn separate(&mut self, read: &Read, at: usize, other: usize) {
        let (choice, between) = (read.choices[at], read.choices[other]);
        let Some(between_event) = between.event.filter(|_| at != other) else { return };
        let mut clause = vec![!choice.seen, between.absent];
        for (first, second) in [(Some(between_event), choice.event), (Some(read.event), between.event)] {
            let (Some(first), Some(second)) = (first, second) else { continue };
            if self.orders.is_fixed(first, second) {
                return;
            }
            if first != second && !self.orders.is_fixed(second, first) {
                clause.push(self.order_literal(first, second));
            }
        }
        self.sat.add(&clause);
    }

    /// Adds what the last solution violates of the reads. Returns whether it violates anything.
    fn refine(&mut self) -> bool {
        if self.reads.is_empty() {
            return false;
        }
        self.sat.take_back(&mut self.orders);
        let position = positions(self.orders.model());
        let position = |event: Event| position[event.0 as usize];
        let mut reads = std::mem::take(&mut self.reads);
        let mut is_violated = false;
        for read in &mut reads {
            for at in 0..read.choices.len() {
                let choice = read.choices[at];
                if !self.sat.model(choice.seen) {
                    continue;
                }
                if !choice.is_equal && !self.is_equal(read.value, choice.value) {
                    self.equate(read, at);
                    is_violated = true;
                }
                let from = choice.event.map(position);
                for other in 0..read.choices.len() {
                    let between = read.choices[other];
                    let is_between = between.event.is_some_and(|event| {
                        from.is_none_or(|from| from < position(event))
                            && position(event) < position(read.event)
                    });
                    if is_between && !self.sat.model(between.absent) {
                        self.separate(read, at, other);
                        is_violated = true;
                    }
                }
            }
        }
        self.reads = reads;
        is_violated
    }

    /// Whether two terms have the same value in the last solution.
    fn is_equal(&self, a: Term, b: Term) -> bool {
        let (Some(a), Some(b)) = (self.blaster.built(a), self.blaster.built(b)) else { return false };
        let is_sound = [a.proper, a.defined, b.proper, b.defined].iter().all(|&lit| self.sat.model(lit));
        is_sound && a.bits.iter().zip(&b.bits).all(|(&a, &b)| self.sat.model(a) == self.sat.model(b))
    }

    /// Begins a level: what is asserted in it ends with it.
    pub fn push(&mut self) {
        let level = self.blaster.circuit.fresh(&mut self.sat, false);
        self.levels.push((level, self.reads.len()));
    }

    /// Ends the last level.
    ///
    /// # Panics
    /// If no level has begun.
    pub fn pop(&mut self) {
        let (level, reads) = self.levels.pop().expect("a level that push has begun");
        for choice in self.reads.drain(reads..).flat_map(|read| read.choices) {
            self.sat.set_phase(choice.seen.var(), !choice.seen.sign());
        }
        self.sat.add(&[!level]);
    }

    /// Asks for a solution in which these formulas hold, too.
    pub fn check(&mut self, assumptions: &[Formula], limit: &Limit<'_>) -> Answer {
        if !self.consistent {
            return Answer::No(Vec::new());
        }
        let assumed: Vec<Lit> = assumptions.iter().map(|formula| self.implied(formula, true)).collect();
        let all: Vec<Lit> =
            self.levels.iter().map(|(level, _)| *level).chain(assumed.iter().copied()).collect();
        self.sat.reset_phases();
        let mut steps = Steps { limit: *limit, taken: 0, ended: false };
        let outcome = loop {
            for lit in self.orders.take_fixed() {
                self.sat.add(&[lit]);
            }
            let outcome = self.sat.solve(&mut self.orders, &all, &mut || steps.next());
            if outcome != Outcome::Satisfiable || !self.refine() {
                break outcome;
            }
        };
        match outcome {
            Outcome::Satisfiable => Answer::Yes(self.model()),
            Outcome::Stopped => Answer::Unknown,
            Outcome::Unsatisfiable => {
                let core = self.sat.core();
                let indices = assumed.iter().enumerate().filter(|(_, lit)| core.contains(lit));
                Answer::No(indices.map(|(index, _)| index).collect())
            }
        }
    }

    fn model(&self) -> Model {
        let order = self.orders.model().to_vec();
        let position = positions(&order);
        let mut values = BTreeMap::new();
        for term in self.terms.unknowns() {
            let Some(built) = self.blaster.built(term) else { continue };
            let bit = |(at, bit): (usize, &Lit)| u128::from(self.sat.model(*bit)) << at;
            values.insert(term, built.bits.iter().enumerate().map(bit).sum());
        }
        Model { order, position, values }
    }

    /// A literal from which the formula, or its negation, follows.
    fn implied(&mut self, formula: &Formula, positive: bool) -> Lit {
        match formula {
            Formula::Not(formula) => self.implied(formula, !positive),
            Formula::Before(first, second) => {
                let (first, second) = if positive { (first, second) } else { (second, first) };
                match first == second {
                    // An event is not before itself, and not after itself either.
                    true => self.blaster.circuit.constant(&mut self.sat, !positive),
                    false => self.order_literal(*first, *second),
                }
            }
            Formula::Holds(term) => self.blaster.holds(&mut self.sat, &self.terms, *term, positive),
            Formula::All(formulas) | Formula::Any(formulas) => {
                let parts: Vec<Lit> =
                    formulas.iter().map(|formula| self.implied(formula, positive)).collect();
                match matches!(formula, Formula::All(_)) == positive {
                    true => self.conjunction(&parts),
                    false => self.disjunction(&parts),
                }
            }
            Formula::Exactly(count, formulas) => {
                let (asked, counted) = self.counted(*count, formulas);
                self.conjunction(&[asked, if positive { counted } else { !counted }])
            }
        }
    }

    fn conjunction(&mut self, parts: &[Lit]) -> Lit {
        let open: Vec<Lit> =
            parts.iter().copied().filter(|&part| self.sat.fixed(part) != Some(true)).collect();
        match open[..] {
            [] => return self.blaster.circuit.constant(&mut self.sat, true),
            [only] => return only,
            _ if open.iter().any(|&part| self.sat.fixed(part) == Some(false)) => {
                return self.blaster.circuit.constant(&mut self.sat, false);
            }
            _ => {}
        }
        let phase = open.iter().all(|&part| self.sat.phase(part));
        let out = self.blaster.circuit.fresh(&mut self.sat, phase);
        for part in open {
            self.sat.add(&[!out, part]);
        }
        out
    }

    fn disjunction(&mut self, parts: &[Lit]) -> Lit {
        let mut open: Vec<Lit> =
            parts.iter().copied().filter(|&part| self.sat.fixed(part) != Some(false)).collect();
        match open[..] {
            [] => return self.blaster.circuit.constant(&mut self.sat, false),
            [only] => return only,
            _ if open.iter().any(|&part| self.sat.fixed(part) == Some(true)) => {
                return self.blaster.circuit.constant(&mut self.sat, true);
            }
            _ => {}
        }
        let phase = open.iter().any(|&part| self.sat.phase(part));
        let out = self.blaster.circuit.fresh(&mut self.sat, phase);
        open.push(!out);
        self.sat.add(&open);
        out
    }

    /// Whether exactly this many of the formulas hold. The first literal must be true, or the second one means nothing:
    /// each formula holds or its negation does, which is more than nothing where a term has no value. `at[n]` says that
    /// n formulas so far hold.
    fn counted(&mut self, count: usize, formulas: &[Formula]) -> (Lit, Lit) {
        let asked = self.blaster.circuit.fresh(&mut self.sat, false);
        let mut at = vec![self.blaster.circuit.constant(&mut self.sat, true)];
        for formula in formulas {
            let sides = [true, false].map(|positive| self.implied(formula, positive));
            let phase = self.sat.phase(sides[0]);
            let one = self.blaster.circuit.fresh(&mut self.sat, phase);
            self.sat.add(&[!asked, !one, sides[0]]);
            self.sat.add(&[!asked, one, sides[1]]);
            let none = self.blaster.circuit.constant(&mut self.sat, false);
            let more = |at: &[Lit], n: usize| n.checked_sub(1).map_or(none, |before| at[before]);
            let length = (at.len() + 1).min(count + 2);
            at = (0..length)
                .map(|n| {
                    let same = at.get(n).copied().unwrap_or(none);
                    let previous = more(&at, n);
                    self.blaster.circuit.select(&mut self.sat, one, previous, same)
                })
                .collect();
        }
        let never = self.blaster.circuit.constant(&mut self.sat, false);
        (asked, at.get(count).copied().unwrap_or(never))
    }

    /// The literal that puts one event before another one.
    fn order_literal(&mut self, first: Event, second: Event) -> Lit {
        let (older, newer) = (first.min(second), first.max(second));
        let var = *self.before.entry((older, newer)).or_insert_with(|| {
            self.sat.take_back(&mut self.orders);
            let var = self.sat.new_var(true);
            self.sat.set_theory(var);
            self.orders.declare(var, older, newer, false);
            var
        });
        Lit::new(var, first == older)
    }
}

/// By event: its position in an order of all events.
fn positions(order: &[Event]) -> Vec<u32> {
    let mut position = vec![0; order.len()];
    for (at, event) in order.iter().enumerate() {
        position[event.0 as usize] = at as u32;
    }
    position
}
