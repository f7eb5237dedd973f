//! The operations of LLVM on integers of 1 to 128 bits. Their meaning is written here, once: terms are folded by it, and
//! tests compare the circuits with it.

/// An operation. Operands are unsigned numbers below 2 to the power of their width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// The sum, without the carry.
    Add,
    /// The difference, without the borrow.
    Sub,
    /// The lower half of the product.
    Mul,
    /// The unsigned quotient. Undefined for the divisor 0.
    UDiv,
    /// The signed quotient, rounded towards 0. Undefined for the divisor 0 and on overflow.
    SDiv,
    /// The unsigned remainder. Undefined for the divisor 0.
    URem,
    /// The signed remainder, with the sign of the dividend. Undefined where [`Op::SDiv`] is.
    SRem,
    /// Shifts to the left. Undefined for distances of at least the width.
    Shl,
    /// Shifts to the right and fills with zeros. Undefined for distances of at least the width.
    LShr,
    /// Shifts to the right and fills with the sign. Undefined for distances of at least the width.
    AShr,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Whether both are equal.
    Eq,
    /// Whether the first is smaller, unsigned.
    Ult,
    /// Whether the first is smaller or equal, unsigned.
    Ule,
    /// Whether the first is smaller, signed.
    Slt,
    /// Whether the first is smaller or equal, signed.
    Sle,
    /// Whether an unsigned sum overflows.
    UAddOverflow,
    /// Whether a signed sum overflows.
    SAddOverflow,
    /// Whether an unsigned difference overflows.
    USubOverflow,
    /// Whether a signed difference overflows.
    SSubOverflow,
    /// Whether an unsigned product overflows.
    UMulOverflow,
    /// Whether a signed product overflows.
    SMulOverflow,
    /// All bits inverted.
    Not,
    /// Zeros in front.
    ZExt,
    /// Copies of the sign in front.
    SExt,
    /// The lowest bits.
    Trunc,
    /// The number of ones.
    PopCount,
    /// The number of zeros behind the last one; the width for 0.
    TrailingZeros,
    /// The number of zeros before the first one; the width for 0.
    LeadingZeros,
    /// The bytes in reverse order. The width is a multiple of 16.
    ByteSwap,
    /// The bits in reverse order.
    BitReverse,
    /// The second operand if the first, of one bit, is 1; otherwise the third.
    Select,
    /// The upper half of the first and second operand in a row, shifted to the left by the third modulo the width.
    FunnelLeft,
    /// The lower half of the first and second operand in a row, shifted to the right by the third modulo the width.
    FunnelRight,
}

impl Op {
    /// All operations.
    pub const ALL: [Op; 36] = [
        Op::Add,
        Op::Sub,
        Op::Mul,
        Op::UDiv,
        Op::SDiv,
        Op::URem,
        Op::SRem,
        Op::Shl,
        Op::LShr,
        Op::AShr,
        Op::And,
        Op::Or,
        Op::Xor,
        Op::Eq,
        Op::Ult,
        Op::Ule,
        Op::Slt,
        Op::Sle,
        Op::UAddOverflow,
        Op::SAddOverflow,
        Op::USubOverflow,
        Op::SSubOverflow,
        Op::UMulOverflow,
        Op::SMulOverflow,
        Op::Not,
        Op::ZExt,
        Op::SExt,
        Op::Trunc,
        Op::PopCount,
        Op::TrailingZeros,
        Op::LeadingZeros,
        Op::ByteSwap,
        Op::BitReverse,
        Op::Select,
        Op::FunnelLeft,
        Op::FunnelRight,
    ];

    /// How many operands it has.
    pub const fn operands(self) -> usize {
        match self {
            Op::Not | Op::ZExt | Op::SExt | Op::Trunc => 1,
            Op::PopCount | Op::TrailingZeros | Op::LeadingZeros | Op::ByteSwap | Op::BitReverse => 1,
            Op::Select | Op::FunnelLeft | Op::FunnelRight => 3,
            _ => 2,
        }
    }

