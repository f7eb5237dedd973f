//! The solver: asks whether an order of events and values of unknowns exist for which all formulas hold.
//!
//! Order literals are one-sided: one that is true puts its events in order, one that is false says nothing. So a formula is
//! brought into a form in which events are compared only positively, and each part is only implied by what contains it
//! (Plaisted and Greenbaum, 1986). Values are circuits (`blast`); orders are a theory (`order`).

use crate::blast::Blaster;
use crate::formula::Formula;
use crate::order::{Event, Orders};
use crate::term::{Term, Terms};
use batsat::{BasicSolver, Lit, SolverInterface, lbool};
use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;

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
    values: HashMap<Term, u128>,
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
#[derive(Clone, Copy, Debug, Default)]
pub struct Limit {
    /// How many steps the search may take: conflicts and decisions. The same questions always take the same number.
    pub steps: Option<u64>,
    /// Asked now and then: whether to give up.
    pub stop: Option<fn() -> bool>,
}

/// A set of formulas, and the questions asked about it.
pub struct Solver {
    /// The terms of the formulas.
    pub terms: Terms,
    sat: BasicSolver,
    blaster: Blaster,
    orders: Orders,
    before: HashMap<(Event, Event), Lit>,
    /// For each [`Solver::push`]: the literal that its formulas depend on.
    levels: Vec<Lit>,
    /// Whether the edges that are always there have no cycle.
    consistent: bool,
    give_up: Rc<GiveUp>,
}

/// Ends the search without an answer.
#[derive(Debug, Default)]
struct GiveUp {
    limit: Cell<Limit>,
    steps: Cell<u64>,
    /// Once the search was told to end, each further question must have the same answer.
    ended: Cell<bool>,
}

impl GiveUp {
    fn begin(&self, limit: &Limit) {
        self.limit.set(*limit);
        self.steps.set(0);
        self.ended.set(false);
    }

    /// Called at each step of the search.
    fn now(&self) -> bool {
        /// A clock takes longer than a step.
        const OFTEN: u64 = 16;
        let steps = self.steps.get() + 1;
        self.steps.set(steps);
        let limit = self.limit.get();
        let ends = limit.steps.is_some_and(|most| steps > most)
            || steps.is_multiple_of(OFTEN) && limit.stop.is_some_and(|stop| stop());
        self.ended.set(self.ended.get() || ends);
        self.ended.get()
    }
}

impl std::fmt::Debug for Solver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (variables, clauses) = (self.sat.num_vars(), self.sat.num_clauses());
        f.debug_struct("Solver")
            .field("events", &self.orders.count())
            .field("variables", &variables)
            .field("clauses", &clauses)
            .finish_non_exhaustive()
    }
}

impl Default for Solver {
    fn default() -> Solver {
        Solver::new()
    }
}

impl Solver {
    /// Creates a solver without formulas.
    pub fn new() -> Solver {
        let give_up = Rc::new(GiveUp::default());
        let mut sat = BasicSolver::default();
        let shared = give_up.clone();
        sat.cb_mut().set_stop(move || shared.now());
        Solver {
            terms: Terms::new(),
            sat,
            blaster: Blaster::default(),
            orders: Orders::default(),
            before: HashMap::new(),
            levels: Vec::new(),
            consistent: true,
            give_up,
        }
    }

    /// Adds an event.
    pub fn event(&mut self) -> Event {
        self.orders.event()
    }

    /// Puts an event before another for good, whatever is pushed and popped. This is cheaper than a formula.
    pub fn precedes(&mut self, first: Event, second: Event) {
        self.consistent &= self.orders.fix(first, second);
    }

    /// Suggests an order. The search tries it first.
    pub fn prefer(&mut self, first: Event, second: Event) {
        for (events, value) in [((first, second), lbool::TRUE), ((second, first), lbool::FALSE)] {
            self.order_literal(events.0, events.1, value);
        }
    }

    /// From now on the formula holds, until the matching [`Solver::pop`].
    pub fn assert(&mut self, formula: &Formula) {
        let lit = self.implied(formula, true);
        let mut clause = vec![lit];
        clause.extend(self.levels.last().map(|&level| !level));
        self.sat.add_clause_reuse(&mut clause);
    }

    /// Begins a level: what is asserted in it ends with it.
    pub fn push(&mut self) {
        let level = self.blaster.circuit.fresh(&mut self.sat);
        self.levels.push(level);
    }

