//! The stub's own functions for symbolic builds: they consist of several callbacks, see `symbolic_helpers`.

use core::arch::{asm, global_asm};
use heisen_abi::symbolic::{Composition, operation};
use heisen_trace::value_op::ValueOp;

// SAFETY: the signatures are those of the list of callbacks.
unsafe extern "C" {
    safe fn heisen_sym_unary(operation: u32, id: u32, value: u64) -> u32;
    safe fn heisen_sym_binary(operation: u32, a: u32, b: u32, va: u64, vb: u64) -> u32;
    safe fn heisen_sym_select(
        operation: u32,
        condition: u32,
        chosen: u32,
        a: u32,
        b: u32,
        va: u64,
        vb: u64,
    ) -> u32;
    safe fn heisen_sym_load(address: u64, size: u32, address_id: u32, value: u64) -> u32;
    safe fn heisen_sym_pin(id: u32, value: u64, reason: u32);
}

macro_rules! forward {
    ($($name:ident)*) => {
        global_asm!(
            ".pushsection .text.heisen_stub_symbolic, \"ax\", @progbits",
            $(
                concat!(".weak heisen_sym_", stringify!($name)),
                concat!(".hidden heisen_sym_", stringify!($name)),
                concat!(".type heisen_sym_", stringify!($name), ", @function"),
                concat!("heisen_sym_", stringify!($name), ":"),
                concat!("jmp {", stringify!($name), "}"),
            )*
            ".popsection",
            $($name = sym $name,)*
            options(att_syntax)
        );
    };
}

forward!(compose index concretise clear);

/// A number with its id.
#[derive(Clone, Copy)]
struct Number {
    id: u32,
    value: u64,
    bits: u32,
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
        let id = heisen_sym_binary(word, self.id, other.id, self.value, other.value);
        Number { id, value: value & mask(bits), bits }
    }

    fn plus(self, other: Number) -> Number {
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
        let id = heisen_sym_unary(operation(ValueOp::Not as u8, self.bits, self.bits), self.id, self.value);
        Number { id, value: !self.value & mask(self.bits), bits: self.bits }
    }

    /// This one if the condition, of one bit, holds.
    fn if_else(self, condition: Number, other: Number) -> Number {
        let word = operation(ValueOp::Select as u8, self.bits, self.bits);
        let chosen = condition.value as u32;
        let (va, vb) = (self.value, other.value);
        let id = heisen_sym_select(word, condition.id, chosen, self.id, other.id, va, vb);
        let value = if chosen == 0 { vb } else { va };
        Number { id, value, bits: self.bits }
    }

    fn resized(self, op: ValueOp, bits: u32) -> Number {
        if bits == self.bits {
            return self;
        }
        let id = heisen_sym_unary(operation(op as u8, self.bits, bits), self.id, self.value);
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

extern "C" fn compose(word: u32, a: u32, b: u32, c: u32, va: u64, vb: u64, vc: u64) -> u32 {
    if a | b | c == 0 {
        return 0;
    }
    let (bits, to) = (word >> 8 & 0xff, word >> 16 & 0xff);
    let number = |id, value: u64| Number { id, value: value & mask(bits), bits };
    let (a, b, c) = (number(a, va), number(b, vb), number(c, vc));
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

extern "C" fn index(address: u32, index: u32, va: u64, vi: u64, factor: u64, bits: u32) -> u32 {
    let index = Number { id: index, value: vi & mask(bits), bits }.resized(ValueOp::SExt, 64);
    let scaled = match factor {
        1 => index,
        factor if factor.is_power_of_two() => {
            index.shifted_left(Number::constant(factor.trailing_zeros().into(), 64))
        }
        factor => {
            let by = Number::constant(factor, 64);
            index.with(ValueOp::Mul, by, index.value.wrapping_mul(factor), 64)
        }
    };
    Number { id: address, value: va, bits: 64 }.plus(scaled).id
}

unsafe extern "C" fn concretise(address: u64, bytes: u64, reason: u32) {
    let mut at = 0;
    while at < bytes {
        // No more than there are, and no call of a function that copies.
        let size = match bytes - at {
            8.. => 8,
            4.. => 4,
            2.. => 2,
            _ => 1,
        };
        let place = (address + at) as *const u8;
        // SAFETY: the program has just read as many bytes there.
        let value = unsafe {
            match size {
                8 => place.cast::<u64>().read_unaligned(),
                4 => place.cast::<u32>().read_unaligned().into(),
                2 => place.cast::<u16>().read_unaligned().into(),
                _ => place.read().into(),
            }
        };
        heisen_sym_pin(heisen_sym_load(address + at, size as u32, 0, value), value, reason);
        at += size;
    }
}

/// A single instruction, for the same reason as `plain::memset`.
unsafe extern "C" fn clear(address: u64, words: u64) {
    // SAFETY: the caller's own variables.
    unsafe {
        asm!(
            "rep stosd",
            inout("rdi") address => _,
            inout("rcx") words => _,
            in("eax") 0,
            options(nostack, preserves_flags)
        );
    }
}