    /// Whether its result is one bit: a comparison, or whether something overflows.
    pub const fn is_test(self) -> bool {
        matches!(
            self,
            Op::Eq
                | Op::Ult
                | Op::Ule
                | Op::Slt
                | Op::Sle
                | Op::UAddOverflow
                | Op::SAddOverflow
                | Op::USubOverflow
                | Op::SSubOverflow
                | Op::UMulOverflow
                | Op::SMulOverflow
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
            Op::Add => a.wrapping_add(b),
            Op::Sub => a.wrapping_sub(b),
            Op::Mul => a.wrapping_mul(b),
            Op::UDiv => a.checked_div(b)?,
            Op::URem => a.checked_rem(b)?,
            Op::SDiv | Op::SRem if b == 0 || (sa == least && sb == -1) => return None,
            Op::SDiv => (sa / sb).cast_unsigned(),
            Op::SRem => (sa % sb).cast_unsigned(),
            Op::Shl | Op::LShr | Op::AShr if b >= u128::from(width) => return None,
            Op::Shl => a << b,
            Op::LShr => a >> b,
            Op::AShr => (sa >> b).cast_unsigned(),
            Op::And => a & b,
            Op::Or => a | b,
            Op::Xor => a ^ b,
            Op::Eq => bit(a == b),
            Op::Ult => bit(a < b),
            Op::Ule => bit(a <= b),
            Op::Slt => bit(sa < sb),
            Op::Sle => bit(sa <= sb),
            Op::UAddOverflow => bit(a.checked_add(b).is_none_or(|sum| sum > mask(width))),
            Op::USubOverflow => bit(a < b),
            Op::UMulOverflow => bit(a.checked_mul(b).is_none_or(|product| product > mask(width))),
            Op::SAddOverflow => bit(!fits(sa.checked_add(sb), width)),
            Op::SSubOverflow => bit(!fits(sa.checked_sub(sb), width)),
            Op::SMulOverflow => bit(!fits(sa.checked_mul(sb), width)),
            Op::Not => !a,
            Op::ZExt | Op::Trunc => a,
            Op::SExt => sa.cast_unsigned(),
            Op::PopCount => a.count_ones().into(),
            Op::TrailingZeros => a.trailing_zeros().min(width).into(),
            Op::LeadingZeros => (a.leading_zeros() - (128 - width)).into(),
            Op::ByteSwap => a.swap_bytes() >> (128 - width),
            Op::BitReverse => a.reverse_bits() >> (128 - width),
            Op::Select => return Some(if a == 1 { b } else { operands[2] }),
            Op::FunnelLeft | Op::FunnelRight => {
                let by = operands[2] % u128::from(width);
                let left = if self == Op::FunnelLeft { by } else { u128::from(width) - by };
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
                let apply = |op: Op| op.apply(width, width, &[a.into(), b.into()]);
                let test = |op: Op| op.apply(width, 1, &[a.into(), b.into()]) == Some(1);
                let unsigned = |value: $unsigned| Some(u128::from(value));
                let same = |value: Option<$signed>| value.map(|value| u128::from(value as $unsigned));
                assert_eq!(apply(Op::Add), unsigned(a.wrapping_add(b)));
                assert_eq!(apply(Op::Sub), unsigned(a.wrapping_sub(b)));
                assert_eq!(apply(Op::Mul), unsigned(a.wrapping_mul(b)));
                assert_eq!(apply(Op::UDiv), a.checked_div(b).map(u128::from));
                assert_eq!(apply(Op::URem), a.checked_rem(b).map(u128::from));
                assert_eq!(apply(Op::SDiv), same(sa.checked_div(sb)));
                assert_eq!(apply(Op::SRem), same(sa.checked_rem(sb)));
                let by = u32::try_from(b).ok().filter(|by| *by < width);
                assert_eq!(apply(Op::Shl), by.map(|by| u128::from(a << by)));
                assert_eq!(apply(Op::LShr), by.map(|by| u128::from(a >> by)));
                assert_eq!(apply(Op::AShr), same(by.map(|by| sa >> by)));
                assert_eq!([test(Op::Ult), test(Op::Ule), test(Op::Eq)], [a < b, a <= b, a == b]);
                assert_eq!([test(Op::Slt), test(Op::Sle)], [sa < sb, sa <= sb]);
                assert_eq!(test(Op::UAddOverflow), a.checked_add(b).is_none());
                assert_eq!(test(Op::SAddOverflow), sa.checked_add(sb).is_none());
                assert_eq!(test(Op::USubOverflow), a.checked_sub(b).is_none());
                assert_eq!(test(Op::SSubOverflow), sa.checked_sub(sb).is_none());
                assert_eq!(test(Op::UMulOverflow), a.checked_mul(b).is_none());
                assert_eq!(test(Op::SMulOverflow), sa.checked_mul(sb).is_none());
                assert_eq!(apply(Op::PopCount), Some(a.count_ones().into()));
                assert_eq!(apply(Op::TrailingZeros), Some(a.trailing_zeros().into()));
                assert_eq!(apply(Op::LeadingZeros), Some(a.leading_zeros().into()));
                assert_eq!(apply(Op::BitReverse), unsigned(a.reverse_bits()));
                assert_eq!(apply(Op::ByteSwap), unsigned(a.swap_bytes()));
                assert_eq!(apply(Op::Not), unsigned(!a));
                let rotated = |op: Op| op.apply(width, width, &[a.into(), a.into(), b.into()]);
                let by = (b % <$unsigned>::try_from(width).unwrap()) as u32;
                assert_eq!(rotated(Op::FunnelLeft), unsigned(a.rotate_left(by)));
                assert_eq!(rotated(Op::FunnelRight), unsigned(a.rotate_right(by)));
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
    fn odd_widths() {
        assert_eq!(Op::Add.apply(3, 3, &[7, 2]), Some(1));
        assert_eq!(Op::SExt.apply(3, 5, &[4]), Some(0b11100));
        assert_eq!(Op::Trunc.apply(5, 2, &[0b10110]), Some(0b10));
        assert_eq!(Op::FunnelLeft.apply(3, 3, &[0b100, 0b011, 4]), Some(0b000));
        assert_eq!(Op::SDiv.apply(1, 1, &[1, 1]), None, "-1 / -1 overflows in one bit");
        assert_eq!(Op::LeadingZeros.apply(5, 5, &[0]), Some(5));
    }
}
