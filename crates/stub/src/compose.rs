//! Operations that the stub composes of several callbacks, because the trace does not have them.

use crate::symbolic::{heisen_sym_binary, heisen_sym_select, heisen_sym_unary};
use heisen_abi::symbolic::{Composition, operation};
use heisen_trace::value_op::ValueOp;

/// The id of the result of an operation; 0 if no operand has one.
pub fn unary(word: u32, id: u32, value: u64) -> u32 {
    if id == 0 { 0 } else { heisen_sym_unary(word, id, value) }
}

/// The id of the result of an operation; 0 if no operand has one.
pub fn binary(word: u32, a: u32, b: u32, va: u64, vb: u64) -> u32 {
    if a | b == 0 { 0 } else { heisen_sym_binary(word, a, b, va, vb) }
}

/// The id of a selection; that of the chosen operand, if the condition has none.
pub fn select(word: u32, condition: u32, chosen: u32, a: u32, b: u32, va: u64, vb: u64) -> u32 {
    match (condition, chosen) {
        (0, 0) => b,
        (0, _) => a,
        _ => heisen_sym_select(word, condition, chosen, a, b, va, vb),
    }
}

/// A number with its id.
#[derive(Clone, Copy)]
pub struct Number {
    /// The id.
    pub id: u32,
    /// The value.
    pub value: u64,
    /// Its bits.
    pub bits: u32,
}

