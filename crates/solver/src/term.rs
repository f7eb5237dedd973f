//! Terms: expressions over bit-vectors of 1 to 128 bits. Equal terms are stored once.

use heisen_trace::value_op::{ValueOp as Op, mask};
use std::collections::HashMap;

/// A term of a [`Terms`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Term(pub(crate) u32);

/// What a term is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// A number.
    Constant {
        /// Its bits.
        width: u32,
        /// Its value, below 2 to the power of the width.
        value: u128,
    },
    /// A value that the solver chooses.
    Unknown {
        /// Its bits.
        width: u32,
        /// Tells unknowns of one width apart.
        number: u32,
    },
    /// The result of an operation.
    Apply {
        /// The operation.
        op: Op,
        /// The bits of the result.
        width: u32,
        /// Its operands.
        operands: Vec<Term>,
    },
}

/// All terms of a problem. Operands come before what uses them.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    nodes: Vec<Node>,
    known: HashMap<Node, Term>,
    unknown_count: u32,
}

impl Terms {
    /// Creates an empty set of terms.
    pub fn new() -> Terms {
        Terms::default()
    }

    /// What a term is.
    pub fn node(&self, term: Term) -> &Node {
        &self.nodes[term.0 as usize]
    }

    /// The bits of a term.
    pub fn width(&self, term: Term) -> u32 {
        match *self.node(term) {
            Node::Constant { width, .. } | Node::Unknown { width, .. } | Node::Apply { width, .. } => width,
        }
    }

    /// All unknowns.
    pub fn unknowns(&self) -> impl Iterator<Item = Term> {
        let unknown = |(_, node): &(u32, &Node)| matches!(node, Node::Unknown { .. });
        (0..).zip(&self.nodes).filter(unknown).map(|(number, _)| Term(number))
    }

    /// The lowest `width` bits of a number.
    ///
    /// # Panics
    /// If the width is not 1 to 128.
    pub fn constant(&mut self, width: u32, value: u128) -> Term {
        assert!((1..=128).contains(&width), "a bit-vector of {width} bits");
        self.add(Node::Constant { width, value: value & mask(width) })
    }

    /// A new unknown.
    ///
    /// # Panics
    /// If the width is not 1 to 128.
    pub fn unknown(&mut self, width: u32) -> Term {
        assert!((1..=128).contains(&width), "a bit-vector of {width} bits");
        self.unknown_count += 1;
        self.add(Node::Unknown { width, number: self.unknown_count })
    }

    /// The result of an operation on operands of one width. For [`Op::ZExt`], [`Op::SExt`] and [`Op::Trunc`] use
    /// [`Terms::resize`]; for [`Op::Select`] the first operand has one bit.
    ///
    /// # Panics
    /// If the number of operands or their widths do not fit the operation.
    pub fn apply(&mut self, op: Op, operands: &[Term]) -> Term {
        assert_eq!(operands.len(), op.operands(), "operands of {op:?}");
        assert!(!matches!(op, Op::ZExt | Op::SExt | Op::Trunc), "{op:?} needs a width");
        let values = if op == Op::Select { &operands[1..] } else { operands };
        let width = self.width(values[0]);
        assert!(values.iter().all(|&value| self.width(value) == width), "operands of {op:?}");
        assert!(op != Op::Select || self.width(operands[0]) == 1, "a condition has one bit");
        assert!(op != Op::ByteSwap || width.is_multiple_of(16), "bytes of {width} bits");
        self.applied(op, if op.is_test() { 1 } else { width }, operands)
    }

    /// A term with another width: extended by [`Op::ZExt`] or [`Op::SExt`], or cut.
    pub fn resize(&mut self, op: Op, width: u32, term: Term) -> Term {
        assert!((1..=128).contains(&width), "a bit-vector of {width} bits");
        match width.cmp(&self.width(term)) {
            std::cmp::Ordering::Equal => term,
            std::cmp::Ordering::Less => self.applied(Op::Trunc, width, &[term]),
            std::cmp::Ordering::Greater => {
                assert!(matches!(op, Op::ZExt | Op::SExt), "{op:?} does not extend");
                self.applied(op, width, &[term])
            }
        }
    }

