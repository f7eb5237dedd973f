//! Random small problems, and all their solutions by brute force.

use heisen_solver::{Event, Formula, Model, Op, Solver, Term, Write};
use proptest::prelude::Rng;
use proptest::test_runner::TestRng;

/// A problem of a few events and unknowns of two bits.
pub struct Problem {
    pub solver: Solver,
    pub events: Vec<Event>,
    pub unknowns: Vec<Term>,
    pub fixed: Vec<(Event, Event)>,
    /// Reads: when, whether, the value, and the writes that it may see.
    pub reads: Vec<(Event, Formula, Term, Vec<Write>)>,
}

pub fn below(random: &mut TestRng, limit: usize) -> usize {
    (random.next_u64() % limit as u64) as usize
}

impl Problem {
    pub fn random(random: &mut TestRng) -> Problem {
        let mut solver = Solver::new();
        let events: Vec<Event> = (0..1 + below(random, 4)).map(|_| solver.event()).collect();
        let unknowns: Vec<Term> = (0..1 + below(random, 2)).map(|_| solver.terms.unknown(2)).collect();
        let mut fixed = Vec::new();
        for _ in 0..below(random, 3) {
            let pair = (events[below(random, events.len())], events[below(random, events.len())]);
            solver.precedes(pair.0, pair.1);
            fixed.push(pair);
        }
        if below(random, 2) == 0 {
            solver.prefer(events[0], events[events.len() - 1]);
        }
        Problem { solver, events, unknowns, fixed, reads: Vec::new() }
    }

    fn term(&mut self, random: &mut TestRng, depth: usize) -> Term {
        match below(random, if depth == 0 { 2 } else { 5 }) {
            0 => self.unknowns[below(random, self.unknowns.len())],
            1 => self.solver.terms.constant(2, below(random, 4) as u128),
            2 => {
                let test = self.test(random, depth - 1);
                let operands = [test, self.term(random, depth - 1), self.term(random, depth - 1)];
                self.solver.terms.apply(Op::Select, &operands)
            }
            _ => {
                const OPS: [Op; 9] =
                    [Op::Add, Op::Sub, Op::Mul, Op::UDiv, Op::SRem, Op::Shl, Op::AShr, Op::Xor, Op::And];
                let operands = [self.term(random, depth - 1), self.term(random, depth - 1)];
                self.solver.terms.apply(OPS[below(random, OPS.len())], &operands)
            }
        }
    }

    /// A term of one bit.
    pub fn test(&mut self, random: &mut TestRng, depth: usize) -> Term {
        const TESTS: [Op; 4] = [Op::Eq, Op::Ult, Op::Sle, Op::SAddOverflow];
        let operands = [self.term(random, depth), self.term(random, depth)];
        self.solver.terms.apply(TESTS[below(random, TESTS.len())], &operands)
    }

    /// Adds an event after or before others, and perhaps a read of what others write.
    pub fn grow(&mut self, random: &mut TestRng) {
        let event = self.solver.event();
        self.events.push(event);
        if below(random, 2) == 0 {
            let other = self.events[below(random, self.events.len() - 1)];
            self.solver.precedes(other, event);
            self.fixed.push((other, event));
        }
        if self.unknowns.len() < 3 && below(random, 2) == 0 {
            let unknown = self.solver.terms.unknown(2);
            self.solver.prefer_value(unknown, below(random, 4) as u128);
            self.unknowns.push(unknown);
        }
    }

    /// Adds a read of memory that some of the events write.
    pub fn read(&mut self, random: &mut TestRng) {
        let read = self.events[below(random, self.events.len())];
        let mut writes: Vec<Write> = Vec::new();
        for at in 0..self.events.len() {
            let event = self.events[at];
            if event != read && below(random, 3) > 0 {
                let guard = self.guard(random);
                writes.push(Write { event: Some(event), guard, value: self.term(random, 1) });
            }
        }
        if writes.is_empty() || below(random, 4) > 0 {
            let value = self.solver.terms.constant(2, below(random, 4) as u128);
            writes.push(Write { event: None, guard: Formula::All(Vec::new()), value });
        }
        let guard = self.guard(random);
        let value = self.unknowns[below(random, self.unknowns.len())];
        self.solver.set_eager(if below(random, 2) == 0 { 0 } else { 12 });
        self.solver.read(read, &guard, value, &writes);
        self.reads.push((read, guard, value, writes));
    }

