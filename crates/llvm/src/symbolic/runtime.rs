//! Declares what the instrumented module takes from the stub: callbacks, and the pointer to the frame.

use crate::symbolic::ir::{Ir, Type, Value};
use crate::symbolic::opcode::{FUNCTION, HIDDEN};
use heisen_abi::symbolic::Frame;
use heisen_abi::{symbolic_callbacks, symbolic_helpers};
use std::ffi::CString;
use std::mem::offset_of;

/// The type of an argument or result in the list of callbacks.
#[rustfmt::skip]
macro_rules! ty {
    ($ir:expr, u32) => { Some($ir.int(32)) };
    ($ir:expr, u64) => { Some($ir.int(64)) };
    ($ir:expr, ()) => { None };
}

macro_rules! declarations {
    ($($name:ident($($argument:ident: $ty:tt),*) -> $result:tt;)*) => {
        /// The names of the functions.
        const NAMES: &[&str] = &[$(stringify!($name)),*];

        /// Their types.
        fn types(ir: &Ir<'_>) -> Vec<Type> {
            vec![$({
                let arguments = [$(ty!(ir, $ty)),*].map(|argument: Option<Type>| argument.expect("a type"));
                ir.function_type(&arguments, ty!(ir, $result))
            }),*]
        }
    };
}

mod callbacks {
    use super::{Ir, Type, symbolic_callbacks};
    symbolic_callbacks!(declarations);

    /// The names and types of the runtime's functions.
    pub fn all(ir: &Ir<'_>) -> impl Iterator<Item = (&'static str, Type)> {
        NAMES.iter().copied().zip(types(ir))
    }
}

mod helpers {
    use super::{Ir, Type, symbolic_helpers};
    symbolic_helpers!(declarations);

    /// The names and types of the stub's own functions.
    pub fn all(ir: &Ir<'_>) -> impl Iterator<Item = (&'static str, Type)> {
        NAMES.iter().copied().zip(types(ir))
    }
}

/// The functions and the frame.
#[derive(Debug)]
pub struct Runtime {
    functions: Vec<(&'static str, Value)>,
    /// The variable that points to the frame.
    pub frame: Value,
}

impl Runtime {
    /// Declares them.
    pub fn declare(ir: &Ir<'_>) -> Runtime {
        let attributes = ["nounwind", "cold"].map(|name| ir.attribute(name));
        let declare = |(name, ty): (&'static str, Type)| {
            let c_name = CString::new(name).unwrap_or_default();
            let function = ir.add_function(&c_name, ty);
            ir.set_visibility(function, HIDDEN);
            attributes.iter().for_each(|&attribute| ir.add_attribute(function, attribute));
            (name, function)
        };
        let functions = callbacks::all(ir).chain(helpers::all(ir)).map(declare).collect();
        let frame = ir.add_global(c"heisen_sym_frame", ir.pointer());
        ir.set_visibility(frame, HIDDEN);
        Runtime { functions, frame }
    }

    /// A function, by its name without the prefix.
    pub fn function(&self, name: &str) -> Value {
        let named = |known: &&(&str, Value)| known.0.strip_prefix("heisen_sym_") == Some(name);
        self.functions.iter().find(named).map(|(_, function)| *function).expect("a name of the list")
    }

    /// Removes the declarations that nobody uses.
    pub fn remove_unused(&self, ir: &Ir<'_>) {
        for &(_, function) in self.functions.iter().filter(|(_, function)| !ir.is_used(*function)) {
            ir.delete_function(function);
        }
    }
}

/// The places of the frame's fields.
pub mod field {
    use super::{Frame, offset_of};

    pub const LIVE: u64 = offset_of!(Frame, live) as u64;
    pub const CALLEE: u64 = offset_of!(Frame, callee) as u64;
    pub const RETURNER: u64 = offset_of!(Frame, returner) as u64;

    /// The place of an argument.
    pub fn argument(number: usize) -> u64 {
        (offset_of!(Frame, arguments) + 4 * number) as u64
    }

    /// The place of a result.
    pub fn result(number: usize) -> u64 {
        (offset_of!(Frame, results) + 4 * number) as u64
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
