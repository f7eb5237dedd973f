//! The operations of LLVM on integers of 1 to 128 bits. Their meaning is written here, once: instrumentation names them
//! by number, the solver folds terms by it, and tests compare the solver's circuits with it.

/// An operation. The numbers are part of the interface of instrumented code and are never reused. Operands are unsigned numbers below 2 to the power of their width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "std", derive(serde::Serialize, serde::Deserialize))]
#[repr(u8)]
pub enum ValueOp {
    /// The sum, without the carry.
    Add = 1,
    /// The difference, without the borrow.
    Sub = 2,
    /// The lower half of the product.
    Mul = 3,
    /// The unsigned quotient. Undefined for the divisor 0.
    UDiv = 4,
    /// The signed quotient, rounded towards 0. Undefined for the divisor 0 and on overflow.
    SDiv = 5,
    /// The unsigned remainder. Undefined for the divisor 0.
    URem = 6,
    /// The signed remainder, with the sign of the dividend. Undefined where [`ValueOp::SDiv`] is.
    SRem = 7,
    /// Shifts to the left. Undefined for distances of at least the width.
    Shl = 8,
    /// Shifts to the right and fills with zeros. Undefined for distances of at least the width.
    LShr = 9,
    /// Shifts to the right and fills with the sign. Undefined for distances of at least the width.
    AShr = 10,
    /// Bitwise and.
    And = 11,
    /// Bitwise or.
    Or = 12,
    /// Bitwise exclusive or.
    Xor = 13,
    /// Whether both are equal.
    Eq = 14,
    /// Whether the first is smaller, unsigned.
    Ult = 15,
    /// Whether the first is smaller or equal, unsigned.
    Ule = 16,
    /// Whether the first is smaller, signed.
    Slt = 17,
    /// Whether the first is smaller or equal, signed.
    Sle = 18,
    /// Whether an unsigned sum overflows.
    UAddOverflow = 19,
    /// Whether a signed sum overflows.
    SAddOverflow = 20,
    /// Whether an unsigned difference overflows.
    USubOverflow = 21,
    /// Whether a signed difference overflows.
    SSubOverflow = 22,
    /// Whether an unsigned product overflows.
    UMulOverflow = 23,
    /// Whether a signed product overflows.
    SMulOverflow = 24,
    /// All bits inverted.
    Not = 25,
    /// Zeros in front.
    ZExt = 26,
    /// Copies of the sign in front.
    SExt = 27,
    /// The lowest bits.
    Trunc = 28,
    /// The number of ones.
    PopCount = 29,
    /// The number of zeros behind the last one; the width for 0.
    TrailingZeros = 30,
    /// The number of zeros before the first one; the width for 0.
    LeadingZeros = 31,
    /// The bytes in reverse order. The width is a multiple of 16.
    ByteSwap = 32,
    /// The bits in reverse order.
    BitReverse = 33,
    /// The second operand if the first, of one bit, is 1; otherwise the third.
    Select = 34,
    /// The upper half of the first and second operand in a row, shifted to the left by the third modulo the width.
    FunnelLeft = 35,
    /// The lower half of the first and second operand in a row, shifted to the right by the third modulo the width.
    FunnelRight = 36,
}

impl ValueOp {
    /// All operations.
    pub const ALL: [ValueOp; 36] = [
        ValueOp::Add,
        ValueOp::Sub,
        ValueOp::Mul,
        ValueOp::UDiv,
        ValueOp::SDiv,
        ValueOp::URem,
        ValueOp::SRem,
        ValueOp::Shl,
        ValueOp::LShr,
        ValueOp::AShr,
        ValueOp::And,
        ValueOp::Or,
        ValueOp::Xor,
        ValueOp::Eq,
        ValueOp::Ult,
        ValueOp::Ule,
        ValueOp::Slt,
        ValueOp::Sle,
        ValueOp::UAddOverflow,
        ValueOp::SAddOverflow,
        ValueOp::USubOverflow,
        ValueOp::SSubOverflow,
        ValueOp::UMulOverflow,
        ValueOp::SMulOverflow,
        ValueOp::Not,
        ValueOp::ZExt,
        ValueOp::SExt,
        ValueOp::Trunc,
        ValueOp::PopCount,
        ValueOp::TrailingZeros,
        ValueOp::LeadingZeros,
        ValueOp::ByteSwap,
        ValueOp::BitReverse,
        ValueOp::Select,
        ValueOp::FunnelLeft,
        ValueOp::FunnelRight,
    ];

    /// The operation with this number.
    pub const fn from_code(code: u8) -> Option<ValueOp> {
        if code == 0 || code as usize > ValueOp::ALL.len() {
            None
        } else {
            Some(ValueOp::ALL[code as usize - 1])
        }
    }

