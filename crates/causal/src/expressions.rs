//! The expressions of one trace as terms of the solver.
//!
//! An operation may have no result, such as a division by 0. The solver would then allow no such operands at all, on any
//! path. So such operands are replaced by others, and the path gets the condition that the operation has a result.

use heisen_solver::Term;
use heisen_solver::term::Terms;
use heisen_trace::symbolic::{Node, NodeId, Operand, SymbolicTrace};
use heisen_trace::value_op::{ValueOp, mask};
use std::collections::HashMap;
use std::rc::Rc;

/// A term, and what must hold for it to have a value.
#[derive(Clone, Debug)]
pub struct Expression {
    pub term: Term,
    pub defined: Rc<[Term]>,
}

/// Builds the terms of a trace. Equal expressions of other traces are equal terms.
#[derive(Debug)]
pub struct Expressions<'t> {
    trace: &'t SymbolicTrace,
    built: Vec<Option<Expression>>,
    /// The unknowns of reads and inputs, by index of their event.
    unknowns: HashMap<u32, Term>,
    nothing: Rc<[Term]>,
}

impl<'t> Expressions<'t> {
    pub fn new(trace: &'t SymbolicTrace) -> Expressions<'t> {
        let built = vec![None; trace.nodes.len()];
        Expressions { trace, built, unknowns: HashMap::new(), nothing: Rc::from([]) }
    }

    /// The event with this index has read this unknown.
    pub fn set_unknown(&mut self, event: usize, unknown: Term) {
        self.unknowns.insert(event as u32, unknown);
    }

    /// The term of an operand with this many bits. `None` if the trace is not valid.
    pub fn operand(&mut self, terms: &mut Terms, operand: Operand, width: u32) -> Option<Expression> {
        match operand {
            Operand::Constant(value) => {
                let term = terms.constant(width, value);
                Some(Expression { term, defined: self.nothing.clone() })
            }
            Operand::Node(node) => {
                let Expression { term, defined } = self.node(terms, node)?;
                Some(Expression { term: terms.resize(ValueOp::ZExt, width, term), defined })
            }
        }
    }

    /// The term of a node. `None` if the trace is not valid.
    pub fn node(&mut self, terms: &mut Terms, node: NodeId) -> Option<Expression> {
        let mut open = vec![node];
        while let Some(&NodeId(next)) = open.last() {
            if self.built.get(next as usize)?.is_some() {
                open.pop();
                continue;
            }
            let built = match &self.trace.nodes[next as usize] {
                Node::Read { event, width } | Node::Input { event, width } => {
                    let unknown = *self.unknowns.get(event)?;
                    let term = terms.resize(ValueOp::ZExt, *width, unknown);
                    Expression { term, defined: self.nothing.clone() }
                }
                Node::Apply { op, from, width, operands } => {
                    let missing = operands.iter().filter_map(|operand| match operand {
                        Operand::Node(node) => self.built.get(node.0 as usize)?.is_none().then_some(*node),
                        Operand::Constant(_) => None,
                    });
                    let missing: Vec<NodeId> = missing.collect();
                    if missing.iter().any(|node| node.0 >= next) {
                        return None;
                    }
                    if !missing.is_empty() {
                        open.extend(missing);
                        continue;
                    }
                    self.apply(terms, *op, *from, *width, operands)?
                }
            };
            self.built[next as usize] = Some(built);
            open.pop();
        }
        self.built[node.0 as usize].clone()
    }

    fn apply(
        &mut self,
        terms: &mut Terms,
        op: ValueOp,
        from: u32,
        width: u32,
        operands: &[Operand],
    ) -> Option<Expression> {
        if operands.len() != op.operands() || from == 0 || width == 0 {
            return None;
        }
        let mut values = Vec::new();
        let mut defined: Vec<Term> = Vec::new();
        for (at, &operand) in operands.iter().enumerate() {
            let bits = if op == ValueOp::Select && at == 0 { 1 } else { from };
            let part = self.operand(terms, operand, bits)?;
            values.push(part.term);
            for &condition in
                part.defined.iter().filter(|condition| !defined.contains(condition)).collect::<Vec<_>>()
            {
                defined.push(condition);
            }
        }
        if let Some(condition) = condition(terms, op, from, &values)
            && terms.value_of(condition) != Some(1)
        {
            // A divisor of 1 and a distance of 0 always have a result.
            let harmless = u128::from(!is_shift(op));
            let harmless = terms.constant(from, harmless);
            values[1] = terms.apply(ValueOp::Select, &[condition, values[1], harmless]);
            if !defined.contains(&condition) {
                defined.push(condition);
            }
        }
        let term = match op {
            ValueOp::ZExt | ValueOp::SExt | ValueOp::Trunc => terms.resize(op, width, values[0]),
            _ => terms.apply(op, &values),
        };
        let term = terms.resize(ValueOp::ZExt, width, term);
        Some(Expression {
            term,
            defined: if defined.is_empty() { self.nothing.clone() } else { defined.into() },
        })
    }
}

fn is_shift(op: ValueOp) -> bool {
    matches!(op, ValueOp::Shl | ValueOp::LShr | ValueOp::AShr)
}

/// When an operation has a result; `None` if always.
fn condition(terms: &mut Terms, op: ValueOp, width: u32, values: &[Term]) -> Option<Term> {
    match op {
        ValueOp::Shl | ValueOp::LShr | ValueOp::AShr => {
            // All distances of one bit but 0 are too large; no number of one bit is the width.
            let last = terms.constant(width, u128::from(width) - 1);
            Some(terms.apply(ValueOp::Ule, &[values[1], last]))
        }
        ValueOp::UDiv | ValueOp::URem | ValueOp::SDiv | ValueOp::SRem => {
            let zero = terms.constant(width, 0);
            let is_zero = terms.apply(ValueOp::Eq, &[values[1], zero]);
            let divides = terms.apply(ValueOp::Not, &[is_zero]);
            if !matches!(op, ValueOp::SDiv | ValueOp::SRem) {
                return Some(divides);
            }
            let (least, minus_one) =
                (terms.constant(width, 1 << (width - 1)), terms.constant(width, mask(width)));
            let (dividend, divisor) = (
                terms.apply(ValueOp::Eq, &[values[0], least]),
                terms.apply(ValueOp::Eq, &[values[1], minus_one]),
            );
            let overflows = terms.apply(ValueOp::And, &[dividend, divisor]);
            let fits = terms.apply(ValueOp::Not, &[overflows]);
            Some(terms.apply(ValueOp::And, &[divides, fits]))
        }
        _ => None,
    }
}
