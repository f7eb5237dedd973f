//! Gives each function a second body, which is neither instrumented nor has steps, for runs without a runtime.
//!
//! A function then looks once whether a runtime is loaded, and jumps to one of its bodies. That never changes while the
//! program runs, so no expression is lost. The bodies are:
//!
//! | name | what it is |
//! | --- | --- |
//! | `f` | the jump, by which everybody else calls the function |
//! | `f.full` | the original, to be instrumented |
//! | `f.plain` | the copy |
//!
//! The C interface cannot copy a function, but LLVM's inliner can: the copy calls the original, and the call is inlined.
//! What cannot be inlined, such as a function with variable arguments, has no copy, and no jump.

use crate::Error;
use crate::instrument::Machine;
use crate::module::Module;
use crate::symbolic::ir::{Ir, Value};
use crate::symbolic::opcode::{FUNCTION, linkage, predicate};
use crate::symbolic::plan::Shared;
use crate::symbolic::runtime::Runtime;

/// A function that is to be instrumented.
#[derive(Clone, Copy, Debug)]
pub struct Body {
    /// Its body.
    pub full: Value,
    /// The function by which others call it.
    pub public: Value,
}

/// Copies functions, and adds the jumps.
pub fn split(
    shared: &Shared<'_>,
    runtime: &Runtime,
    module: &Module<'_>,
    machine: &Machine<'_>,
) -> Result<Vec<Body>, Error> {
    let ir = shared.ir;
    let own: Vec<Value> =
        ir.functions().into_iter().filter(|&function| shared.has_own_code(function)).collect();
    let always_inline = ir.attribute("alwaysinline");
    for &function in &own {
        if ir.has_attribute(function, FUNCTION, always_inline) {
            ir.remove_attribute(function, always_inline);
        }
    }
    let mut copies: Vec<(Value, Value, Value)> = Vec::new();
    for &function in own.iter().filter(|&&function| can_be_copied(ir, function)) {
        // The inliner refuses a function that calls itself. So meanwhile everybody calls a stand-in.
        let stand_in = ir.add_like(function, "");
        ir.use_instead(function, stand_in);
        let copy = ir.add_like(function, &format!("{}.plain", ir.name(function)));
        ir.set_linkage(copy, linkage::INTERNAL);
        ir.share_comdat(function, copy);
        ir.at_end(ir.append_block(copy, c""));
        let call = ir.forward(copy, function);
        ir.add_call_attribute(call, always_inline);
        copies.push((function, copy, stand_in));
    }
    machine.run(module, c"always-inline")?;
    let mut bodies = Vec::new();
    let mut publics: Vec<(Value, Value)> = Vec::new();
    for (function, copy, stand_in) in copies {
        let is_call = |at: &Value| ir.is_call(*at) && ir.callee(*at) == function;
        let inlined = !ir.body(copy).iter().any(is_call);
        if inlined {
            let public = jump(ir, runtime, function, copy);
            ir.use_instead(stand_in, public);
            publics.push((function, public));
        } else {
            ir.use_instead(stand_in, function);
            ir.delete_function(copy);
        }
        ir.delete_function(stand_in);
    }
    for full in own {
        let public =
            publics.iter().find(|(function, _)| *function == full).map_or(full, |(_, public)| *public);
        bodies.push(Body { full, public });
    }
    Ok(bodies)
}

/// Whether a function may be copied. Names of blocks that are stored somewhere belong to one body.
fn can_be_copied(ir: &Ir<'_>, function: Value) -> bool {
    let ty = ir.global_type(function);
    !ir.is_variadic(ty) && !ir.blocks(function).iter().any(|&block| ir.has_address(block))
}

/// Makes the function that jumps to one of the bodies.
fn jump(ir: &Ir<'_>, runtime: &Runtime, function: Value, copy: Value) -> Value {
    let public = ir.add_like(function, "");
    let name = ir.name(function);
    ir.replace(function, public, &format!("{name}.full"));
    ir.set_linkage(function, linkage::INTERNAL);
    let [entry, full, plain] = [c"", c"full", c"plain"].map(|name| ir.append_block(public, name));
    ir.at_end(entry);
    let loaded = ir.load(ir.int(32), runtime.loaded);
    let is_loaded = ir.compare(predicate::NE, loaded, ir.number(ir.int(32), 0));
    ir.branch_if(is_loaded, full, plain);
    for (block, body) in [(full, function), (plain, copy)] {
        ir.at_end(block);
        let call = ir.forward(public, body);
        ir.set_must_tail(call);
    }
    public
}
