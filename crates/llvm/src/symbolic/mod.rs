//! Instruments a program for symbolic executions: beside each value runs the id of its expression.
//!
//! | module | what it is |
//! | --- | --- |
//! | `prepare` | optimises, and keeps accesses to shared memory |
//! | `layout` | the leaves of types, which have ids |
//! | `plan` | which steps a function takes beside its own, and where |
//! | `operations`, `memory`, `calls`, `intrinsics` | the steps for each instruction |
//! | `step` | the steps |
//! | `guard` | splits blocks, so that steps are taken only if there may be expressions |
//! | `encode` | writes steps as programs, see `heisen_abi::symbolic::program` |
//! | `emit` | writes the calls that run them |
//! | `runtime` | what the code calls, see `heisen_abi::symbolic` |
//! | `ir`, `opcode` | LLVM's C interface |

mod calls;
mod emit;
mod encode;
mod guard;
mod intrinsics;
mod ir;
mod layout;
mod memory;
mod opcode;
mod operations;
mod plan;
mod prepare;
mod runtime;
mod step;

use crate::Error;
use crate::instrument::{Machine, add_tsan, prepare_library};
use crate::library::Library;
use crate::module::Module;
use crate::symbolic::emit::{Area, Emitter, hoist};
use crate::symbolic::encode::{Encoded, encode};
use crate::symbolic::guard::{Guards, remove_marker};
use crate::symbolic::ir::Ir;
use crate::symbolic::plan::{Shared, plan};
use crate::symbolic::runtime::{Runtime, strip_attributes};
use std::path::Path;

/// A note that tells that there is symbolic code: its owner, its kind, and no content. It survives stripping.
const NOTE_TEXT: &str = concat!(
    ".pushsection .note.heisen.symbolic, \"a\", @note\n.p2align 2\n",
    ".long 7, 0, 2\n.asciz \"Heisen\"\n.p2align 2\n.popsection\n"
);

/// Where bitcode comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// From `clang -O0 -Xclang -disable-O0-optnone`.
    Unoptimised,
    /// From an optimiser that is not ours.
    Optimised,
}

/// Instruments the bitcode in the file `bitcode`, both its accesses and its expressions, and writes the object file
/// `object`.
pub fn instrument(library: &Library, bitcode: &Path, object: &Path, stage: Stage) -> Result<(), Error> {
    prepare_library(library);
    let module = Module::read(library, bitcode)?;
    let machine = Machine::new(&module)?;
    {
        let ir = Ir::new(&module);
        if stage == Stage::Unoptimised {
            prepare::optimise(&ir, &module, &machine)?;
        } else {
            // Most of the standard library is unused.
            machine.run(&module, c"globaldce")?;
        }
        prepare::simplify(&module, &machine)?;
        add_tsan(&module, &machine)?;
        add_expressions(&ir, &module, &machine)?;
    }
    module.append_assembly(NOTE_TEXT);
    machine.write(&module, object)
}

/// Adds the steps to all functions.
fn add_expressions(ir: &Ir<'_>, module: &Module<'_>, machine: &Machine<'_>) -> Result<(), Error> {
    let shared = Shared::new(ir);
    let own: Vec<_> = ir.functions().into_iter().filter(|&function| shared.has_own_code(function)).collect();
    strip_attributes(ir, |function| shared.has_own_code(function));
    let runtime = Runtime::declare(ir);
    let mut guards = Guards::define(ir, &runtime);
    let mut planned: Vec<(Area, Vec<Encoded>)> = Vec::new();
    for function in own {
        hoist(ir, function);
        let Some(plan) = plan(&shared, function) else { continue };
        let (size, groups) = encode(&plan);
        plan.groups.iter().for_each(|group| guards.insert(ir, group.before));
        planned.push((Area::declare(ir, function, size), groups));
    }
    let mut markers = guards.split(ir, module, machine)?.into_iter();
    let mut emitter = Emitter::new(ir, &shared.layouts, &runtime);
    for (area, groups) in &planned {
        for (group, marker) in groups.iter().zip(markers.by_ref()) {
            emitter.write(area, marker, group);
            ir.erase(marker);
        }
    }
    remove_marker(ir);
    if let Ok(path) = std::env::var("HEISEN_PRINT_IR") {
        ir.print(&path);
    }
    match ir.verify() {
        Some(reason) => Err(Error(format!("the symbolic instrumentation made bad code: {reason}"))),
        None => Ok(()),
    }
}
