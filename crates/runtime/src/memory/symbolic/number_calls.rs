//! What the functions that read numbers, and those of `<ctype.h>`, do to expressions.

use super::call::{Call, Value};
use super::terms::CONCRETE;
use crate::platform::glibc::real;
use crate::platform::program_memory;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use heisen_trace::ValueOp;

/// The tables of a locale have entries for these characters.
const CHARACTERS: core::ops::Range<i64> = -128..256;

/// A table that maps characters, and the last one that was found to be that of ASCII.
struct Table {
    /// Its first character that changes, and that to which it changes.
    change: [u8; 2],
    known: AtomicUsize,
}

static LOWER: Table = Table { change: [b'A', b'a'], known: AtomicUsize::new(0) };
static UPPER: Table = Table { change: [b'a', b'A'], known: AtomicUsize::new(0) };

impl Table {
    fn entry(table: usize, character: i64) -> i64 {
        let at = table.wrapping_add_signed(4 * character as isize);
        (program_memory::load(at, 4) as u32).cast_signed().into()
    }

    fn ascii(&self, character: i64) -> i64 {
        let [first, to] = self.change.map(i64::from);
        if (first..first + 26).contains(&character) { character - first + to } else { character }
    }

    /// Whether a table is that of ASCII, which the locale decides, from 0 on.
    fn is_ascii(&self, table: usize) -> bool {
        if self.known.load(Relaxed) == table {
            return true;
        }
        let is = (0..CHARACTERS.end).all(|character| Table::entry(table, character) == self.ascii(character));
        if is {
            self.known.store(table, Relaxed);
        }
        is
    }

    /// The character that one of 32 bits is mapped to.
    fn maps(&self, call: &Call, table: usize, character: Value) -> Value {
        let number = i64::from((character.value as u32).cast_signed());
        let is_negative = Value::constant(1 << 31, 32).binary(ValueOp::Ule, character);
        if character.is_expression() && self.is_ascii(table) && !call.holds(is_negative) {
            let [first, to] = self.change;
            let changed = character.minus(first.into()).plus(to.into());
            return character.is_in(first, 26).select(changed, character);
        }
        call.pins(character);
        let result = if CHARACTERS.contains(&number) { Table::entry(table, number) } else { number };
        Value::constant(result.cast_unsigned(), 32)
    }
}

/// `tolower`, of 32 bits.
pub fn lower(call: &Call, character: Value) -> Value {
    LOWER.maps(call, program_memory::load(real!(__ctype_tolower_loc, fn() -> usize), 8) as usize, character)
}

/// `toupper`, of 32 bits.
pub fn upper(call: &Call, character: Value) -> Value {
    UPPER.maps(call, program_memory::load(real!(__ctype_toupper_loc, fn() -> usize), 8) as usize, character)
}

/// The type of a number that a function reads.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Whether it is signed.
    pub signed: bool,
    /// The bits of the result; the number is read with 64 bits.
    pub bits: u32,
}

/// Reads a decimal number from the string at the first argument, as `atoi`. Returns its expression.
pub fn reads(call: &Call, at: usize, kind: Kind) -> u32 {
    call.addresses(&[at]);
    let (number, _) = number(call, at, 10, kind.signed);
    if number.is_expression() { number.resized(kind.bits).id } else { CONCRETE }
}

/// Likewise, as `strtol`: with a base, and stores the address of its end at `end`, unless that is 0.
pub fn reads_to(call: &Call, at: usize, end: usize, base: Value, kind: Kind) -> u32 {
    call.addresses(&[at, end]);
    call.pins(base);
    let (number, stop) = number(call, at, base.value, kind.signed);
    if end != 0 && is_base(base.value) {
        call.writes(end, 8, stop as u64);
    }
    number.id
}

/// Whether there are numbers of this base. Otherwise nothing is read or stored.
pub fn is_base(base: u64) -> bool {
    base == 0 || (2..=36).contains(&base)
}

/// The bytes that reading a number reads: up to the first that is no part of it.
pub fn extent(at: usize, base: u64) -> usize {
    if !is_base(base) {
        return 0;
    }
    let byte = |index: usize| program_memory::load(at + index, 1) as u8;
    let mut index = 0;
    while matches!(byte(index), b' ' | 9..=13) {
        index += 1;
    }
    index += usize::from(matches!(byte(index), b'-' | b'+'));
    let mut base = base;
    if byte(index) == b'0' && (base == 0 || base == 16) {
        index += 1;
        let hexadecimal = byte(index) | 32 == b'x';
        index += usize::from(hexadecimal);
        base = if hexadecimal { 16 } else { base.max(8) };
    } else if base == 0 {
        base = 10;
    }
    while char::from(byte(index)).to_digit(36).is_some_and(|digit| u64::from(digit) < base) {
        index += 1;
    }
    index + 1
}

fn number(call: &Call, start: usize, base: u64, signed: bool) -> (Value, usize) {
    let zero = Value::constant(0, 64);
    if !is_base(base) {
        return (zero, start);
    }
    let mut at = start;
    let is_space = |byte: Value| byte.is(b' '.into()).or(byte.is_in(9, 5));
    while call.holds(is_space(call.byte(at))) {
        at += 1;
    }
    let negative = call.holds(call.byte(at).is(b'-'.into()));
    if negative || call.holds(call.byte(at).is(b'+'.into())) {
        at += 1;
    }
    let mut base = base;
    let mut empty_end = start;
    if (base == 0 || base == 16) && call.holds(call.byte(at).is(b'0'.into())) {
        let letter = call.byte(at + 1);
        if call.holds(letter.is(b'x'.into()).or(letter.is(b'X'.into()))) {
            // Without digits after it, only the zero is a number.
            empty_end = at + 1;
            at += 2;
            base = 16;
        } else {
            base = base.max(8);
        }
    }
    let base = if base == 0 { 10 } else { base };
    let (mut sum, mut digits, mut most, mut overflows) = (zero, 0, 0u128, false);
    while let Some(digit) = digit(call, call.byte(at), base) {
        let factor = Value::constant(base, 64);
        // As long as no number of so many digits overflows, nothing depends on that.
        most = most.saturating_mul(base.into()).saturating_add(u128::from(base) - 1);
        if most > u128::from(u64::MAX) && !overflows {
            let scaled = sum.binary(ValueOp::Mul, factor);
            overflows = call.holds(sum.binary(ValueOp::UMulOverflow, factor))
                || call.holds(scaled.binary(ValueOp::UAddOverflow, digit));
        }
        sum = sum.binary(ValueOp::Mul, factor).binary(ValueOp::Add, digit);
        digits += 1;
        at += 1;
    }
    if digits == 0 {
        return (zero, empty_end);
    }
    let limit = if !signed { u64::MAX } else { i64::MAX as u64 + u64::from(negative) };
    let beyond = |limit| Value::constant(limit, 64).binary(ValueOp::Ult, sum);
    if overflows || most > u128::from(limit) && call.holds(beyond(limit)) {
        return (Value::constant(limit, 64), at);
    }
    (if negative { zero.binary(ValueOp::Sub, sum) } else { sum }, at)
}

/// The value of a digit, of 64 bits; `None` if the byte is no digit of this base.
fn digit(call: &Call, byte: Value, base: u64) -> Option<Value> {
    if call.holds(byte.is_in(b'0', base.min(10))) {
        return Some(byte.minus(b'0'.into()).resized(64));
    }
    let letters = base.saturating_sub(10);
    for first in [b'a', b'A'] {
        if letters > 0 && call.holds(byte.is_in(first, letters)) {
            return Some(byte.minus(first.into()).plus(10).resized(64));
        }
    }
    None
}
