//! Declares what the instrumented module takes from the stub: the function that runs programs, and the variable
//! that says whether a runtime is loaded.

use crate::symbolic::ir::{Ir, Value};
use crate::symbolic::opcode::{FUNCTION, HIDDEN};
use heisen_abi::symbolic::program;
use std::ffi::CString;

/// The function and the variable.
#[derive(Debug)]
pub struct Runtime {
    /// The function that runs programs.
    pub run: Value,
    /// The variable that is not 0 if a runtime is loaded.
    pub loaded: Value,
}

impl Runtime {
    /// Declares them.
    pub fn declare(ir: &Ir<'_>) -> Runtime {
        let name = CString::new(program::RUN).unwrap_or_default();
        let values = [ir.int(64); program::ARGUMENTS as usize];
        let ty = ir.function_type(&[&[ir.pointer(), ir.pointer()], &values[..]].concat(), None);
        let run = ir.add_function(&name, ty);
        ir.add_attribute(run, ir.attribute("nounwind"));
        let name = CString::new(program::LOADED).unwrap_or_default();
        let loaded = ir.add_global(&name, ir.int(32));
        ir.set_visibility(run, HIDDEN);
        ir.set_visibility(loaded, HIDDEN);
        Runtime { run, loaded }
    }
}

/// Removes what the optimiser has found out about functions, and what is no longer true: they now write to the frame, and
/// call.
pub fn strip_attributes(ir: &Ir<'_>, has_own_code: impl Fn(Value) -> bool) {
    let stale = ["memory", "speculatable", "nosync"].map(|name| ir.attribute(name));
    let own: Vec<Value> = ir.functions().into_iter().filter(|&function| has_own_code(function)).collect();
    for function in own {
        for attribute in stale {
            if ir.has_attribute(function, FUNCTION, attribute) {
                ir.remove_attribute(function, attribute);
            }
        }
        for call in ir.body(function).into_iter().filter(|&at| ir.is_call(at)) {
            let callee = ir.callee(call);
            if ir.is_assembly(callee) || (ir.is_function(callee) && ir.is_declaration(callee)) {
                continue;
            }
            for attribute in stale {
                if ir.call_has_attribute(call, FUNCTION, attribute) {
                    ir.remove_call_attribute(call, attribute);
                }
            }
        }
    }
}
