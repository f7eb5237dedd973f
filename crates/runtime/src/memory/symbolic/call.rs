//! A call of a C library function by instrumented code, whose arguments and memory may be expressions. The library's code is
//! not instrumented; [`string_calls`](super::string_calls) and [`number_calls`](super::number_calls) say what it does to expressions.

use super::callbacks::FRAME;
use super::is_on;
use super::terms::{self, CONCRETE, Operand, ones};
use super::traffic::Access;
use crate::platform::program_memory;
use heisen_trace::ValueOp;
use heisen_wire::symbolic::{kind, reason};

/// A value of the program, and its expression, which may be 0.
#[derive(Clone, Copy, Debug)]
pub struct Value {
    pub id: u32,
    pub value: u64,
    bits: u32,
}

impl Value {
    pub fn constant(value: u64, bits: u32) -> Value {
        Value { id: CONCRETE, value: value & ones(bits), bits }
    }

    pub fn is_expression(self) -> bool {
        self.id != CONCRETE
    }

    pub fn operand(self) -> Operand {
        Operand::of(self.id, self.value)
    }

    fn result(op: ValueOp, from: u32, to: u32, operands: &[Value]) -> u64 {
        let mut values = [0u128; 3];
        for (value, operand) in values.iter_mut().zip(operands) {
            *value = operand.value.into();
        }
        op.apply(from, to, &values[..operands.len()]).unwrap_or(0) as u64
    }

    fn unary(self, op: ValueOp, bits: u32) -> Value {
        let id = if self.is_expression() { terms::unary(op, self.bits, bits, self.id) } else { CONCRETE };
        Value { id, value: Value::result(op, self.bits, bits, &[self]), bits }
    }

    pub fn binary(self, op: ValueOp, other: Value) -> Value {
        let bits = if op.is_test() { 1 } else { self.bits };
        let id = terms::binary(op, self.bits, bits, self.operand(), other.operand());
        Value { id, value: Value::result(op, self.bits, bits, &[self, other]), bits }
    }

    /// With zeros in front, or cut off, to have so many bits.
    pub fn resized(self, bits: u32) -> Value {
        self.unary(if bits < self.bits { ValueOp::Trunc } else { ValueOp::ZExt }, bits)
    }

    pub fn plus(self, number: u64) -> Value {
        self.binary(ValueOp::Add, Value::constant(number, self.bits))
    }

    pub fn minus(self, number: u64) -> Value {
        self.binary(ValueOp::Sub, Value::constant(number, self.bits))
    }

    /// Whether it is another value.
    pub fn equals(self, other: Value) -> Value {
        self.binary(ValueOp::Eq, other)
    }

    /// Whether it is this number.
    pub fn is(self, number: u64) -> Value {
        self.binary(ValueOp::Eq, Value::constant(number, self.bits))
    }

    /// Whether it is below this number, unsigned.
    pub fn below(self, number: u64) -> Value {
        self.binary(ValueOp::Ult, Value::constant(number, self.bits))
    }

    /// Whether it is from `first` on one of so many numbers.
    pub fn is_in(self, first: u8, count: u64) -> Value {
        self.minus(first.into()).below(count)
    }

    pub fn or(self, other: Value) -> Value {
        self.binary(ValueOp::Or, other)
    }

    /// One of both, by this value of one bit.
    pub fn select(self, yes: Value, no: Value) -> Value {
        let id = match self.id {
            CONCRETE if self.value != 0 => yes.id,
            CONCRETE => no.id,
            condition => terms::select(yes.bits, condition, yes.operand(), no.operand()),
        };
        Value { id, value: if self.value != 0 { yes.value } else { no.value }, bits: yes.bits }
    }
}

/// A call.
#[derive(Debug)]
pub struct Call {
    function: usize,
    pub pc: usize,
    arguments: [u32; 4],
}

impl Call {
    /// Instrumented code at `pc` calls the function at this address, with so many arguments. Comes before other threads
    /// may run.
    pub fn begin(function: usize, count: usize, pc: usize) -> Option<Call> {
        is_on().then(|| {
            let mut arguments = FRAME.take_arguments(function);
            // Beyond them are those of an earlier call.
            arguments[count..].fill(CONCRETE);
            Call { function, pc, arguments }
        })
    }

    /// An argument of so many bits that is passed in this word.
    pub fn argument(&self, number: usize, word: usize, bits: u32) -> Value {
        Value { id: self.arguments[number], value: word as u64 & ones(bits), bits }
    }

    /// The call goes on with the value of an expression. Every other value is a way of its own.
    pub fn pins(&self, value: Value) {
        terms::pin(value.id, value.value, reason::ADDRESS, self.pc);
    }

    /// The first arguments are these addresses.
    pub fn addresses(&self, all: &[usize]) {
        for (number, &address) in all.iter().enumerate() {
            self.pins(self.argument(number, address, 64));
        }
    }

    /// An argument is the size of a block of memory.
    pub fn size(&self, number: usize, bytes: usize) {
        terms::pin(self.arguments[number], bytes as u64, reason::SIZE, self.pc);
    }

    /// The function reads a byte.
    pub fn byte(&self, at: usize) -> Value {
        let value = program_memory::load(at, 1);
        Value { id: self.access(at, 1).loads(value), value, bits: 8 }
    }

    /// The function writes a number of so many bytes.
    pub fn writes(&self, at: usize, size: usize, value: u64) {
        self.access(at, size).stores(CONCRETE, value);
    }

    fn access(&self, address: usize, size: usize) -> Access {
        Access { address, size, pc: self.pc }
    }

    /// The function goes the way of this condition, a value of one bit.
    pub fn holds(&self, condition: Value) -> bool {
        terms::asserts(kind::BRANCH, condition.id, condition.value != 0, self.pc);
        condition.value != 0
    }

    /// The function returns an expression, or 0.
    pub fn returns(&self, id: u32) {
        FRAME.returns(self.function, id);
    }
}
