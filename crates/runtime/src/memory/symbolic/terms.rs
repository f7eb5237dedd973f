//! Nodes of the trace: operations on expressions. Equal nodes are found again by a hash, so that loops do not repeat them.
//!
//! Of each node is remembered which of its bits may be 1. An expression that nothing depends on any more, such as a bit
//! buffer whose unknown bits were shifted out, becomes concrete again by that.

use super::log;
use super::reserved::{CACHE, tables};
use crate::sched::me;
use crate::wire_log::symbolic_log::{self, Logged};
use heisen_abi::symbolic::{operation, unpack_operation};
use heisen_trace::ValueOp;
use heisen_trace::hash::scatter;
use heisen_trace::value_op::mask;
use heisen_wire::symbolic::{REASONS, kind};

/// The id of a value that does not depend on an unknown.
pub const CONCRETE: u32 = 0;

/// An operand: the id of its expression, and its value, which counts if the id is 0.
#[derive(Clone, Copy, Debug)]
pub struct Operand {
    pub id: u32,
    pub value: u64,
}

impl Operand {
    pub fn of(id: u32, value: u64) -> Operand {
        Operand { id, value }
    }

    pub fn constant(value: u64) -> Operand {
        Operand { id: CONCRETE, value }
    }

    pub fn node(id: u32) -> Operand {
        Operand { id, value: 0 }
    }

    /// Which bits of an operand of `width` bits may be 1.
    fn bits(self, width: u32) -> u64 {
        if self.id == CONCRETE { self.value & ones(width) } else { tables().bits[self.id as usize].get() }
    }

    fn is(self, value: u64) -> bool {
        self.id == CONCRETE && self.value == value
    }
}

/// The largest number of `width` bits.
pub fn ones(width: u32) -> u64 {
    mask(width.min(64)) as u64
}

/// The bits of a node.
pub fn width(id: u32) -> u32 {
    unpack_operation(symbolic_log::node(id)[0] as u32).2
}

/// An unknown was added.
pub fn added(id: u32, width: u32) -> u32 {
    if id != CONCRETE {
        tables().bits[id as usize].set(ones(width));
        tables().known_to[id as usize].set(0);
    }
    id
}

/// The id of `op` on an operand of `from` bits, with a result of `to` bits.
pub fn unary(op: ValueOp, from: u32, to: u32, a: u32) -> u32 {
    apply(op, from, to, [Operand::node(a), Operand::constant(0), Operand::constant(0)])
}

/// The id of `op` on two operands of `from` bits, with a result of `to` bits.
pub fn binary(op: ValueOp, from: u32, to: u32, a: Operand, b: Operand) -> u32 {
    apply(op, from, to, [a, b, Operand::constant(0)])
}

/// The id of `a` or `b`, of `width` bits, by a condition that is an expression.
pub fn select(width: u32, condition: u32, a: Operand, b: Operand) -> u32 {
    apply(ValueOp::Select, width, width, [Operand::node(condition), a, b])
}

/// The id of an operation. It is 0 if no operand is an expression, if the result does not depend on them, or if the trace
/// is full.
fn apply(op: ValueOp, from: u32, to: u32, operands: [Operand; 3]) -> u32 {
    if !symbolic_log::is_on() || operands.iter().all(|operand| operand.id == CONCRETE) {
        return CONCRETE;
    }
    if let Some(same) = unchanged(op, from, to, &operands) {
        return same;
    }
    let bits = possible(op, from, to, &operands);
    if bits == 0 {
        return CONCRETE;
    }
    let [a, b, c] = operands;
    let used = &operands[..op.operands()];
    let mut values = used.iter().filter(|one| one.id == CONCRETE).map(|one| one.value & ones(from));
    let words = [
        u64::from(operation(op as u8, from, to)) | u64::from(a.id) << 32,
        u64::from(b.id) | u64::from(c.id) << 32,
        values.next().unwrap_or(0),
        values.next().unwrap_or(0),
    ];
    let hash = words.iter().fold(0, |hash, word| scatter(hash ^ word));
    let place = &tables().cache[hash as usize % CACHE];
    let found = place.get();
    if found != 0 && found <= symbolic_log::node_count() && symbolic_log::node(found) == words {
        return found;
    }
    let id = symbolic_log::push_node(words);
    if id != CONCRETE {
        tables().bits[id as usize].set(bits);
        tables().known_to[id as usize].set(0);
        place.set(id);
    }
    id
}

