//! Instruments a program for symbolic executions: beside each value runs the id of its expression.
//!
//! | module | what it is |
//! | --- | --- |
//! | `prepare` | optimises, and keeps accesses to shared memory |
//! | `tasks` | functions of verification tasks |
//! | `layout` | the leaves of types, which have ids |
//! | `plan` | which steps a function takes beside its own, and where |
//! | `operations`, `memory`, `calls`, `intrinsics` | the steps for each instruction |
//! | `step` | the steps |
//! | `bodies` | gives each function a second body, without steps, for runs without a runtime |
//! | `encode` | writes steps as programs, see `heisen_abi::symbolic::program` |
//! | `emit` | writes the calls that run them |
//! | `runtime` | what the code calls, see `heisen_abi::symbolic` |
//! | `ir`, `opcode` | LLVM's C interface |

mod bodies;
mod callees;
mod calls;
mod emit;
mod encode;
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
mod tasks;

use crate::Error;
use crate::instrument::{Machine, add_tsan, prepare_library};
use crate::library::Library;
use crate::module::Module;
use crate::symbolic::bodies::{Body, split};
use crate::symbolic::emit::{Area, Emitter, hoist};
use crate::symbolic::encode::encode;
use crate::symbolic::ir::{Ir, Value};
use crate::symbolic::plan::{Shared, plan};
use crate::symbolic::runtime::{Runtime, strip_attributes};
use heisen_abi::symbolic::ADDRESS_TAKEN;
use std::path::Path;

/// A note that tells that there is symbolic code: its owner, its kind, and no content. It survives stripping.
const NOTE_TEXT: &str = concat!(
    ".pushsection .note.heisen.symbolic, \"a\", @note\n.p2align 2\n",
    ".long 7, 0, 2\n.asciz \"Heisen\"\n.p2align 2\n.popsection\n"
);

/// The section that lists these functions.
fn section(names: &[String]) -> String {
    let names: String = names.iter().map(|name| format!(".asciz {name:?}\n")).collect();
    format!(".pushsection {ADDRESS_TAKEN}, \"\", @progbits\n.byte 0\n{names}.popsection\n")
}

/// Where bitcode comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// From `clang -O1 -Xclang -disable-llvm-passes`.
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
            tasks::prepare(&ir);
            prepare::optimise(&ir, &module, &machine)?;
        } else {
            // Most of the standard library is unused.
            machine.run(&module, c"globaldce,function(sroa)")?;
        }
        prepare::simplify(&module, &machine)?;
        let runtime = Runtime::declare(&ir);
        let entire = stage == Stage::Optimised;
        if entire {
            module.append_assembly(&section(&Shared::new(&ir, false).address_taken()));
        }
        let shared = Shared::new(&ir, entire);
        let bodies = split(&shared, &runtime, &module, &machine)?;
        let tsan: Vec<Value> = bodies.iter().map(|body| body.full).collect();
        add_tsan(&module, &machine, |function| tsan.iter().any(|full| ir.is_same(*full, function)))?;
        add_expressions(&shared, &runtime, &bodies)?;
    }
    module.append_assembly(NOTE_TEXT);
    machine.write(&module, object)
}

/// Adds the steps to all functions.
fn add_expressions(shared: &Shared<'_>, runtime: &Runtime, bodies: &[Body]) -> Result<(), Error> {
    let ir = shared.ir;
    strip_attributes(ir, |function| shared.has_own_code(function));
    let mut emitter = Emitter::new(ir, &shared.layouts, runtime);
    for body in bodies {
        hoist(ir, body.full);
        let Some(plan) = plan(shared, body.full, body.public) else { continue };
        let (size, programs) = encode(&plan);
        let area = Area::declare(ir, body.full, size);
        for (group, program) in plan.groups.iter().zip(&programs) {
            emitter.write(&area, group.before, program);
        }
    }
    if let Ok(path) = std::env::var("HEISEN_PRINT_IR") {
        ir.print(&path);
    }
    match ir.verify() {
        Some(reason) => Err(Error(format!("the symbolic instrumentation made bad code: {reason}"))),
        None => Ok(()),
    }
}
