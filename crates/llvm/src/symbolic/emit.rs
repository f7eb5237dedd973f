//! Writes the calls that run programs, and declares the variables that they use.

use crate::symbolic::encode::{AreaSize, Encoded};
use crate::symbolic::ir::{Ir, Value};
use crate::symbolic::layout::{Layouts, build};
use crate::symbolic::opcode::{instruction, predicate};
use crate::symbolic::runtime::Runtime;
use crate::symbolic::step::Concrete;
use heisen_abi::symbolic::program;
use std::collections::HashMap;

/// Up to this many words of 8 bytes are cleared one by one, and more by a loop of the processor.
const STORES: u64 = 32;

/// The variables of a function for its programs.
#[derive(Debug)]
pub struct Area {
    variable: Option<Value>,
}

impl Area {
    /// Declares the variables, and clears the ids that outlive a program: until there may be expressions, nobody writes
    /// them.
    pub fn declare(ir: &Ir<'_>, function: Value, size: AreaSize) -> Area {
        let word = ir.int(64);
        let cleared = size.ids.div_ceil(2) as u64;
        let words = (size.values + (size.ids + size.passing).div_ceil(2)) as u64;
        if words == 0 {
            return Area { variable: None };
        }
        let entry = ir.instructions(ir.entry(function));
        ir.before(entry[0]);
        let variable = ir.alloca(ir.array(word, words));
        let first = entry.iter().find(|at| ir.opcode(**at) != instruction::ALLOCA);
        ir.before(*first.unwrap_or(&entry[0]));
        let ids = ir.offset(variable, 8 * size.values as u64);
        if cleared <= STORES {
            for index in 0..cleared {
                ir.store(ir.number(word, 0), ir.offset(ids, 8 * index));
            }
        } else {
            ir.clear(ids, cleared);
        }
        Area { variable: Some(variable) }
    }
}

/// Moves variables of fixed size to the start of a function. If one came after a guard, it would no longer be in the first
/// block, and grow the stack each time.
pub fn hoist(ir: &Ir<'_>, function: Value) {
    let entry = ir.instructions(ir.entry(function));
    let fixed =
        |at: &Value| ir.opcode(*at) == instruction::ALLOCA && ir.constant_int(ir.operand(*at, 0)).is_some();
    let Some(first) = entry.iter().position(|at| !fixed(at)) else { return };
    for &at in entry[first..].iter().filter(|at| fixed(at)) {
        ir.before(entry[first]);
        ir.place(at);
    }
}

/// Writes calls.
#[derive(Debug)]
pub struct Emitter<'a> {
    ir: &'a Ir<'a>,
    layouts: &'a Layouts,
    runtime: &'a Runtime,
    /// The programs of the module. Many are equal.
    programs: HashMap<Vec<u32>, Value>,
}

impl<'a> Emitter<'a> {
    /// For a module.
    pub fn new(ir: &'a Ir<'a>, layouts: &'a Layouts, runtime: &'a Runtime) -> Emitter<'a> {
        Emitter { ir, layouts, runtime, programs: HashMap::new() }
    }

    /// Writes the call for a group before an instruction.
    pub fn write(&mut self, area: &Area, before: Value, group: &Encoded) {
        let ir = self.ir;
        let words = group.words.clone();
        let steps = *self.programs.entry(words).or_insert_with_key(|words| ir.add_words(words));
        ir.before(before);
        let pointer = area.variable.unwrap_or_else(|| ir.poison(ir.pointer()));
        let mut arguments = vec![steps, pointer];
        for (index, &value) in group.values.iter().enumerate() {
            let value = self.value(value);
            match index.checked_sub(program::ARGUMENTS as usize) {
                None => arguments.push(value),
                Some(more) => {
                    ir.store(value, ir.offset(pointer, 8 * more as u64));
                }
            }
        }
        arguments.resize(2 + program::ARGUMENTS as usize, ir.poison(ir.int(64)));
        ir.keep_registers(ir.call(self.runtime.run, &arguments));
    }

    /// A value as a word.
    fn value(&self, of: Concrete) -> Value {
        let ir = self.ir;
        let word = ir.int(64);
        match of {
            Concrete::Constant(number) => ir.number(word, number),
            // Programs compute these.
            Concrete::Sum | Concrete::Address(..) => ir.number(word, 0),
            Concrete::Leaf(value, index) => match self.layouts.of(ir, ir.type_of(value)) {
                Some(leaves) => build(ir, value, &leaves[index]),
                None => ir.number(word, 0),
            },
            Concrete::NotLeaf(value) => {
                let not = ir.compare(predicate::EQ, value, ir.number(ir.int(1), 0));
                ir.cast(instruction::ZEXT, not, word)
            }
            Concrete::Memory(address, bytes) => {
                let loaded = ir.load(ir.int(8 * bytes), address);
                if bytes < 8 { ir.cast(instruction::ZEXT, loaded, word) } else { loaded }
            }
        }
    }
}