/// The operand that the result is equal to, if there is one.
fn unchanged(op: ValueOp, from: u32, to: u32, [a, b, _]: &[Operand; 3]) -> Option<u32> {
    match op {
        ValueOp::Add | ValueOp::Or | ValueOp::Xor if a.is(0) => Some(b.id),
        ValueOp::Add | ValueOp::Or | ValueOp::Xor | ValueOp::Sub if b.is(0) => Some(a.id),
        ValueOp::Shl | ValueOp::LShr | ValueOp::AShr if b.is(0) => Some(a.id),
        ValueOp::And if b.id == CONCRETE && a.bits(from) & !b.value == 0 => Some(a.id),
        ValueOp::And if a.id == CONCRETE && b.bits(from) & !a.value == 0 => Some(b.id),
        ValueOp::ZExt | ValueOp::SExt | ValueOp::Trunc if from == to => Some(a.id),
        ValueOp::Trunc => {
            let words = symbolic_log::node(a.id);
            let (inner, width, _) = unpack_operation(words[0] as u32);
            (inner == ValueOp::ZExt as u8 && width == to).then_some((words[0] >> 32) as u32)
        }
        _ => None,
    }
}

/// Which bits of a result may be 1. It is 0 for a result that is 0 whatever the unknowns are.
fn possible(op: ValueOp, from: u32, to: u32, [a, b, c]: &[Operand; 3]) -> u64 {
    let all = ones(to);
    let distance = b.value.min(64) as u32;
    let (va, vb) = (a.bits(from), b.bits(from));
    match op {
        ValueOp::And => va & vb,
        ValueOp::Or | ValueOp::Xor => va | vb,
        ValueOp::Shl if b.id == CONCRETE => va.checked_shl(distance).unwrap_or(0) & all,
        ValueOp::LShr if b.id == CONCRETE => va.checked_shr(distance).unwrap_or(0),
        ValueOp::ZExt | ValueOp::Trunc => va & all,
        // The carry reaches one bit beyond the highest of both.
        ValueOp::Add => ones(65 - (va | vb).leading_zeros()) & all,
        ValueOp::Select => vb | c.bits(from),
        ValueOp::Eq if a.id == CONCRETE && a.value & !vb != 0 => 0,
        ValueOp::Eq if b.id == CONCRETE && b.value & !va != 0 => 0,
        // The first is at least a number that the second cannot exceed.
        ValueOp::Ult if a.id == CONCRETE && a.value >= vb => 0,
        ValueOp::Ule if a.id == CONCRETE && a.value > vb => 0,
        _ => all,
    }
}

/// Whether the running thread has asserted a value of a node already. It has from now on.
fn is_known(id: u32) -> bool {
    let number = me() as u16 + 1;
    tables().known_to[id as usize].replace(number) == number
}

/// The running thread branches on a condition, or assumes it: logs that, once for each condition.
pub fn asserts(what: u8, id: u32, holds: bool, pc: usize) {
    if id != CONCRETE && symbolic_log::is_on() && !is_known(id) {
        log(Logged { kind: what, op: 0, address: 0, value: holds.into(), id, size: 0, pc });
    }
}

/// The running thread has divided, so the divisor was not 0, and the quotient did not overflow: the program would have ended
/// otherwise. Logs that as branches, for what is divided need not come up in any other event.
pub fn divided(op: ValueOp, width: u32, a: Operand, b: Operand, pc: usize) {
    let signed = match op {
        ValueOp::UDiv | ValueOp::URem => false,
        ValueOp::SDiv | ValueOp::SRem => true,
        _ => return,
    };
    let equals = |of: Operand, value: u64| binary(ValueOp::Eq, width, 1, of, Operand::constant(value));
    asserts(kind::BRANCH, equals(b, 0), false, pc);
    let (least, minus_one) = (1 << (width - 1), ones(width));
    let may_be = |of: Operand, value: u64| match of.id {
        CONCRETE => of.value & ones(width) == value,
        _ => value & !of.bits(width) == 0,
    };
    if signed && may_be(a, least) && may_be(b, minus_one) {
        let overflows = match (equals(a, least), equals(b, minus_one)) {
            (CONCRETE, only) | (only, CONCRETE) => only,
            (is_least, is_minus_one) => {
                binary(ValueOp::And, 1, 1, Operand::node(is_least), Operand::node(is_minus_one))
            }
        };
        asserts(kind::BRANCH, overflows, false, pc);
    }
}

/// The running thread goes on with the value of an expression: logs that, once for each expression.
pub fn pin(id: u32, value: u64, reason: u32, pc: usize) {
    if id == CONCRETE || !symbolic_log::is_on() || is_known(id) {
        return;
    }
    symbolic_log::count(&symbolic_log::header().pinned[reason as usize % REASONS]);
    let value = value & ones(width(id));
    log(Logged { kind: kind::PIN, op: 0, address: 0, value, id, size: reason, pc });
}