/// The lowest bits of a number.
const fn mask(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

impl Number {
    fn constant(value: u64, bits: u32) -> Number {
        Number { id: 0, value: value & mask(bits), bits }
    }

    /// The result of an operation whose value is known.
    fn with(self, op: ValueOp, other: Number, value: u64, bits: u32) -> Number {
        let word = operation(op as u8, self.bits, bits);
        let id = binary(word, self.id, other.id, self.value, other.value);
        Number { id, value: value & mask(bits), bits }
    }

    /// The sum.
    pub fn plus(self, other: Number) -> Number {
        self.with(ValueOp::Add, other, self.value.wrapping_add(other.value), self.bits)
    }

    fn minus(self, other: Number) -> Number {
        self.with(ValueOp::Sub, other, self.value.wrapping_sub(other.value), self.bits)
    }

    fn and(self, other: Number) -> Number {
        self.with(ValueOp::And, other, self.value & other.value, self.bits)
    }

    fn or(self, other: Number) -> Number {
        self.with(ValueOp::Or, other, self.value | other.value, self.bits)
    }

    fn shifted_left(self, by: Number) -> Number {
        self.with(ValueOp::Shl, by, self.value.wrapping_shl(by.value as u32), self.bits)
    }

    fn shifted_right(self, by: Number) -> Number {
        self.with(ValueOp::LShr, by, self.value.wrapping_shr(by.value as u32), self.bits)
    }

    /// The rest of a division by the width, which is how far a funnel shift goes.
    fn modulo_width(self) -> Number {
        if self.bits.is_power_of_two() {
            return self.and(Number::constant(self.bits.wrapping_sub(1).into(), self.bits));
        }
        let width = Number::constant(self.bits.into(), self.bits);
        let rest = self.value.checked_rem(width.value).unwrap_or(0);
        self.with(ValueOp::URem, width, rest, self.bits)
    }

    fn signed(self) -> i64 {
        (self.value << (64 - self.bits)) as i64 >> (64 - self.bits)
    }

    fn below(self, other: Number, signed: bool) -> Number {
        let (op, less) = if signed {
            (ValueOp::Slt, self.signed() < other.signed())
        } else {
            (ValueOp::Ult, self.value < other.value)
        };
        self.with(op, other, less.into(), 1)
    }

    fn inverted(self) -> Number {
        let id = unary(operation(ValueOp::Not as u8, self.bits, self.bits), self.id, self.value);
        Number { id, value: !self.value & mask(self.bits), bits: self.bits }
    }

    /// This one if the condition, of one bit, holds.
    fn if_else(self, condition: Number, other: Number) -> Number {
        let word = operation(ValueOp::Select as u8, self.bits, self.bits);
        let chosen = condition.value as u32;
        let (va, vb) = (self.value, other.value);
        let id = select(word, condition.id, chosen, self.id, other.id, va, vb);
        let value = if chosen == 0 { vb } else { va };
        Number { id, value, bits: self.bits }
    }

    fn resized(self, op: ValueOp, bits: u32) -> Number {
        if bits == self.bits {
            return self;
        }
        let id = unary(operation(op as u8, self.bits, bits), self.id, self.value);
        let value = if op == ValueOp::SExt { self.signed() as u64 } else { self.value };
        Number { id, value: value & mask(bits), bits }
    }
}

/// A sum or difference, and whether it overflows, is replaced by a limit.
fn saturated(a: Number, b: Number, result: Number, overflow: ValueOp, limit: Number) -> Number {
    let value = match overflow {
        ValueOp::UAddOverflow => result.value < a.value,
        ValueOp::USubOverflow => a.value < b.value,
        ValueOp::SAddOverflow => {
            (a.signed() < 0) == (b.signed() < 0) && (result.signed() < 0) != (a.signed() < 0)
        }
        _ => (a.signed() < 0) != (b.signed() < 0) && (result.signed() < 0) != (a.signed() < 0),
    };
    let overflows = a.with(overflow, b, value.into(), 1);
    limit.if_else(overflows, result)
}

/// -1, 0 or 1.
fn compared(a: Number, b: Number, signed: bool, bits: u32) -> Number {
    let [more, less] = [b.below(a, signed), a.below(b, signed)].map(|test| test.resized(ValueOp::ZExt, bits));
    more.minus(less)
}

/// The id of a [`Composition`].
pub fn compose(word: u32, ids: [u32; 3], values: [u64; 3]) -> u32 {
    if ids == [0; 3] {
        return 0;
    }
    let (bits, to) = (word >> 8 & 0xff, word >> 16 & 0xff);
    let [a, b, c] = [0, 1, 2].map(|index| Number { id: ids[index], value: values[index] & mask(bits), bits });
    let is = |composition: Composition| word as u8 == composition as u8;
    let zero = Number::constant(0, bits);
    let lowest = Number::constant(1 << (bits - 1), bits);
    let limit = || {
        lowest
            .inverted()
            .if_else(zero.below(a, true).or(a.with(ValueOp::Eq, zero, (a.value == 0).into(), 1)), lowest)
    };
    let result = if is(Composition::UMin) || is(Composition::SMin) {
        a.if_else(a.below(b, is(Composition::SMin)), b)
    } else if is(Composition::UMax) || is(Composition::SMax) {
        a.if_else(b.below(a, is(Composition::SMax)), b)
    } else if is(Composition::Abs) {
        zero.minus(a).if_else(a.below(zero, true), a)
    } else if is(Composition::UAddSat) {
        saturated(a, b, a.plus(b), ValueOp::UAddOverflow, Number::constant(u64::MAX, bits))
    } else if is(Composition::USubSat) {
        saturated(a, b, a.minus(b), ValueOp::USubOverflow, zero)
    } else if is(Composition::SAddSat) {
        saturated(a, b, a.plus(b), ValueOp::SAddOverflow, limit())
    } else if is(Composition::SSubSat) {
        saturated(a, b, a.minus(b), ValueOp::SSubOverflow, limit())
    } else if is(Composition::UCompare) || is(Composition::SCompare) {
        compared(a, b, is(Composition::SCompare), to)
    } else {
        // Shifted in two steps, because no single one may go by the whole width.
        let by = c.modulo_width();
        let left = Number::constant(u64::from(bits) - 1, bits).minus(by);
        let one = Number::constant(1, bits);
        if is(Composition::FunnelLeft) {
            a.shifted_left(by).or(b.shifted_right(one).shifted_right(left))
        } else {
            a.shifted_left(one).shifted_left(left).or(b.shifted_right(by))
        }
    };
    result.id
}

/// An index times a factor. The index is signed.
pub fn scaled(index: u32, value: u64, factor: u64, bits: u32) -> Number {
    let index = Number { id: index, value: value & mask(bits), bits }.resized(ValueOp::SExt, 64);
    match factor {
        1 => index,
        factor if factor.is_power_of_two() => {
            index.shifted_left(Number::constant(factor.trailing_zeros().into(), 64))
        }
        factor => {
            let by = Number::constant(factor, 64);
            index.with(ValueOp::Mul, by, index.value.wrapping_mul(factor), 64)
        }
    }
}
