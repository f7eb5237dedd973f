//! Splits blocks: the C interface cannot, but LLVM's inliner can.
//!
//! The guard is a function that calls a marker if there may be expressions. Each group gets a call of the guard, with its
//! number. When the guard is inlined, each marker stands in a block of its own, out of the way, where the group's steps can
//! be written.

use crate::Error;
use crate::instrument::Machine;
use crate::module::Module;
use crate::symbolic::ir::{Ir, Value};
use crate::symbolic::opcode::{FUNCTION, linkage, predicate};
use crate::symbolic::runtime::{LIVE, Runtime};

/// The guard and its marker.
#[derive(Debug)]
pub struct Guards {
    guard: Value,
    marker: Value,
    count: u32,
}

impl Guards {
    /// Defines them.
    pub fn define(ir: &Ir<'_>, runtime: &Runtime) -> Guards {
        // No function of the program may be inlined: its plan names its calls.
        let always_inline = ir.attribute("alwaysinline");
        for function in ir.functions() {
            if ir.has_attribute(function, FUNCTION, always_inline) {
                ir.remove_attribute(function, always_inline);
            }
        }
        let ty = ir.function_type(&[ir.int(32)], None);
        let marker = ir.add_function(c"heisen.marker", ty);
        let guard = ir.add_function(c"heisen.guard", ty);
        let no_unwind = ir.attribute("nounwind");
        ir.add_attribute(marker, no_unwind);
        ir.add_attribute(guard, no_unwind);
        ir.add_attribute(guard, always_inline);
        ir.set_linkage(guard, linkage::INTERNAL);
        let [entry, steps, end] = [c"", c"steps", c"end"].map(|name| ir.append_block(guard, name));
        ir.at_end(entry);
        // The stub sets the pointer before the program's own code runs, and nobody does later.
        let frame = ir.load(ir.pointer(), runtime.frame);
        ir.set_metadata(frame, ir.metadata_kind("invariant.load"), None, &[]);
        let live = ir.load(ir.int(32), ir.offset(frame, LIVE));
        let is_live = ir.compare(predicate::NE, live, ir.number(ir.int(32), 0));
        let branch = ir.branch_if(is_live, steps, end);
        ir.set_metadata(branch, ir.metadata_kind("prof"), Some("branch_weights"), &[1, 1 << 20]);
        ir.at_end(steps);
        ir.call(marker, &[ir.parameters(guard)[0]]);
        ir.branch(end);
        ir.at_end(end);
        ir.return_void();
        Guards { guard, marker, count: 0 }
    }

    /// Puts a guard before an instruction.
    pub fn insert(&mut self, ir: &Ir<'_>, before: Value) {
        ir.before(before);
        ir.call(self.guard, &[ir.number(ir.int(32), self.count.into())]);
        self.count += 1;
    }

    /// Inlines the guards. Gives the marker of each, in the order in which they were inserted.
    pub fn split(self, ir: &Ir<'_>, module: &Module<'_>, machine: &Machine<'_>) -> Result<Vec<Value>, Error> {
        machine.run(module, c"always-inline")?;
        let mut markers = vec![None; self.count as usize];
        for call in ir.users(self.marker) {
            let number = ir.constant_int(ir.operand(call, 0)).and_then(|number| usize::try_from(number).ok());
            if let Some(place) = number.and_then(|number| markers.get_mut(number)) {
                *place = Some(call);
            }
        }
        let markers: Option<Vec<Value>> = markers.into_iter().collect();
        markers.ok_or_else(|| Error("LLVM's always-inline did not inline all guards".to_owned()))
    }
}

/// Removes the marker's declaration, when all markers are erased.
pub fn remove_marker(ir: &Ir<'_>) {
    let marker = ir.functions().into_iter().find(|&function| ir.name(function) == "heisen.marker");
    if let Some(marker) = marker.filter(|&marker| !ir.is_used(marker)) {
        ir.delete_function(marker);
    }
}
