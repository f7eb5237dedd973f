//! Makes verification tasks work as they are, by the rules of the competition SV-COMP: functions that the rules define are
//! those of the runtime, a function whose name says so is one step, and a failed assumption is no failure.

use crate::symbolic::ir::{Ir, Value};
use crate::symbolic::opcode::{FUNCTION, instruction, linkage};

/// What the names of functions begin with that the rules define.
const PREFIX: &str = "__VERIFIER_";
/// A function that begins like this, and whose body the task has, is one step.
const ATOMIC: &str = "__VERIFIER_atomic_";
/// How tasks assume: this function of theirs calls `abort`.
const ASSUME_OR_ABORT: &str = "assume_abort_if_not";

/// Prepares the functions of a task. Does nothing to other programs.
pub fn prepare(ir: &Ir<'_>) {
    let functions = ir.functions();
    let named = |name: &str| functions.iter().copied().find(|&function| ir.name(function) == name);
    let one_condition = ir.function_type(&[ir.int(32)], None);
    let is_own = |own: &Value| !ir.is_declaration(*own) && ir.global_type(*own) == one_condition;
    if let Some(assume) = named(ASSUME_OR_ABORT).filter(is_own) {
        let real = named("__VERIFIER_assume")
            .unwrap_or_else(|| ir.add_function(c"__VERIFIER_assume", one_condition));
        ir.use_instead(assume, real);
    }
    let atomic = |function: &Value| ir.name(*function).starts_with(ATOMIC) && !ir.is_declaration(*function);
    let atomic: Vec<Value> = functions.iter().copied().filter(atomic).collect();
    if !atomic.is_empty() {
        let ty = ir.function_type(&[], None);
        let [begin, end] = [c"__VERIFIER_atomic_begin", c"__VERIFIER_atomic_end"].map(|name| {
            let declared = named(name.to_str().unwrap_or_default());
            declared.unwrap_or_else(|| ir.add_function(name, ty))
        });
        for function in atomic.into_iter().filter(|&function| function != begin && function != end) {
            let body = ir.body(function);
            if let Some(&first) = body.first() {
                ir.before(first);
                ir.call(begin, &[]);
            }
            for at in body.into_iter().filter(|&at| ir.opcode(at) == instruction::RET) {
                ir.before(at);
                ir.call(end, &[]);
            }
        }
    }
    // The runtime has them, which is there only when the program runs.
    let lazy = ir.attribute("nonlazybind");
    let is_open = |function: &Value| {
        let name = ir.name(*function);
        ir.is_declaration(*function) && (name.starts_with(PREFIX) || name == "reach_error")
    };
    for function in ir.functions().into_iter().filter(is_open) {
        ir.set_linkage(function, linkage::EXTERN_WEAK);
        if !ir.has_attribute(function, FUNCTION, lazy) {
            ir.add_attribute(function, lazy);
        }
    }
}