    fn guard(&mut self, random: &mut TestRng) -> Formula {
        match below(random, 2) {
            0 => Formula::All(Vec::new()),
            _ => Formula::Holds(self.test(random, 1)),
        }
    }

    pub fn formula(&mut self, random: &mut TestRng, depth: usize) -> Formula {
        let event =
            |problem: &Problem, random: &mut TestRng| problem.events[below(random, problem.events.len())];
        let list = |problem: &mut Problem, random: &mut TestRng| -> Vec<Formula> {
            (0..below(random, 4)).map(|_| problem.formula(random, depth - 1)).collect()
        };
        match below(random, if depth == 0 { 2 } else { 6 }) {
            0 => Formula::Before(event(self, random), event(self, random)),
            1 => Formula::Holds(self.test(random, 2)),
            2 => self.formula(random, depth - 1).not(),
            3 => Formula::All(list(self, random)),
            4 => Formula::Any(list(self, random)),
            _ => {
                let formulas = list(self, random);
                Formula::Exactly(below(random, formulas.len() + 2), formulas)
            }
        }
    }

    /// Whether these formulas have a solution, by trying all orders and values.
    pub fn has_solution(&self, formulas: &[&Formula]) -> bool {
        let mut order = self.events.clone();
        let mut found = false;
        permutations(&mut order, 0, &mut |order| {
            for values in 0..if found { 0 } else { 1 } * 4_u128.pow(self.unknowns.len() as u32) {
                let value = |term: Term| {
                    let at = self.unknowns.iter().position(|unknown| *unknown == term).expect("an unknown");
                    values >> (2 * at) & 3
                };
                found |= self.holds(formulas, order, &value);
            }
        });
        found
    }

    /// Whether formulas hold for an order and values.
    fn holds(&self, formulas: &[&Formula], order: &[Event], value: &dyn Fn(Term) -> u128) -> bool {
        let position = |event| order.iter().position(|other| *other == event);
        let before = |first, second| position(first) < position(second);
        let bit = |term| self.solver.terms.evaluate(term, value).map(|value| value == 1);
        self.fixed.iter().all(|&(first, second)| before(first, second))
            && formulas.iter().all(|formula| formula.evaluate(&before, &bit))
            && self.reads.iter().all(|(read, guard, result, writes)| {
                // A guard without a value says neither that the read happens nor that it does not.
                let is_absent = |guard: &Formula| guard.clone().not().evaluate(&before, &bit);
                let earlier = |write: &&Write| write.event.is_none_or(|event| before(event, *read));
                let happening = |write: &&Write| !is_absent(&write.guard);
                let last = writes.iter().filter(earlier).filter(happening);
                let last = last.max_by_key(|write| write.event.map(position));
                is_absent(guard)
                    || last.is_some_and(|write| {
                        let written = self.solver.terms.evaluate(write.value, value);
                        write.guard.evaluate(&before, &bit) && written == Some(value(*result))
                    })
            })
    }

    /// Whether a model is a solution.
    pub fn is_solution(&self, formulas: &[&Formula], model: &Model) -> bool {
        model.order().len() == self.events.len()
            && self.holds(formulas, model.order(), &|unknown| model.value(unknown))
    }
}

fn permutations(order: &mut [Event], from: usize, with: &mut dyn FnMut(&[Event])) {
    if from == order.len() {
        return with(order);
    }
    for at in from..order.len() {
        order.swap(from, at);
        permutations(order, from + 1, with);
        order.swap(from, at);
    }
}
