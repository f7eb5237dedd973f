//! Optimises unoptimised bitcode of C and C++ without losing accesses to shared memory.
//!
//! The optimiser forwards stores to loads, and removes branches whose outcome only another thread can change. So while it
//! runs, all accesses are volatile that are not to variables of the function.

use crate::Error;
use crate::instrument::Machine;
use crate::module::Module;
use crate::symbolic::ir::{Ir, Value};
use crate::symbolic::opcode::instruction;
use std::ffi::CStr;

/// The metadata of accesses that are volatile only here. Where the optimiser drops it, an access stays volatile.
const KEPT: &str = "heisen.kept";

/// What makes variables of a function values, so that fewer accesses are left.
const VALUES: &CStr = c"function(sroa)";

/// The steps before instrumentation, for all bitcode: vectors become numbers, and a block has several predecessors only if
/// each of these has one successor, as far as possible.
const SIMPLER: &CStr = c"function(scalarizer<load-store>,break-crit-edges)";

/// Optimises.
pub fn optimise(ir: &Ir<'_>, module: &Module<'_>, machine: &Machine<'_>) -> Result<(), Error> {
    machine.run(module, VALUES)?;
    let kind = ir.metadata_kind(KEPT);
    for at in accesses(ir).filter(|&at| !ir.is_volatile(at) && !is_of_variable(ir, at)) {
        ir.set_volatile(at, true);
        ir.set_metadata(at, kind, None, &[]);
    }
    machine.run(module, c"default<O1>")?;
    for at in accesses(ir).filter(|&at| ir.has_metadata(at, kind)) {
        ir.set_volatile(at, false);
        ir.remove_metadata(at, kind);
    }
    Ok(())
}

/// Simplifies.
pub fn simplify(module: &Module<'_>, machine: &Machine<'_>) -> Result<(), Error> {
    machine.run(module, SIMPLER)
}

/// All loads and stores.
fn accesses<'a>(ir: &'a Ir<'_>) -> impl Iterator<Item = Value> + 'a {
    let all = ir.functions().into_iter().flat_map(|function| ir.body(function));
    all.filter(|&at| matches!(ir.opcode(at), instruction::LOAD | instruction::STORE))
}

/// Whether an access is to a variable of its function.
fn is_of_variable(ir: &Ir<'_>, at: Value) -> bool {
    let mut address = ir.operand(at, u32::from(ir.opcode(at) == instruction::STORE));
    while ir.is_instruction(address) && ir.opcode(address) == instruction::GET_ELEMENT_PTR {
        address = ir.operand(address, 0);
    }
    ir.is_instruction(address) && ir.opcode(address) == instruction::ALLOCA
}
