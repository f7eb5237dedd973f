//! Circuits of gates over the literals of the SAT solver. Equal gates are built once, and gates with known inputs not at
//! all.

use crate::sat::{Lit, Sat};
use std::collections::HashMap;

/// A bit-vector, lowest bit first.
pub type Bits = Vec<Lit>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Gate {
    And(Lit, Lit),
    Xor(Lit, Lit),
    Select(Lit, Lit, Lit),
}

/// Builds gates as clauses of a SAT solver.
#[derive(Default)]
pub struct Circuit {
    /// A literal that is always true, once one is needed.
    truth: Option<Lit>,
    gates: HashMap<Gate, Lit>,
}

impl Circuit {
    /// The literal that is always true or false.
    pub fn constant(&mut self, sat: &mut Sat, value: bool) -> Lit {
        let truth = *self.truth.get_or_insert_with(|| {
            let truth = Lit::new(sat.new_var(true), true);
            sat.add(&[truth]);
            truth
        });
        if value { truth } else { !truth }
    }

    /// The value of a literal, if it is a constant.
    pub fn known(&self, lit: Lit) -> Option<bool> {
        let truth = self.truth?;
        (lit.var() == truth.var()).then_some(lit == truth)
    }

    /// A literal that the solver chooses, with the value to try first.
    pub fn fresh(&mut self, sat: &mut Sat, phase: bool) -> Lit {
        Lit::new(sat.new_var(phase), true)
    }

    fn gate(&mut self, sat: &mut Sat, gate: Gate, clauses: impl FnOnce(Lit) -> Vec<Vec<Lit>>) -> Lit {
        if let Some(&out) = self.gates.get(&gate) {
            return out;
        }
        // Inputs that have the values to try first give the output its own.
        let phase = match gate {
            Gate::And(a, b) => sat.phase(a) && sat.phase(b),
            Gate::Xor(a, b) => sat.phase(a) != sat.phase(b),
            Gate::Select(condition, yes, no) => sat.phase(if sat.phase(condition) { yes } else { no }),
        };
        let out = Lit::new(sat.new_dependent(phase), true);
        for clause in clauses(out) {
            sat.add(&clause);
        }
        self.gates.insert(gate, out);
        out
    }

    /// Whether both are true.
    pub fn and(&mut self, sat: &mut Sat, a: Lit, b: Lit) -> Lit {
        match (self.known(a), self.known(b)) {
            (Some(false), _) | (_, Some(false)) => return self.constant(sat, false),
            (Some(true), _) => return b,
            (_, Some(true)) => return a,
            _ if a == b => return a,
            _ if a == !b => return self.constant(sat, false),
            _ => {}
        }
        let (a, b) = if a < b { (a, b) } else { (b, a) };
        self.gate(sat, Gate::And(a, b), |out| vec![vec![!out, a], vec![!out, b], vec![out, !a, !b]])
    }

    /// Whether one is true.
    pub fn or(&mut self, sat: &mut Sat, a: Lit, b: Lit) -> Lit {
        !self.and(sat, !a, !b)
    }

    /// Whether both differ.
    pub fn xor(&mut self, sat: &mut Sat, a: Lit, b: Lit) -> Lit {
        match (self.known(a), self.known(b)) {
            (Some(value), _) => return if value { !b } else { b },
            (_, Some(value)) => return if value { !a } else { a },
            _ if a == b => return self.constant(sat, false),
            _ if a == !b => return self.constant(sat, true),
            _ => {}
        }
        // The sign of an input only changes the sign of the output.
        let flip = a.sign() != b.sign();
        let (a, b) = (Lit::new(a.var(), true), Lit::new(b.var(), true));
        let (a, b) = if a < b { (a, b) } else { (b, a) };
        let out = self.gate(sat, Gate::Xor(a, b), |out| {
            vec![vec![!out, a, b], vec![!out, !a, !b], vec![out, !a, b], vec![out, a, !b]]
        });
        if flip { !out } else { out }
    }

    /// `yes` if the condition is true, otherwise `no`.
    pub fn select(&mut self, sat: &mut Sat, condition: Lit, yes: Lit, no: Lit) -> Lit {
        if let Some(value) = self.known(condition) {
            return if value { yes } else { no };
        }
        if yes == no {
            return yes;
        }
        if yes == !no {
            return self.xor(sat, condition, no);
        }
        match (self.known(yes), self.known(no)) {
            (Some(true), _) => return self.or(sat, condition, no),
            (Some(false), _) => return self.and(sat, !condition, no),
            (_, Some(true)) => return self.or(sat, !condition, yes),
            (_, Some(false)) => return self.and(sat, condition, yes),
            _ => {}
        }
        self.gate(sat, Gate::Select(condition, yes, no), |out| {
            vec![
                vec![!condition, !yes, out],
                vec![!condition, yes, !out],
                vec![condition, !no, out],
                vec![condition, no, !out],
                // Implied; they let the solver see more at once.
                vec![yes, no, !out],
                vec![!yes, !no, out],
            ]
        })
    }

    /// The sum of two bits and a carry, and the carry of the sum.
    pub fn add(&mut self, sat: &mut Sat, a: Lit, b: Lit, carry: Lit) -> (Lit, Lit) {
        let differ = self.xor(sat, a, b);
        let sum = self.xor(sat, differ, carry);
        let out = self.select(sat, differ, carry, a);
        (sum, out)
    }
}
