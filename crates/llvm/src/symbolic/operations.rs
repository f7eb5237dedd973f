//! Plans the operations on values: arithmetic, comparisons, casts, selections, addresses, parts of aggregates.

use crate::symbolic::ir::Value;
use crate::symbolic::layout::LeafKind;
use crate::symbolic::opcode::{instruction, kind, predicate};
use crate::symbolic::plan::Planner;
use crate::symbolic::step::{Concrete, Id, Operand, Rest, Step, Summand};
use heisen_abi::symbolic::operation;
use heisen_trace::symbolic::PinReason;
use heisen_trace::value_op::ValueOp;

/// The operation of an instruction on two integers.
fn arithmetic(opcode: u32) -> Option<ValueOp> {
    Some(match opcode {
        instruction::ADD => ValueOp::Add,
        instruction::SUB => ValueOp::Sub,
        instruction::MUL => ValueOp::Mul,
        instruction::UDIV => ValueOp::UDiv,
        instruction::SDIV => ValueOp::SDiv,
        instruction::UREM => ValueOp::URem,
        instruction::SREM => ValueOp::SRem,
        instruction::SHL => ValueOp::Shl,
        instruction::LSHR => ValueOp::LShr,
        instruction::ASHR => ValueOp::AShr,
        instruction::AND => ValueOp::And,
        instruction::OR => ValueOp::Or,
        instruction::XOR => ValueOp::Xor,
        _ => return None,
    })
}