    /// How many operands it has.
    pub const fn operands(self) -> usize {
        match self {
            ValueOp::Not | ValueOp::ZExt | ValueOp::SExt | ValueOp::Trunc => 1,
            ValueOp::PopCount
            | ValueOp::TrailingZeros
            | ValueOp::LeadingZeros
            | ValueOp::ByteSwap
            | ValueOp::BitReverse => 1,
            ValueOp::Select | ValueOp::FunnelLeft | ValueOp::FunnelRight => 3,
            _ => 2,
        }
    }

    /// Whether its result is one bit: a comparison, or whether something overflows.
    pub const fn is_test(self) -> bool {
        matches!(
            self,
            ValueOp::Eq
                | ValueOp::Ult
                | ValueOp::Ule
                | ValueOp::Slt
                | ValueOp::Sle
                | ValueOp::UAddOverflow
                | ValueOp::SAddOverflow
                | ValueOp::USubOverflow
                | ValueOp::SSubOverflow
                | ValueOp::UMulOverflow
                | ValueOp::SMulOverflow
        )
    }

    /// The result of `to` bits for operands of `width` bits. `None` where LLVM defines no result: what the program did
    /// there says nothing.
    pub fn apply(self, width: u32, to: u32, operands: &[u128]) -> Option<u128> {
        let a = operands[0];
        let b = operands.get(1).copied().unwrap_or(0);
        let (sa, sb) = (signed(a, width), signed(b, width));
        let bit = u128::from;
        let least = signed(1 << (width - 1), width);
        let result = match self {
            ValueOp::Add => a.wrapping_add(b),
            ValueOp::Sub => a.wrapping_sub(b),
            ValueOp::Mul => a.wrapping_mul(b),
            ValueOp::UDiv => a.checked_div(b)?,
            ValueOp::URem => a.checked_rem(b)?,
            ValueOp::SDiv | ValueOp::SRem if b == 0 || (sa == least && sb == -1) => return None,
            ValueOp::SDiv => (sa / sb).cast_unsigned(),
            ValueOp::SRem => (sa % sb).cast_unsigned(),
            ValueOp::Shl | ValueOp::LShr | ValueOp::AShr if b >= u128::from(width) => return None,
            ValueOp::Shl => a << b,
            ValueOp::LShr => a >> b,
            ValueOp::AShr => (sa >> b).cast_unsigned(),
            ValueOp::And => a & b,
            ValueOp::Or => a | b,
            ValueOp::Xor => a ^ b,
            ValueOp::Eq => bit(a == b),
            ValueOp::Ult => bit(a < b),
            ValueOp::Ule => bit(a <= b),
            ValueOp::Slt => bit(sa < sb),
            ValueOp::Sle => bit(sa <= sb),
            ValueOp::UAddOverflow => bit(a.checked_add(b).is_none_or(|sum| sum > mask(width))),
            ValueOp::USubOverflow => bit(a < b),
            ValueOp::UMulOverflow => bit(a.checked_mul(b).is_none_or(|product| product > mask(width))),
            ValueOp::SAddOverflow => bit(!fits(sa.checked_add(sb), width)),
            ValueOp::SSubOverflow => bit(!fits(sa.checked_sub(sb), width)),
            ValueOp::SMulOverflow => bit(!fits(sa.checked_mul(sb), width)),
            ValueOp::Not => !a,
            ValueOp::ZExt | ValueOp::Trunc => a,
            ValueOp::SExt => sa.cast_unsigned(),
            ValueOp::PopCount => a.count_ones().into(),
            ValueOp::TrailingZeros => a.trailing_zeros().min(width).into(),
            ValueOp::LeadingZeros => (a.leading_zeros() - (128 - width)).into(),
            ValueOp::ByteSwap => a.swap_bytes() >> (128 - width),
            ValueOp::BitReverse => a.reverse_bits() >> (128 - width),
            ValueOp::Select => return Some(if a == 1 { b } else { operands[2] }),
            ValueOp::FunnelLeft | ValueOp::FunnelRight => {
                let by = operands[2] % u128::from(width);
                let left = if self == ValueOp::FunnelLeft { by } else { u128::from(width) - by };
                match left {
                    0 => a,
                    left if left == u128::from(width) => b,
                    left => a << left | b >> (u128::from(width) - left),
                }
            }
        };
        Some(result & mask(to))
    }
}

/// The largest number of `width` bits.
pub const fn mask(width: u32) -> u128 {
    if width >= 128 { u128::MAX } else { (1 << width) - 1 }
}

/// A number of `width` bits in two's complement.
pub const fn signed(value: u128, width: u32) -> i128 {
    let unused = 128 - width;
    (value << unused).cast_signed() >> unused
}

