//! Finds where a local variable lies now, from the registers of its function's frame.

use super::local_variables::{LocalVariable, Scope};
use gimli::{EndianSlice, Evaluation, EvaluationResult, Expression, LittleEndian, Location, Register, Value};

/// The most steps of one expression.
const STEPS: u32 = 1000;

/// The registers of a function that has not returned.
#[derive(Debug)]
pub struct Frame {
    /// By their DWARF numbers; `None` for unknown ones.
    pub registers: [Option<u64>; 17],
    /// The stack pointer of the caller.
    pub cfa: Option<u64>,
}

/// Where a variable lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At an address.
    At(u64),
    /// Nowhere: this is its value.
    Is(u64),
}

impl Frame {
    /// Where a variable of the frame's function lies. `None` if it has been optimised away.
    pub fn locate(
        &self,
        variable: &LocalVariable,
        scope: &Scope,
        bias: u64,
        read: &dyn Fn(u64) -> Option<u64>,
    ) -> Option<Place> {
        let base = || match self.evaluate(&scope.frame_base, scope, bias, read, &|| None)? {
            Place::At(base) | Place::Is(base) => Some(base),
        };
        self.evaluate(&variable.expression, scope, bias, read, &base)
    }

    fn register(&self, register: Register) -> Option<u64> {
        *self.registers.get(usize::from(register.0))?
    }

    fn evaluate(
        &self,
        expression: &[u8],
        scope: &Scope,
        bias: u64,
        read: &dyn Fn(u64) -> Option<u64>,
        base: &dyn Fn() -> Option<u64>,
    ) -> Option<Place> {
        let expression = Expression(EndianSlice::new(expression, LittleEndian));
        let mut evaluation: Evaluation<_> = expression.evaluation(scope.encoding);
        evaluation.set_max_iterations(STEPS);
        let mut state = evaluation.evaluate().ok()?;
        loop {
            state = match state {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresRegister { register, .. } => {
                    evaluation.resume_with_register(Value::Generic(self.register(register)?)).ok()?
                }
                EvaluationResult::RequiresMemory { address, size: 8, space: None, .. } => {
                    evaluation.resume_with_memory(Value::Generic(read(address)?)).ok()?
                }
                EvaluationResult::RequiresFrameBase => evaluation.resume_with_frame_base(base()?).ok()?,
                EvaluationResult::RequiresCallFrameCfa => {
                    evaluation.resume_with_call_frame_cfa(self.cfa?).ok()?
                }
                EvaluationResult::RequiresRelocatedAddress(address) => {
                    evaluation.resume_with_relocated_address(address.wrapping_add(bias)).ok()?
                }
                _ => return None,
            }
        }
        match evaluation.as_result().first()?.location {
            Location::Address { address } => Some(Place::At(address)),
            Location::Register { register } => Some(Place::Is(self.register(register)?)),
            Location::Value { value } => Some(Place::Is(value.to_u64(u64::MAX).ok()?)),
            _ => None,
        }
    }
}