impl Planner<'_> {
    /// A step for an operation on one operand. Gives the id of the result.
    pub(super) fn unary(&mut self, op: ValueOp, from: u32, to: u32, a: Operand) -> Id {
        if !a.id.is_some() {
            return Id::NONE;
        }
        let out = self.new_id();
        self.push(Step::Unary { word: operation(op as u8, from, to), a, out });
        out
    }

    /// A step for an operation on two operands. Gives the id of the result.
    pub(super) fn binary(&mut self, op: ValueOp, bits: u32, a: Operand, b: Operand) -> Id {
        if !a.id.is_some() && !b.id.is_some() {
            return Id::NONE;
        }
        let out = self.new_id();
        let to = if op.is_test() { 1 } else { bits };
        self.push(Step::Binary { word: operation(op as u8, bits, to), a, b, out });
        out
    }

    /// The expressions that an instruction takes become values, because it has none as a result.
    pub(super) fn pin_operands(&mut self, at: Value, reason: PinReason) {
        for operand in self.ir.operands(at) {
            self.pin(operand, reason);
        }
    }

    /// Why an operation on a value of this type cannot be an expression.
    fn reason(&self, of: Value) -> PinReason {
        match self.ir.kind(self.ir.type_of(of)) {
            kind::VECTOR => PinReason::Vector,
            kind::INTEGER => PinReason::Wide,
            kind::HALF | kind::FLOAT | kind::DOUBLE | kind::X86_FP80 | kind::FP128 | kind::BFLOAT => {
                PinReason::Float
            }
            _ => PinReason::Other,
        }
    }

    /// Plans an instruction that computes a value.
    pub(super) fn operation(&mut self, at: Value) {
        let opcode = self.ir.opcode(at);
        let operands = self.ir.operands(at);
        if !operands.iter().any(|operand| self.is_symbolic(*operand)) {
            return;
        }
        if let Some(op) = arithmetic(opcode) {
            return self.arithmetic(at, op, &operands);
        }
        match opcode {
            instruction::TRUNC | instruction::ZEXT | instruction::SEXT => {
                self.resize(at, opcode, operands[0])
            }
            instruction::PTR_TO_INT | instruction::INT_TO_PTR | instruction::PTR_TO_ADDR => {
                match (self.bits(operands[0]), self.bits(at)) {
                    (Some(from), Some(to)) if from < to => self.resize(at, instruction::ZEXT, operands[0]),
                    (Some(from), Some(to)) if from > to => self.resize(at, instruction::TRUNC, operands[0]),
                    _ => self.same(at, operands[0]),
                }
            }
            instruction::BIT_CAST | instruction::FREEZE => self.same(at, operands[0]),
            instruction::ICMP => self.compare(at, operands[0], operands[1]),
            instruction::SELECT => self.select(at, operands[0], operands[1], operands[2]),
            instruction::GET_ELEMENT_PTR => self.address(at, &operands),
            instruction::EXTRACT_VALUE | instruction::EXTRACT_ELEMENT => self.extract(at, opcode, &operands),
            instruction::INSERT_VALUE | instruction::INSERT_ELEMENT => self.insert(at, opcode, &operands),
            instruction::SHUFFLE_VECTOR => self.shuffle(at, &operands),
            instruction::FADD
            | instruction::FSUB
            | instruction::FMUL
            | instruction::FDIV
            | instruction::FREM
            | instruction::FCMP
            | instruction::FNEG
            | instruction::FP_TO_UI..=instruction::FP_EXT => self.pin_operands(at, PinReason::Float),
            _ => self.pin_operands(at, PinReason::Other),
        }
    }

    fn arithmetic(&mut self, at: Value, op: ValueOp, operands: &[Value]) {
        if let Some(bits) = self.bits(at) {
            let (a, b) = (self.operand(operands[0]), self.operand(operands[1]));
            let out = self.binary(op, bits, a, b);
            return self.set(at, vec![out]);
        }
        let leaves = self.shared.layouts.of(self.ir, self.ir.type_of(at));
        let Some(leaves) = leaves else { return self.pin_operands(at, self.reason(at)) };
        let is_wide = self.ir.kind(self.ir.type_of(at)) == kind::INTEGER;
        if matches!(op, ValueOp::And | ValueOp::Or | ValueOp::Xor) || !is_wide {
            // Each part by itself.
            let ids = leaves.iter().enumerate().map(|(index, leaf)| {
                let (a, b) = (self.leaf_of(operands[0], index), self.leaf_of(operands[1], index));
                self.binary(op, leaf.bits, a, b)
            });
            let ids = ids.collect();
            return self.set(at, ids);
        }
        let [low, high] = self.ids_of(operands[0])[..] else { return };
        match (op, self.ir.constant_wide_shift(operands[1])) {
            (ValueOp::Shl, Some(64)) => self.set(at, vec![Id::NONE, low]),
            (ValueOp::LShr, Some(64)) => self.set(at, vec![high, Id::NONE]),
            _ => self.pin_operands(at, PinReason::Wide),
        }
    }

    /// A leaf of a value that may be a constant with several.
    fn leaf_of(&self, value: Value, leaf: usize) -> Operand {
        let id = self.ids_of(value)[leaf];
        Operand { id, value: Concrete::Leaf(value, leaf) }
    }

    /// The result has the ids of an operand, if it has as many leaves of the same bits.
    fn same(&mut self, at: Value, from: Value) {
        let layouts = &self.shared.layouts;
        let bits = |of: Value| -> Option<Vec<u32>> {
            let leaves = layouts.of(self.ir, self.ir.type_of(of))?;
            Some(leaves.iter().map(|leaf| leaf.bits).collect())
        };
        if bits(at).is_some() && bits(at) == bits(from) {
            let ids = self.ids_of(from);
            self.set(at, ids);
        } else {
            self.pin(from, self.reason(from));
        }
    }

    fn resize(&mut self, at: Value, opcode: u32, from: Value) {
        let op = match opcode {
            instruction::TRUNC => ValueOp::Trunc,
            instruction::ZEXT => ValueOp::ZExt,
            _ => ValueOp::SExt,
        };
        let wide = |planner: &Self, value: Value| {
            planner.ir.kind(planner.ir.type_of(value)) == kind::INTEGER && planner.leaves(value) == Some(2)
        };
        match (self.bits(from), self.bits(at)) {
            (Some(small), Some(large)) => {
                let a = self.operand(from);
                let out = self.unary(op, small, large, a);
                self.set(at, vec![out]);
            }
            (None, Some(to)) if wide(self, from) => {
                let low = self.leaf(from, 0);
                let out = if to < 64 { self.unary(op, 64, to, low) } else { low.id };
                self.set(at, vec![out]);
            }
            (Some(small), None) if wide(self, at) => {
                let a = self.operand(from);
                let low = if small < 64 { self.unary(op, small, 64, a) } else { a.id };
                let mut ids = vec![low, Id::NONE];
                if op == ValueOp::SExt {
                    let half = Operand { id: low, value: Concrete::Leaf(at, 0) };
                    ids[1] = self.binary(ValueOp::AShr, 64, half, Operand::constant(63));
                }
                self.set(at, ids);
            }
            _ => self.pin(from, self.reason(from)),
        }
    }

    fn compare(&mut self, at: Value, a: Value, b: Value) {
        let Some(bits) = self.bits(a) else {
            return self.pin_operands(at, self.reason(a));
        };
        let predicate = self.ir.predicate(at);
        let (a, b) = (self.operand(a), self.operand(b));
        let (op, a, b) = match predicate {
            predicate::EQ | predicate::NE => (ValueOp::Eq, a, b),
            predicate::ULT => (ValueOp::Ult, a, b),
            predicate::ULE => (ValueOp::Ule, a, b),
            predicate::UGT => (ValueOp::Ult, b, a),
            predicate::UGE => (ValueOp::Ule, b, a),
            predicate::SLT => (ValueOp::Slt, a, b),
            predicate::SGT => (ValueOp::Slt, b, a),
            predicate::SGE => (ValueOp::Sle, b, a),
            _ => (ValueOp::Sle, a, b),
        };
        let mut out = self.binary(op, bits, a, b);
        if predicate == predicate::NE {
            out = self.unary(ValueOp::Not, 1, 1, Operand { id: out, value: Concrete::NotLeaf(at) });
        }
        self.set(at, vec![out]);
    }

    fn select(&mut self, at: Value, condition: Value, a: Value, b: Value) {
        let leaves = self.shared.layouts.of(self.ir, self.ir.type_of(at));
        if self.bits(condition) != Some(1) {
            return self.pin_operands(at, PinReason::Vector);
        }
        let Some(leaves) = leaves else {
            return self.pin(condition, self.reason(at));
        };
        let mut ids = Vec::new();
        for (index, leaf) in leaves.iter().enumerate() {
            let (a, b) = (self.leaf_of(a, index), self.leaf_of(b, index));
            if self.is_symbolic(condition) {
                let (out, condition) = (self.new_id(), self.operand(condition));
                let word = operation(ValueOp::Select as u8, leaf.bits, leaf.bits);
                self.push(Step::Select { word, condition, a, b, out });
                ids.push(out);
            } else if a.id == b.id {
                ids.push(a.id);
            } else {
                let out = self.new_id();
                self.push(Step::Choose { condition, a: a.id, b: b.id, out });
                ids.push(out);
            }
        }
        self.set(at, ids);
    }

    /// The bytes that an address computation adds, if they are constant.
    pub(super) fn fixed_offset(&self, at: Value) -> Option<u64> {
        let mut ty = self.ir.source_type(at);
        let mut bytes = 0u64;
        for (number, &index) in self.ir.operands(at).iter().enumerate().skip(1) {
            let fixed = self.ir.constant_int(index)?;
            if number > 1 && self.ir.kind(ty) == kind::STRUCT {
                bytes = bytes.wrapping_add(self.ir.field_offset(ty, fixed as u32));
                ty = self.ir.element_type(ty, fixed as u32);
                continue;
            }
            if number > 1 {
                ty = self.ir.element_type(ty, 0);
            }
            let signed = self.signed(index, fixed);
            bytes = bytes.wrapping_add(signed.wrapping_mul(self.ir.stride(ty)));
        }
        Some(bytes)
    }

    /// A constant index, extended by its sign.
    fn signed(&self, index: Value, number: u64) -> u64 {
        let unused = 64 - self.bits(index).unwrap_or(64);
        ((number << unused) as i64 >> unused) as u64
    }

    fn address(&mut self, at: Value, operands: &[Value]) {
        if self.bits(at).is_none() {
            return self.pin_operands(at, PinReason::Vector);
        }
        let mut ty = self.ir.source_type(at);
        let (mut summands, mut fixed_bytes, mut is_fixed) = (Vec::new(), 0u64, true);
        for (number, &index) in operands.iter().enumerate().skip(1) {
            let fixed = self.ir.constant_int(index);
            let scale = match (number, self.ir.kind(ty)) {
                (1, _) => self.ir.stride(ty),
                (_, kind::STRUCT) => {
                    let field = fixed.unwrap_or(0) as u32;
                    fixed_bytes = fixed_bytes.wrapping_add(self.ir.field_offset(ty, field));
                    ty = self.ir.element_type(ty, field);
                    continue;
                }
                _ => {
                    ty = self.ir.element_type(ty, 0);
                    self.ir.stride(ty)
                }
            };
            match (fixed, self.bits(index)) {
                (Some(number), _) => {
                    let signed = self.signed(index, number);
                    fixed_bytes = fixed_bytes.wrapping_add(signed.wrapping_mul(scale));
                }
                (None, Some(bits)) if self.is_symbolic(index) => {
                    summands.push(Summand { index: self.operand(index), bits, scale });
                }
                _ => is_fixed = false,
            }
        }
        let base = self.operand(operands[0]);
        let rest = if is_fixed { Rest::Fixed(fixed_bytes) } else { Rest::UpTo(at) };
        if summands.is_empty() && matches!(rest, Rest::Fixed(0)) {
            return self.set(at, vec![base.id]);
        }
        let out = self.new_id();
        self.push(Step::Address { base, summands, rest, out });
        self.set(at, vec![out]);
    }

    /// The indices of a part of an aggregate; `None` if they are not constant.
    fn part(&self, at: Value, opcode: u32, index: Option<&Value>) -> Option<Vec<u32>> {
        match opcode {
            instruction::EXTRACT_VALUE | instruction::INSERT_VALUE => Some(self.ir.indices(at)),
            _ => index.and_then(|index| self.ir.constant_int(*index)).map(|index| vec![index as u32]),
        }
    }

    fn extract(&mut self, at: Value, opcode: u32, operands: &[Value]) {
        let of = operands[0];
        let part = self.part(at, opcode, operands.get(1));
        let first = part.and_then(|part| self.shared.layouts.first_leaf(self.ir, self.ir.type_of(of), &part));
        match (first, self.leaves(at)) {
            (Some(first), Some(count)) => {
                let ids = self.ids_of(of)[first..first + count].to_vec();
                self.set(at, ids);
            }
            _ => self.pin_operands(at, PinReason::Vector),
        }
    }

    fn insert(&mut self, at: Value, opcode: u32, operands: &[Value]) {
        let part = self.part(at, opcode, operands.get(2));
        let first = part.and_then(|part| self.shared.layouts.first_leaf(self.ir, self.ir.type_of(at), &part));
        match first {
            Some(first) => {
                let mut ids = self.ids_of(operands[0]);
                let inserted = self.ids_of(operands[1]);
                ids[first..first + inserted.len()].copy_from_slice(&inserted);
                self.set(at, ids);
            }
            None => self.pin_operands(at, PinReason::Vector),
        }
    }

    fn shuffle(&mut self, at: Value, operands: &[Value]) {
        let (a, b) = (self.ids_of(operands[0]), self.ids_of(operands[1]));
        if self.leaves(at).is_none() || a.is_empty() || b.is_empty() {
            return self.pin_operands(at, PinReason::Vector);
        }
        let both = [a, b].concat();
        let one = |index: i32| usize::try_from(index).map_or(Id::NONE, |index| both[index]);
        let ids = self.ir.mask(at).into_iter().map(one).collect();
        self.set(at, ids);
    }

    /// The lowest byte of an operand.
    pub(super) fn byte_of(&mut self, value: Value) -> Operand {
        match (self.bits(value), self.operand(value)) {
            (Some(bits), operand) if bits > 8 && operand.id.is_some() => {
                let id = self.unary(ValueOp::Trunc, bits, 8, operand);
                Operand { id, ..operand }
            }
            (_, operand) => operand,
        }
    }

    /// Whether a value is a floating-point number.
    pub(super) fn is_float(&self, value: Value) -> bool {
        self.scalar(value).is_some_and(|(kind, _)| kind == LeafKind::Float)
    }
}
