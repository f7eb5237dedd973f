//! Builds the circuits of terms. Some operations have no result for some operands (division by zero, shifts by the width).
//! Their circuits compute an arbitrary value there, and a literal beside the value says whether the value means anything.
//! Only a formula that uses the term asks for that literal.

use crate::circuit::{Bits, Circuit};
use crate::sat::{Lit, Sat};
use crate::term::{Node, Term, Terms};
use heisen_trace::ValueOp as Op;

/// The circuit of a term.
#[derive(Clone, Debug)]
pub struct Built {
    /// Its value, if the program defines one.
    pub bits: Bits,
    /// Whether the value is not poison. An arm of a select that is not chosen does not count.
    pub proper: Lit,
    /// Whether no operation that the value depends on is undefined behaviour where it is executed. All arms count:
    /// terms are made of instructions that were executed.
    pub defined: Lit,
}

/// The circuits built so far.
#[derive(Default)]
pub struct Blaster {
    /// The gates.
    pub circuit: Circuit,
    /// By term.
    built: Vec<Option<Built>>,
}

impl Blaster {
    /// The circuit of a term, if it was built.
    pub fn built(&self, term: Term) -> Option<&Built> {
        self.built.get(term.0 as usize)?.as_ref()
    }

    /// Whether a term has a value, and it is this bit.
    pub fn holds(&mut self, sat: &mut Sat, terms: &Terms, term: Term, value: bool) -> Lit {
        self.build(sat, terms, term);
        let Some(Built { bits, proper, defined }) = self.built(term).cloned() else { unreachable!("built") };
        assert_eq!(bits.len(), 1, "a term of one bit");
        let sound = self.circuit.and(sat, proper, defined);
        self.circuit.and(sat, if value { bits[0] } else { !bits[0] }, sound)
    }

    /// Builds the circuit of a term.
    pub fn build(&mut self, sat: &mut Sat, terms: &Terms, term: Term) {
        if self.built.len() <= term.0 as usize {
            self.built.resize(term.0 as usize + 1, None);
        }
        let mut open = vec![term];
        while let Some(&next) = open.last() {
            if self.built(next).is_some() {
                open.pop();
                continue;
            }
            let truth = self.circuit.constant(sat, true);
            let plain = |bits: Bits| Built { bits, proper: truth, defined: truth };
            let built = match terms.node(next) {
                &Node::Constant { width, value } => {
                    plain((0..width).map(|at| self.circuit.constant(sat, value >> at & 1 == 1)).collect())
                }
                &Node::Unknown { width, .. } => {
                    plain((0..width).map(|_| Lit::new(sat.new_input(false), true)).collect())
                }
                Node::Apply { op, width, operands } => {
                    let missing: Vec<Term> =
                        operands.iter().copied().filter(|&operand| self.built(operand).is_none()).collect();
                    if !missing.is_empty() {
                        open.extend(missing);
                        continue;
                    }
                    let operands: Vec<Built> =
                        operands.iter().filter_map(|&operand| self.built(operand).cloned()).collect();
                    let bits: Vec<Bits> = operands.iter().map(|operand| operand.bits.clone()).collect();
                    let mut build = Build { circuit: &mut self.circuit, sat };
                    let bits = build.apply(*op, *width as usize, &bits);
                    let (proper, defined) = build.sound(*op, &operands);
                    Built { bits, proper, defined }
                }
            };
            self.built[next.0 as usize] = Some(built);
            open.pop();
        }
    }
}

/// Builds the circuit of one operation.
struct Build<'b> {
    circuit: &'b mut Circuit,
    sat: &'b mut Sat,
}

