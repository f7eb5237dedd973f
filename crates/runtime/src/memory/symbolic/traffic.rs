//! Loads, stores and atomic updates: events where memory is shared, and otherwise expressions that memory holds.

use super::held;
use super::sharing::is_shared;
use super::terms::{self, CONCRETE, Operand, ones};
use super::{log, log_unknown};
use crate::platform::program_memory;
use crate::sched::{me, thread};
use crate::wire_log::symbolic_log::{self, Logged};
use heisen_abi::symbolic::update;
use heisen_trace::{Op, ValueOp};
use heisen_wire::symbolic::{kind, reason};

/// An access of at most 8 bytes.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    pub address: usize,
    pub size: usize,
    pub pc: usize,
}

impl Access {
    /// The bits of its value.
    fn bits(self) -> u32 {
        8 * self.size as u32
    }

    fn logged(self, kind: u8, op: Op, value: u64) -> Logged {
        let (address, size) = (self.address as u64, self.size as u32);
        Logged {
            kind,
            op: op as u8,
            address,
            value: value & ones(self.bits()),
            id: CONCRETE,
            size,
            pc: self.pc,
        }
    }

    /// Logs a read. Returns its unknown.
    fn reads(self, op: Op, value: u64) -> u32 {
        let bits = self.bits();
        terms::added(log_unknown(bits, self.logged(kind::READ, op, value)), bits)
    }

    /// Logs a write.
    fn writes(self, op: Op, id: u32, value: u64) {
        let id = held::fit(id, self.size);
        log(Logged { id, ..self.logged(kind::WRITE, op, value) });
    }

    /// The thread leaves a value for another one. Atomic, as no two such accesses are a race.
    pub fn leaves(self, id: u32, value: u64) {
        self.writes(Op::AtomicStore, id, value);
    }

    /// The thread takes a value that another one has left. Returns its expression.
    pub fn takes(self, value: u64) -> u32 {
        self.reads(Op::AtomicLoad, value)
    }

    /// The operation of a load or a store: what the thread was about to do there at its last scheduling point, if that
    /// was one of these two, and otherwise a plain access.
    fn op(self, atomic: Op, plain: Op) -> Op {
        let t = thread(me());
        let is_atomic = t.op().is_atomic() && t.object.get() == self.address;
        if is_atomic { atomic } else { plain }
    }

    /// Goes on with the value of the address.
    pub fn pins(self, address_id: u32) {
        terms::pin(address_id, self.address as u64, reason::ADDRESS, self.pc);
    }

    /// The thread has loaded a value. Returns its expression.
    #[inline]
    pub fn loads(self, value: u64) -> u32 {
        self.loads_by(self.op(Op::AtomicLoad, Op::MemRead), value)
    }

    fn loads_by(self, op: Op, value: u64) -> u32 {
        if is_shared(self.address, self.size, false) {
            self.reads(op, value)
        } else {
            held::load(self.address, self.size, value)
        }
    }

    /// The thread has read a value in an atomic access of the runtime. Returns its expression.
    pub fn loads_atomically(self, value: u64) -> u32 {
        self.loads_by(Op::AtomicLoad, value)
    }

    /// An expression with the bits of the access.
    pub fn fit(self, id: u32) -> u32 {
        held::fit(id, self.size)
    }

    /// The thread has stored a value.
    #[inline]
    pub fn stores(self, id: u32, value: u64) {
        if is_shared(self.address, self.size, true) {
            self.writes(self.op(Op::AtomicStore, Op::MemWrite), id, value);
        } else {
            held::store(self.address, self.size, id, value);
        }
    }

    /// The thread has changed a value in one step. Returns the expression of the old value.
    pub fn updates(self, how: u32, operand: Operand, old: u64) -> u32 {
        let shared = is_shared(self.address, self.size, true);
        let before =
            if shared { self.reads(Op::AtomicRmw, old) } else { held::load(self.address, self.size, old) };
        let operand = Operand::of(held::fit(operand.id, self.size), operand.value);
        let id = self.updated(how, Operand::of(before, old), operand);
        let value = program_memory::load(self.address, self.size);
        if shared {
            self.writes(Op::AtomicRmw, id, value);
        } else {
            held::store(self.address, self.size, id, value);
        }
        before
    }

    /// The expression of an updated value.
    fn updated(self, how: u32, old: Operand, operand: Operand) -> u32 {
        let bits = self.bits();
        let binary = |op| terms::binary(op, bits, bits, old, operand);
        let smaller = |op, first: Operand, second: Operand| {
            let condition = terms::binary(op, bits, 1, old, operand);
            match condition {
                // The values decide: neither is an expression, or the comparison does not depend on them.
                CONCRETE if old.id == CONCRETE && operand.id == CONCRETE => CONCRETE,
                CONCRETE => second.id,
                condition => terms::select(bits, condition, first, second),
            }
        };
        match how {
            update::EXCHANGE => operand.id,
            update::ADD => binary(ValueOp::Add),
            update::SUB => binary(ValueOp::Sub),
            update::AND => binary(ValueOp::And),
            update::OR => binary(ValueOp::Or),
            update::XOR => binary(ValueOp::Xor),
            update::NAND => match binary(ValueOp::And) {
                CONCRETE => CONCRETE,
                both => terms::unary(ValueOp::Not, bits, bits, both),
            },
            update::MAX => smaller(ValueOp::Slt, operand, old),
            update::MIN => smaller(ValueOp::Slt, old, operand),
            update::UMAX => smaller(ValueOp::Ult, operand, old),
            update::UMIN => smaller(ValueOp::Ult, old, operand),
            _ => CONCRETE,
        }
    }

    /// The thread has compared and, if both were equal, exchanged a value. Returns the expression of the old value.
    pub fn compares(self, expected: Operand, new: Operand, old: u64) -> u32 {
        let (old, bits) = (old & ones(self.bits()), self.bits());
        let equal = old == expected.value & ones(bits);
        // A weak exchange may fail although both are equal. That is a read.
        let exchanged = equal && program_memory::load(self.address, self.size) == new.value & ones(bits);
        if equal && !exchanged {
            return self.loads(old);
        }
        let shared = is_shared(self.address, self.size, exchanged);
        let before =
            if shared { self.reads(Op::AtomicCas, old) } else { held::load(self.address, self.size, old) };
        let expected = Operand::of(held::fit(expected.id, self.size), expected.value);
        let condition = terms::binary(ValueOp::Eq, bits, 1, Operand::of(before, old), expected);
        terms::asserts(kind::BRANCH, condition, equal, self.pc);
        if exchanged && shared {
            self.writes(Op::AtomicCas, new.id, new.value);
        } else if exchanged {
            held::store(self.address, self.size, new.id, new.value);
        }
        before
    }
}

/// The running thread has written a word of memory in another way than by a store: the word may be shared or not.
pub fn wrote(access: Access, id: u32, value: u64) {
    if symbolic_log::is_on() {
        access.stores(id, value);
    }
}