/// Whether a signed result exists and has at most `width` bits.
fn fits(result: Option<i128>, width: u32) -> bool {
    result.is_some_and(|result| signed(result.cast_unsigned() & mask(width), width) == result)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The operations of Rust on numbers of these types, which LLVM compiles.
    macro_rules! like_rust {
        ($unsigned:ty, $signed:ty) => {
            let width = <$unsigned>::BITS;
            let corners =
                [0, 1, 2, 3, 7, <$unsigned>::MAX, <$unsigned>::MAX - 1, <$signed>::MAX as $unsigned];
            let corners = corners.into_iter().chain([<$signed>::MIN as $unsigned, 0x5b, 0xa5]);
            let all: Vec<$unsigned> = corners.collect();
            for (a, b) in all.iter().flat_map(|&a| all.iter().map(move |&b| (a, b))) {
                let (sa, sb) = (a as $signed, b as $signed);
                let apply = |op: ValueOp| op.apply(width, width, &[a.into(), b.into()]);
                let test = |op: ValueOp| op.apply(width, 1, &[a.into(), b.into()]) == Some(1);
                let unsigned = |value: $unsigned| Some(u128::from(value));
                let same = |value: Option<$signed>| value.map(|value| u128::from(value as $unsigned));
                assert_eq!(apply(ValueOp::Add), unsigned(a.wrapping_add(b)));
                assert_eq!(apply(ValueOp::Sub), unsigned(a.wrapping_sub(b)));
                assert_eq!(apply(ValueOp::Mul), unsigned(a.wrapping_mul(b)));
                assert_eq!(apply(ValueOp::UDiv), a.checked_div(b).map(u128::from));
                assert_eq!(apply(ValueOp::URem), a.checked_rem(b).map(u128::from));
                assert_eq!(apply(ValueOp::SDiv), same(sa.checked_div(sb)));
                assert_eq!(apply(ValueOp::SRem), same(sa.checked_rem(sb)));
                let by = u32::try_from(b).ok().filter(|by| *by < width);
                assert_eq!(apply(ValueOp::Shl), by.map(|by| u128::from(a << by)));
                assert_eq!(apply(ValueOp::LShr), by.map(|by| u128::from(a >> by)));
                assert_eq!(apply(ValueOp::AShr), same(by.map(|by| sa >> by)));
                assert_eq!(
                    [test(ValueOp::Ult), test(ValueOp::Ule), test(ValueOp::Eq)],
                    [a < b, a <= b, a == b]
                );
                assert_eq!([test(ValueOp::Slt), test(ValueOp::Sle)], [sa < sb, sa <= sb]);
                assert_eq!(test(ValueOp::UAddOverflow), a.checked_add(b).is_none());
                assert_eq!(test(ValueOp::SAddOverflow), sa.checked_add(sb).is_none());
                assert_eq!(test(ValueOp::USubOverflow), a.checked_sub(b).is_none());
                assert_eq!(test(ValueOp::SSubOverflow), sa.checked_sub(sb).is_none());
                assert_eq!(test(ValueOp::UMulOverflow), a.checked_mul(b).is_none());
                assert_eq!(test(ValueOp::SMulOverflow), sa.checked_mul(sb).is_none());
                assert_eq!(apply(ValueOp::PopCount), Some(a.count_ones().into()));
                assert_eq!(apply(ValueOp::TrailingZeros), Some(a.trailing_zeros().into()));
                assert_eq!(apply(ValueOp::LeadingZeros), Some(a.leading_zeros().into()));
                assert_eq!(apply(ValueOp::BitReverse), unsigned(a.reverse_bits()));
                assert_eq!(apply(ValueOp::ByteSwap), unsigned(a.swap_bytes()));
                assert_eq!(apply(ValueOp::Not), unsigned(!a));
                let rotated = |op: ValueOp| op.apply(width, width, &[a.into(), a.into(), b.into()]);
                let by = (b % <$unsigned>::try_from(width).unwrap()) as u32;
                assert_eq!(rotated(ValueOp::FunnelLeft), unsigned(a.rotate_left(by)));
                assert_eq!(rotated(ValueOp::FunnelRight), unsigned(a.rotate_right(by)));
            }
        };
    }

    #[test]
    fn operations_are_those_of_the_machine() {
        like_rust!(u8, i8);
        like_rust!(u16, i16);
        like_rust!(u32, i32);
        like_rust!(u64, i64);
        like_rust!(u128, i128);
    }

    #[test]
    fn numbers_round_trip() {
        for op in ValueOp::ALL {
            assert_eq!(ValueOp::from_code(op as u8), Some(op));
        }
        assert_eq!([ValueOp::from_code(0), ValueOp::from_code(37)], [None, None]);
    }

    #[test]
    fn odd_widths() {
        assert_eq!(ValueOp::Add.apply(3, 3, &[7, 2]), Some(1));
        assert_eq!(ValueOp::SExt.apply(3, 5, &[4]), Some(0b11100));
        assert_eq!(ValueOp::Trunc.apply(5, 2, &[0b10110]), Some(0b10));
        assert_eq!(ValueOp::FunnelLeft.apply(3, 3, &[0b100, 0b011, 4]), Some(0b000));
        assert_eq!(ValueOp::SDiv.apply(1, 1, &[1, 1]), None, "-1 / -1 overflows in one bit");
        assert_eq!(ValueOp::LeadingZeros.apply(5, 5, &[0]), Some(5));
    }
}