impl Build<'_> {
    fn apply(&mut self, op: Op, width: usize, operands: &[Bits]) -> Bits {
        let a = &operands[0];
        let b = operands.get(1).unwrap_or(a);
        let (a_sign, b_sign) = (a[a.len() - 1], b[b.len() - 1]);
        match op {
            Op::Add => self.sum(a, b, false).0,
            Op::Sub => self.sum(a, &inverted(b), true).0,
            Op::Mul => self.product(a, b, width),
            Op::UDiv | Op::URem => {
                let (quotient, remainder) = self.divide(a, b);
                if op == Op::UDiv { quotient } else { remainder }
            }
            Op::SDiv | Op::SRem => self.divide_signed(op, a, b),
            Op::Shl | Op::LShr | Op::AShr => self.shift(op, a, b),
            Op::And => self.each(a, b, Circuit::and),
            Op::Or => self.each(a, b, Circuit::or),
            Op::Xor => self.each(a, b, Circuit::xor),
            Op::Eq => {
                let differ = self.each(a, b, Circuit::xor);
                vec![!self.any(&differ)]
            }
            Op::Ult | Op::USubOverflow => vec![self.below(a, b)],
            Op::Ule => vec![!self.below(b, a)],
            Op::Slt => vec![self.below(&biased(a), &biased(b))],
            Op::Sle => vec![!self.below(&biased(b), &biased(a))],
            Op::UAddOverflow => vec![self.sum(a, b, false).1],
            Op::SAddOverflow => {
                let sum = self.sum(a, b, false).0;
                vec![self.changed_sign(a_sign, b_sign, sum[sum.len() - 1])]
            }
            Op::SSubOverflow => {
                let difference = self.sum(a, &inverted(b), true).0;
                vec![self.changed_sign(a_sign, !b_sign, difference[difference.len() - 1])]
            }
            Op::UMulOverflow => {
                let (a, b) = (self.extended(a, None), self.extended(b, None));
                let product = self.product(&a, &b, a.len());
                vec![self.any(&product[product.len() / 2..])]
            }
            Op::SMulOverflow => {
                let (wide, other) = (self.extended(a, Some(a_sign)), self.extended(b, Some(b_sign)));
                let product = self.product(&wide, &other, wide.len());
                // All bits from the sign on must be equal.
                let sign = product[a.len() - 1];
                let differ: Bits =
                    product[a.len()..].iter().map(|&bit| self.circuit.xor(self.sat, bit, sign)).collect();
                vec![self.any(&differ)]
            }
            Op::Not => inverted(a),
            Op::Trunc => a[..width].to_vec(),
            Op::ZExt => self.padded(a, width, None),
            Op::SExt => self.padded(a, width, Some(a_sign)),
            Op::PopCount => self.count(a, width),
            Op::TrailingZeros => self.trailing_zeros(a, width),
            Op::LeadingZeros => {
                let reversed: Bits = a.iter().rev().copied().collect();
                self.trailing_zeros(&reversed, width)
            }
            Op::ByteSwap => a.chunks(8).rev().flatten().copied().collect(),
            Op::BitReverse => a.iter().rev().copied().collect(),
            Op::Select => self.choose(operands[0][0], &operands[1], &operands[2]),
            Op::FunnelLeft | Op::FunnelRight => self.funnel(op, a, b, &operands[2]),
        }
    }

    /// Whether the result of an operation is not poison, and whether nothing it depends on is undefined behaviour.
    fn sound(&mut self, op: Op, operands: &[Built]) -> (Lit, Lit) {
        let truth = self.circuit.constant(self.sat, true);
        let mut proper = truth;
        let mut defined = truth;
        for operand in operands {
            proper = self.circuit.and(self.sat, proper, operand.proper);
            defined = self.circuit.and(self.sat, defined, operand.defined);
        }
        let (a, b) = (&operands[0], operands.get(1).unwrap_or(&operands[0]));
        match op {
            Op::Shl | Op::LShr | Op::AShr => {
                let width = a.bits.len();
                let limit = self.number(width as u128, width);
                // A width of one bit has no number for itself; all distances but 0 are too large.
                let inside = if width == 1 { !b.bits[0] } else { self.below(&b.bits, &limit) };
                proper = self.circuit.and(self.sat, proper, inside);
            }
            Op::Select => {
                let arm = self.circuit.select(self.sat, a.bits[0], operands[1].proper, operands[2].proper);
                proper = self.circuit.and(self.sat, a.proper, arm);
            }
            Op::UDiv | Op::URem | Op::SDiv | Op::SRem => {
                let nonzero = self.any(&b.bits);
                let mut fine = self.circuit.and(self.sat, nonzero, b.proper);
                if matches!(op, Op::SDiv | Op::SRem) {
                    // The least number divided by -1 has no result; poison may be that number.
                    let not_least = self.any(&biased(&a.bits));
                    let small = self.circuit.and(self.sat, not_least, a.proper);
                    let not_minus_one = self.any(&inverted(&b.bits));
                    let fits = self.circuit.or(self.sat, small, not_minus_one);
                    fine = self.circuit.and(self.sat, fine, fits);
                }
                defined = self.circuit.and(self.sat, defined, fine);
            }
            _ => {}
        }
        (proper, defined)
    }

    fn number(&mut self, value: u128, width: usize) -> Bits {
        (0..width).map(|at| self.circuit.constant(self.sat, at < 128 && value >> at & 1 == 1)).collect()
    }

    fn each(&mut self, a: &[Lit], b: &[Lit], gate: fn(&mut Circuit, &mut Sat, Lit, Lit) -> Lit) -> Bits {
        a.iter().zip(b).map(|(&a, &b)| gate(self.circuit, self.sat, a, b)).collect()
    }

    fn any(&mut self, bits: &[Lit]) -> Lit {
        let none = self.circuit.constant(self.sat, false);
        bits.iter().fold(none, |any, &bit| self.circuit.or(self.sat, any, bit))
    }

    fn choose(&mut self, condition: Lit, yes: &[Lit], no: &[Lit]) -> Bits {
        yes.iter().zip(no).map(|(&yes, &no)| self.circuit.select(self.sat, condition, yes, no)).collect()
    }

    /// The sum and its carry.
    fn sum(&mut self, a: &[Lit], b: &[Lit], carry: bool) -> (Bits, Lit) {
        let mut carry = self.circuit.constant(self.sat, carry);
        let mut sum = Vec::with_capacity(a.len());
        for (&a, &b) in a.iter().zip(b) {
            let (bit, next) = self.circuit.add(self.sat, a, b, carry);
            sum.push(bit);
            carry = next;
        }
        (sum, carry)
    }

    /// Whether `a` is smaller than `b`: then `a` minus `b` borrows.
    fn below(&mut self, a: &[Lit], b: &[Lit]) -> Lit {
        !self.sum(a, &inverted(b), true).1
    }

    fn changed_sign(&mut self, a: Lit, b: Lit, result: Lit) -> Lit {
        let (from_a, from_b) = (self.circuit.xor(self.sat, a, result), self.circuit.xor(self.sat, b, result));
        self.circuit.and(self.sat, from_a, from_b)
    }

    fn padded(&mut self, bits: &[Lit], width: usize, sign: Option<Lit>) -> Bits {
        let fill = sign.unwrap_or_else(|| self.circuit.constant(self.sat, false));
        bits.iter().copied().chain(std::iter::repeat(fill)).take(width).collect()
    }

    /// Twice as wide.
    fn extended(&mut self, bits: &[Lit], sign: Option<Lit>) -> Bits {
        self.padded(bits, 2 * bits.len(), sign)
    }

    fn product(&mut self, a: &[Lit], b: &[Lit], width: usize) -> Bits {
        let mut sum = self.number(0, width);
        for (at, &bit) in b.iter().enumerate().take(width) {
            if self.circuit.known(bit) == Some(false) {
                continue;
            }
            let row: Bits = a[..width - at].iter().map(|&a| self.circuit.and(self.sat, a, bit)).collect();
            let upper = self.sum(&sum[at..], &row, false).0;
            sum.splice(at.., upper);
        }
        sum
    }

    /// Quotient and remainder by subtraction, the highest bit first. The divisor is not 0.
    fn divide(&mut self, a: &[Lit], b: &[Lit]) -> (Bits, Bits) {
        let zero = self.circuit.constant(self.sat, false);
        let wide = self.padded(b, b.len() + 1, None);
        let mut remainder = vec![zero; wide.len()];
        let mut quotient = vec![zero; a.len()];
        for at in (0..a.len()).rev() {
            remainder.pop();
            remainder.insert(0, a[at]);
            let (less, fits) = self.sum(&remainder, &inverted(&wide), true);
            remainder = self.choose(fits, &less, &remainder);
            quotient[at] = fits;
        }
        remainder.truncate(b.len());
        (quotient, remainder)
    }

    fn negated_if(&mut self, condition: Lit, bits: &[Lit]) -> Bits {
        let zero = self.number(0, bits.len());
        let negated = self.sum(&zero, &inverted(bits), true).0;
        self.choose(condition, &negated, bits)
    }

    fn divide_signed(&mut self, op: Op, a: &[Lit], b: &[Lit]) -> Bits {
        let (a_sign, b_sign) = (a[a.len() - 1], b[b.len() - 1]);
        let (a, b) = (self.negated_if(a_sign, a), self.negated_if(b_sign, b));
        let (quotient, remainder) = self.divide(&a, &b);
        if op == Op::SRem {
            return self.negated_if(a_sign, &remainder);
        }
        let differ = self.circuit.xor(self.sat, a_sign, b_sign);
        self.negated_if(differ, &quotient)
    }

    /// A shift by less than the width.
    fn shift(&mut self, op: Op, bits: &[Lit], by: &[Lit]) -> Bits {
        let width = bits.len();
        let fill = if op == Op::AShr { bits[width - 1] } else { self.circuit.constant(self.sat, false) };
        let mut out = bits.to_vec();
        for (power, &bit) in by.iter().enumerate().take_while(|(power, _)| 1 << power < width) {
            let distance = 1 << power;
            let moved: Bits = (0..width)
                .map(|at| match op {
                    Op::Shl => at.checked_sub(distance).map_or(fill, |from| out[from]),
                    _ => out.get(at + distance).copied().unwrap_or(fill),
                })
                .collect();
            out = self.choose(bit, &moved, &out);
        }
        out
    }

    fn funnel(&mut self, op: Op, a: &[Lit], b: &[Lit], by: &[Lit]) -> Bits {
        let width = a.len();
        // One more bit holds the width itself.
        let by = self.padded(by, width + 1, None);
        let modulus = self.number(width as u128, width + 1);
        let by = self.divide(&by, &modulus).1;
        let row: Bits = b.iter().chain(a).copied().collect();
        let by = self.padded(&by, row.len(), None);
        match op {
            Op::FunnelLeft => self.shift(Op::Shl, &row, &by)[width..].to_vec(),
            _ => self.shift(Op::LShr, &row, &by)[..width].to_vec(),
        }
    }

    /// The number of ones, in `width` bits.
    fn count(&mut self, bits: &[Lit], width: usize) -> Bits {
        let mut sum = self.number(0, width);
        for &bit in bits {
            let zero = self.circuit.constant(self.sat, false);
            let one: Bits = std::iter::once(bit).chain(std::iter::repeat(zero)).take(width).collect();
            sum = self.sum(&sum, &one, false).0;
        }
        sum
    }

    /// The zeros behind the last one are those at which no one has come yet.
    fn trailing_zeros(&mut self, bits: &[Lit], width: usize) -> Bits {
        let mut none_yet = self.circuit.constant(self.sat, true);
        let mut zeros = Vec::with_capacity(bits.len());
        for &bit in bits {
            none_yet = self.circuit.and(self.sat, none_yet, !bit);
            zeros.push(none_yet);
        }
        self.count(&zeros, width)
    }
}

fn inverted(bits: &[Lit]) -> Bits {
    bits.iter().map(|&bit| !bit).collect()
}

/// A signed number as an unsigned one in the same order.
fn biased(bits: &[Lit]) -> Bits {
    let mut out = bits.to_vec();
    if let Some(sign) = out.last_mut() {
        *sign = !*sign;
    }
    out
}