    fn applied(&mut self, op: Op, width: u32, operands: &[Term]) -> Term {
        let from = self.width(*operands.last().expect("every operation has operands"));
        let values: Option<Vec<u128>> = operands.iter().map(|&operand| self.value_of(operand)).collect();
        if let Some(value) = values.and_then(|values| op.apply(from, width, &values)) {
            return self.constant(width, value);
        }
        self.add(Node::Apply { op, width, operands: operands.to_vec() })
    }

    /// The value of a constant.
    pub fn value_of(&self, term: Term) -> Option<u128> {
        match *self.node(term) {
            Node::Constant { value, .. } => Some(value),
            _ => None,
        }
    }

    /// The value of a term, if `unknown` gives those of unknowns. `None` if the program does not define one: a division
    /// in the term has no result (wherever it stands, because it was executed), or a shift that the value depends on is
    /// too far (in an arm of a select that is not chosen it does not matter).
    pub fn evaluate(&self, term: Term, unknown: &dyn Fn(Term) -> u128) -> Option<u128> {
        // `None` is poison.
        let mut known: HashMap<Term, Option<u128>> = HashMap::new();
        let mut open = vec![term];
        while let Some(&next) = open.last() {
            let value = match self.node(next) {
                Node::Constant { value, .. } => Some(*value),
                Node::Unknown { width, .. } => Some(unknown(next) & mask(*width)),
                Node::Apply { op, width, operands } => {
                    let missing: Vec<Term> =
                        operands.iter().copied().filter(|operand| !known.contains_key(operand)).collect();
                    if !missing.is_empty() {
                        open.extend(missing);
                        continue;
                    }
                    let from = self.width(*operands.last()?);
                    let values: Vec<Option<u128>> = operands.iter().map(|operand| known[operand]).collect();
                    match (op, &values[..]) {
                        (Op::Select, [condition, yes, no]) => {
                            condition.and_then(|condition| if condition == 1 { *yes } else { *no })
                        }
                        (Op::UDiv | Op::URem, [None, Some(1..)]) => None,
                        // Poison divided by -1 may overflow.
                        (Op::SDiv | Op::SRem, [None, Some(by)]) if *by != 0 && *by != mask(from) => None,
                        (Op::UDiv | Op::URem | Op::SDiv | Op::SRem, [Some(a), Some(b)]) => {
                            Some(op.apply(from, *width, &[*a, *b])?)
                        }
                        (Op::UDiv | Op::URem | Op::SDiv | Op::SRem, _) => return None,
                        _ => {
                            let values: Option<Vec<u128>> = values.into_iter().collect();
                            values.and_then(|values| op.apply(from, *width, &values))
                        }
                    }
                }
            };
            known.insert(next, value);
            open.pop();
        }
        known[&term]
    }

    fn add(&mut self, node: Node) -> Term {
        if let Some(&term) = self.known.get(&node) {
            return term;
        }
        let term = Term(u32::try_from(self.nodes.len()).expect("fewer than 2^32 terms"));
        self.nodes.push(node.clone());
        self.known.insert(node, term);
        term
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_terms_are_one_and_constants_are_folded() {
        let mut terms = Terms::new();
        let (x, two) = (terms.unknown(8), terms.constant(8, 2));
        assert_ne!(terms.unknown(8), x);
        let sum = terms.apply(Op::Add, &[x, two]);
        assert_eq!(terms.apply(Op::Add, &[x, two]), sum);
        let three = terms.constant(8, 3);
        let five = terms.apply(Op::Add, &[two, three]);
        assert_eq!(terms.value_of(five), Some(5));
        let zero = terms.constant(8, 0);
        let undefined = terms.apply(Op::UDiv, &[two, zero]);
        assert_eq!(terms.value_of(undefined), None);
        assert_eq!(terms.evaluate(undefined, &|_| 0), None);
        assert_eq!(terms.evaluate(sum, &|_| 255), Some(1));
        assert_eq!(terms.width(terms.known[&Node::Constant { width: 8, value: 3 }]), 8);
        let wide = terms.resize(Op::SExt, 16, x);
        assert_eq!((terms.width(wide), terms.evaluate(wide, &|_| 0x80)), (16, Some(0xff80)));
        assert_eq!(terms.resize(Op::ZExt, 8, x), x);
    }
}
