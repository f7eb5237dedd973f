//! Plans LLVM's own operations, which look like calls.

use crate::symbolic::ir::Value;
use crate::symbolic::plan::Planner;
use crate::symbolic::step::{Id, Operand, Step};
use heisen_abi::symbolic::Composition;
use heisen_trace::symbolic::PinReason;
use heisen_trace::value_op::ValueOp;

/// When the steps that wait have to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It does not matter.
    None,
    /// Before the operation.
    Before,
}

/// Operations that give their first argument.
const SAME: [&str; 6] = [
    "llvm.expect.",
    "llvm.ssa.copy.",
    "llvm.launder.invariant.group",
    "llvm.strip.invariant.group",
    "llvm.annotation.",
    "llvm.ptr.annotation.",
];

/// Operations that say something to the compiler, and do nothing.
const HINTS: [&str; 13] = [
    "llvm.assume",
    "llvm.dbg.",
    "llvm.donothing",
    "llvm.experimental.noalias.",
    "llvm.invariant.",
    "llvm.is.constant.",
    "llvm.lifetime.",
    "llvm.objectsize.",
    "llvm.prefetch",
    "llvm.pseudoprobe",
    "llvm.sideeffect",
    "llvm.type.test",
    "llvm.var.annotation",
];

/// Operations on one integer.
const UNARY: [(&str, ValueOp); 5] = [
    ("llvm.bswap.", ValueOp::ByteSwap),
    ("llvm.bitreverse.", ValueOp::BitReverse),
    ("llvm.ctpop.", ValueOp::PopCount),
    ("llvm.ctlz.", ValueOp::LeadingZeros),
    ("llvm.cttz.", ValueOp::TrailingZeros),
];

/// Operations that also say whether they overflow.
const OVERFLOW: [(&str, ValueOp, ValueOp); 6] = [
    ("llvm.uadd.with.overflow.", ValueOp::Add, ValueOp::UAddOverflow),
    ("llvm.sadd.with.overflow.", ValueOp::Add, ValueOp::SAddOverflow),
    ("llvm.usub.with.overflow.", ValueOp::Sub, ValueOp::USubOverflow),
    ("llvm.ssub.with.overflow.", ValueOp::Sub, ValueOp::SSubOverflow),
    ("llvm.umul.with.overflow.", ValueOp::Mul, ValueOp::UMulOverflow),
    ("llvm.smul.with.overflow.", ValueOp::Mul, ValueOp::SMulOverflow),
];

/// Operations that are composed of several.
const COMPOSED: [(&str, Composition, usize); 13] = [
    ("llvm.umin.", Composition::UMin, 2),
    ("llvm.umax.", Composition::UMax, 2),
    ("llvm.smin.", Composition::SMin, 2),
    ("llvm.smax.", Composition::SMax, 2),
    ("llvm.abs.", Composition::Abs, 1),
    ("llvm.uadd.sat.", Composition::UAddSat, 2),
    ("llvm.usub.sat.", Composition::USubSat, 2),
    ("llvm.sadd.sat.", Composition::SAddSat, 2),
    ("llvm.ssub.sat.", Composition::SSubSat, 2),
    ("llvm.fshl.", Composition::FunnelLeft, 3),
    ("llvm.fshr.", Composition::FunnelRight, 3),
    ("llvm.ucmp.", Composition::UCompare, 2),
    ("llvm.scmp.", Composition::SCompare, 2),
];

impl Planner<'_> {
    /// Plans an operation of LLVM.
    pub(super) fn intrinsic(&mut self, at: Value) -> Effect {
        let name = self.ir.name(self.ir.callee(at));
        let arguments = self.ir.arguments(at);
        if name.starts_with("llvm.memcpy.") || name.starts_with("llvm.memmove.") {
            self.copies(arguments[0], arguments[1], arguments[2]);
            return Effect::Before;
        }
        if name.starts_with("llvm.memset.") {
            self.filled(arguments[0], arguments[1], arguments[2]);
            return Effect::None;
        }
        let is = |prefix: &&str| name.starts_with(*prefix);
        if HINTS.iter().any(is) || !arguments.iter().any(|argument| self.is_symbolic(*argument)) {
            return Effect::None;
        }
        if SAME.iter().any(is) {
            let ids = self.ids_of(arguments[0]);
            self.set(at, ids);
            return Effect::None;
        }
        match self.bits(arguments[0]) {
            Some(bits) if self.integer_operation(at, &name, bits, &arguments) => {}
            _ => {
                for argument in arguments {
                    let float = self.is_float(argument);
                    self.pin(argument, if float { PinReason::Float } else { PinReason::Other });
                }
            }
        }
        Effect::None
    }

    /// Plans an operation on integers. Returns whether it is one that can be an expression.
    fn integer_operation(&mut self, at: Value, name: &str, bits: u32, arguments: &[Value]) -> bool {
        let is = |prefix: &str| name.starts_with(prefix);
        let a = self.operand(arguments[0]);
        if let Some((_, op)) = UNARY.iter().find(|(prefix, _)| is(prefix)) {
            let out = self.unary(*op, bits, bits, a);
            self.set(at, vec![out]);
        } else if let Some((_, op, overflow)) = OVERFLOW.iter().find(|(prefix, ..)| is(prefix)) {
            let b = self.operand(arguments[1]);
            let ids = vec![self.binary(*op, bits, a, b), self.binary(*overflow, bits, a, b)];
            self.set(at, ids);
        } else if let Some((_, composition, count)) = COMPOSED.iter().find(|(prefix, ..)| is(prefix)) {
            let mut operands = [Operand::constant(0); 3];
            for (operand, argument) in operands.iter_mut().zip(&arguments[..*count]) {
                *operand = self.operand(*argument);
            }
            let to = self.bits(at).unwrap_or(bits);
            let out: Id = self.new_id();
            self.push(Step::Compose { word: composition.word(bits, to), operands, out });
            self.set(at, vec![out]);
        } else if is("llvm.ptrmask.") {
            let b = self.operand(arguments[1]);
            let out = self.binary(ValueOp::And, bits, a, b);
            self.set(at, vec![out]);
        } else {
            return false;
        }
        true
    }
}
