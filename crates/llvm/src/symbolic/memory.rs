//! Plans accesses to memory: loads, stores, atomics, and blocks of memory.

use crate::symbolic::ir::Value;
use crate::symbolic::layout::Leaf;
use crate::symbolic::opcode::instruction;
use crate::symbolic::plan::Planner;
use crate::symbolic::step::{Concrete, Id, Operand, Step};
use heisen_abi::symbolic::update;
use heisen_trace::symbolic::PinReason;
use heisen_trace::value_op::ValueOp;

/// The operations of `atomicrmw`, in LLVM's order, up to those on floating-point numbers.
const UPDATES: [u32; 11] = [
    update::EXCHANGE,
    update::ADD,
    update::SUB,
    update::AND,
    update::NAND,
    update::OR,
    update::XOR,
    update::MAX,
    update::MIN,
    update::UMAX,
    update::UMIN,
];

impl Planner<'_> {
    pub(super) fn load(&mut self, at: Value) {
        let address = self.ir.operand(at, 0);
        if let Some(&name) = self.shared.foreign.get(&address) {
            self.push(Step::Foreign { name });
        }
        if self.is_constant_memory(address) {
            return self.pin(address, PinReason::Address);
        }
        self.loaded(at, address);
    }

    /// Whether an address is in a variable that nobody writes: what lies there is no expression.
    fn is_constant_memory(&self, mut address: Value) -> bool {
        while self.ir.is_instruction(address) && self.ir.opcode(address) == instruction::GET_ELEMENT_PTR {
            address = self.ir.operand(address, 0);
        }
        self.ir.is_constant_variable(address)
    }

    /// A value was loaded from an address: by an instruction, or by a callback.
    pub(super) fn loaded(&mut self, at: Value, address: Value) {
        let ty = self.ir.type_of(at);
        let Some(leaves) = self.shared.layouts.of(self.ir, ty) else {
            self.pin(address, PinReason::Address);
            let bytes = self.ir.store_size(ty);
            let reason = PinReason::Wide as u32;
            return self.push(Step::Concretise { address, bytes, reason });
        };
        let one = leaves.len() == 1;
        if !one {
            self.pin(address, PinReason::Address);
        }
        let ids = leaves.iter().enumerate().map(|(index, leaf)| {
            let place = if one { self.operand(address) } else { self.part_of(address, leaf) };
            let value = Concrete::Leaf(at, index);
            let (size, out) = (leaf.bytes() as u32, self.new_id());
            self.push(Step::Load { address: place, size, value, out });
            let whole = size * 8;
            if whole == leaf.bits {
                return out;
            }
            self.unary(ValueOp::Trunc, whole, leaf.bits, Operand { id: out, value })
        });
        let ids = ids.collect();
        self.set(at, ids);
    }

    /// The place of a leaf of a value in memory.
    fn part_of(&self, address: Value, leaf: &Leaf) -> Operand {
        let offset = leaf.offset as i32;
        Operand::concrete(match self.operand(address).value {
            Concrete::Leaf(base, _) if offset != 0 => Concrete::Address(base, offset),
            Concrete::Address(base, before) => Concrete::Address(base, before.wrapping_add(offset)),
            value => value,
        })
    }

    pub(super) fn store(&mut self, at: Value) {
        let [value, address] = [0, 1].map(|index| self.ir.operand(at, index));
        self.stored(value, address);
    }

    /// A value was stored to an address: by an instruction, or by a callback.
    pub(super) fn stored(&mut self, value: Value, address: Value) {
        let ty = self.ir.type_of(value);
        let size = self.ir.store_size(ty);
        let Some(leaves) = self.shared.layouts.of(self.ir, ty) else {
            let place = self.operand(address);
            return self.push(if size > 8 {
                Step::Clear { address: place, bytes: size }
            } else {
                let value = Operand::concrete(Concrete::Memory(address, size as u32));
                Step::Store { address: place, size, value }
            });
        };
        if leaves.len() > 1 && !self.is_symbolic(value) {
            let address = self.operand(address);
            return self.push(Step::Clear { address, bytes: size });
        }
        if leaves.len() > 1 {
            self.pin(address, PinReason::Address);
        }
        let ids = self.ids_of(value);
        for (index, leaf) in leaves.iter().enumerate() {
            let place = if leaves.len() == 1 { self.operand(address) } else { self.part_of(address, leaf) };
            let mut part = match (leaves.len(), self.ir.constant_int(value)) {
                (1, Some(number)) => Operand::constant(number),
                _ => Operand { id: ids[index], value: Concrete::Leaf(value, index) },
            };
            let whole = leaf.bytes() as u32 * 8;
            if whole != leaf.bits {
                part.id = self.unary(ValueOp::ZExt, leaf.bits, whole, part);
            }
            self.push(Step::Store { address: place, size: leaf.bytes(), value: part });
        }
    }

    /// An atomic update that is still an instruction, because ThreadSanitizer has no callback for it.
    pub(super) fn atomic_update(&mut self, at: Value) {
        let [address, value] = [0, 1].map(|index| self.ir.operand(at, index));
        match UPDATES.get(self.ir.rmw_operation(at) as usize) {
            Some(&how) => self.updated(how, at, address, value),
            None => {
                self.pin(value, PinReason::Other);
                let size = self.ir.store_size(self.ir.type_of(value));
                let now = Operand::concrete(Concrete::Memory(address, size as u32));
                let address = self.operand(address);
                self.push(Step::Store { address, size, value: now });
            }
        }
    }

    /// An atomic update has happened, and given the old value.
    pub(super) fn updated(&mut self, how: u32, at: Value, address: Value, value: Value) {
        let Some(bits) = self.bits(value) else {
            self.pin(value, PinReason::Wide);
            let bytes = self.ir.store_size(self.ir.type_of(value));
            let address = self.operand(address);
            return self.push(Step::Clear { address, bytes });
        };
        let (address, value) = (self.operand(address), self.operand(value));
        let (size, out) = (bits.div_ceil(8), self.new_id());
        self.push(Step::Update { how, address, size, value, old: Concrete::Leaf(at, 0), out });
        self.set(at, vec![out]);
    }

    /// A compare-exchange that is still an instruction.
    pub(super) fn compare_exchange(&mut self, at: Value) {
        let [address, expected, value] = [0, 1, 2].map(|index| self.ir.operand(at, index));
        if let Some(out) = self.compared(at, address, expected, value) {
            let old = Operand { id: out, value: Concrete::Leaf(at, 0) };
            let bits = self.bits(expected).unwrap_or(64);
            let expected = self.operand(expected);
            let success = self.binary(ValueOp::Eq, bits, old, expected);
            self.set(at, vec![out, success]);
        }
    }

    /// A compare-exchange has happened, and given the old value. Gives the id of the latter.
    pub(super) fn compared(
        &mut self,
        at: Value,
        address: Value,
        expected: Value,
        value: Value,
    ) -> Option<Id> {
        let Some(bits) = self.bits(value) else {
            self.pin(expected, PinReason::Wide);
            self.pin(value, PinReason::Wide);
            let bytes = self.ir.store_size(self.ir.type_of(value));
            let address = self.operand(address);
            self.push(Step::Clear { address, bytes });
            return None;
        };
        let [address, expected, value] = [address, expected, value].map(|value| self.operand(value));
        let (size, out) = (bits.div_ceil(8), self.new_id());
        self.push(Step::Compare { address, size, expected, value, old: Concrete::Leaf(at, 0), out });
        Some(out)
    }

    /// Memory is about to be copied.
    pub(super) fn copies(&mut self, to: Value, from: Value, bytes: Value) {
        let [to, from, bytes] = [to, from, bytes].map(|value| self.operand(value));
        self.push(Step::Copy { to, from, bytes });
    }

    /// Memory was filled.
    pub(super) fn filled(&mut self, to: Value, byte: Value, bytes: Value) {
        let byte = self.byte_of(byte);
        let [to, bytes] = [to, bytes].map(|value| self.operand(value));
        self.push(Step::Fill { to, bytes, byte });
    }
}