    /// Ends the last level.
    ///
    /// # Panics
    /// If no level has begun.
    pub fn pop(&mut self) {
        let level = self.levels.pop().expect("a level that push has begun");
        self.sat.add_clause_reuse(&mut vec![!level]);
    }

    /// Asks for a solution in which these formulas hold, too.
    pub fn check(&mut self, assumptions: &[Formula], limit: &Limit) -> Answer {
        if !self.consistent {
            return Answer::No(Vec::new());
        }
        let assumed: Vec<Lit> = assumptions.iter().map(|formula| self.implied(formula, true)).collect();
        let all: Vec<Lit> = self.levels.iter().chain(&assumed).copied().collect();
        self.give_up.begin(limit);
        let answer = self.sat.solve_limited_th(&mut self.orders, &all);
        if answer == lbool::TRUE {
            return Answer::Yes(self.model());
        }
        if answer != lbool::FALSE {
            return Answer::Unknown;
        }
        // The core is a clause, so it has the negations.
        let core = |(_, lit): &(usize, &Lit)| self.sat.unsat_core_contains_lit(!**lit);
        Answer::No(assumed.iter().enumerate().filter(core).map(|(index, _)| index).collect())
    }

    fn model(&self) -> Model {
        let order = self.orders.model();
        let mut position = vec![0; order.len()];
        for (at, event) in order.iter().enumerate() {
            position[event.0 as usize] = at as u32;
        }
        let mut values = HashMap::new();
        for term in self.terms.unknowns() {
            let Some(built) = self.blaster.built(term) else { continue };
            let bit = |(at, bit): (usize, &Lit)| u128::from(self.sat.value_lit(*bit) == lbool::TRUE) << at;
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
                    false => self.order_literal(*first, *second, lbool::UNDEF),
                }
            }
            Formula::Holds(term) => self.blaster.holds(&mut self.sat, &self.terms, *term, positive),
            Formula::All(formulas) | Formula::Any(formulas) => {
                let parts: Vec<Lit> =
                    formulas.iter().map(|formula| self.implied(formula, positive)).collect();
                match matches!(formula, Formula::All(_)) == positive {
                    true => self.conjunction(&parts),
                    false => self.disjunction(parts),
                }
            }
            Formula::Exactly(count, formulas) => {
                let (asked, counted) = self.counted(*count, formulas);
                self.conjunction(&[asked, if positive { counted } else { !counted }])
            }
        }
    }

    fn conjunction(&mut self, parts: &[Lit]) -> Lit {
        if let [only] = parts {
            return *only;
        }
        let out = self.blaster.circuit.fresh(&mut self.sat);
        for &part in parts {
            self.sat.add_clause_reuse(&mut vec![!out, part]);
        }
        out
    }

    fn disjunction(&mut self, mut parts: Vec<Lit>) -> Lit {
        if let [only] = parts[..] {
            return only;
        }
        let out = self.blaster.circuit.fresh(&mut self.sat);
        parts.push(!out);
        self.sat.add_clause_reuse(&mut parts);
        out
    }

    /// Whether exactly this many of the formulas hold. The first literal must be true, or the second one means nothing:
    /// each formula holds or its negation does, which is more than nothing where a term has no value. `at[n]` says that
    /// n formulas so far hold.
    fn counted(&mut self, count: usize, formulas: &[Formula]) -> (Lit, Lit) {
        let asked = self.blaster.circuit.fresh(&mut self.sat);
        let mut at = vec![self.blaster.circuit.constant(&mut self.sat, true)];
        for formula in formulas {
            let one = self.blaster.circuit.fresh(&mut self.sat);
            for positive in [true, false] {
                let side = self.implied(formula, positive);
                self.sat.add_clause_reuse(&mut vec![!asked, if positive { !one } else { one }, side]);
            }
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

    /// The literal that puts one event before another. `preferred` is the value that the search tries first, if the
    /// literal is new.
    fn order_literal(&mut self, first: Event, second: Event, preferred: lbool) -> Lit {
        if let Some(&lit) = self.before.get(&(first, second)) {
            return lit;
        }
        let var = self.sat.new_var(preferred, true);
        self.orders.declare(var, first, second);
        let lit = Lit::new(var, true);
        self.before.insert((first, second), lit);
        lit
    }
}
