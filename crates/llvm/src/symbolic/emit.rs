//! Writes the steps of a group as code.

use crate::symbolic::ir::{Ir, Value};
use crate::symbolic::layout::{Layouts, build};
use crate::symbolic::opcode::{instruction, predicate};
use crate::symbolic::plan::Plan;
use crate::symbolic::runtime::{Runtime, field};
use crate::symbolic::step::{Concrete, Id, Operand, Step, Summand};
use heisen_abi::symbolic::operation;
use heisen_trace::symbolic::PinReason;
use heisen_trace::value_op::ValueOp;
use std::collections::HashMap;

/// The variables of a function that hold ids.
#[derive(Debug)]
pub struct Slots {
    variables: HashMap<Id, Value>,
}

/// Up to this many variables are cleared by stores, and more by a call.
const STORES: usize = 32;

impl Slots {
    /// Declares the variables of a function, and sets them to 0. The function's own variables come first, before all else.
    pub fn declare(ir: &Ir<'_>, runtime: &Runtime, plan: &Plan) -> Slots {
        let mut variables = HashMap::new();
        let count = plan.slots.len();
        if count == 0 {
            return Slots { variables };
        }
        let entry = ir.instructions(ir.entry(plan.function));
        ir.before(entry[0]);
        let pairs = count.div_ceil(2) as u64;
        let all = ir.alloca(ir.array(ir.int(64), pairs));
        let first = entry.iter().find(|at| ir.opcode(**at) != instruction::ALLOCA);
        ir.before(*first.unwrap_or(&entry[0]));
        for (index, id) in plan.slots.iter().enumerate() {
            variables.insert(*id, ir.offset(all, 4 * index as u64));
        }
        if count <= STORES {
            for pair in 0..pairs {
                ir.store(ir.number(ir.int(64), 0), ir.offset(all, 8 * pair));
            }
        } else {
            let address = ir.cast(instruction::PTR_TO_INT, all, ir.int(64));
            ir.call(runtime.function("clear"), &[address, ir.number(ir.int(64), 2 * pairs)]);
        }
        Slots { variables }
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

/// Writes the steps of one group.
#[derive(Debug)]
pub struct Emitter<'a> {
    ir: &'a Ir<'a>,
    layouts: &'a Layouts,
    runtime: &'a Runtime,
    slots: &'a Slots,
    /// The ids that this group has made or read.
    current: HashMap<Id, Value>,
    /// The values that this group has extended to 64 bits.
    words: HashMap<(Value, usize), Value>,
    frame: Option<Value>,
}

impl<'a> Emitter<'a> {
    /// Writes steps before an instruction.
    pub fn write(
        ir: &'a Ir<'a>,
        layouts: &'a Layouts,
        runtime: &'a Runtime,
        slots: &'a Slots,
        before: Value,
        steps: &[Step],
    ) {
        ir.before(before);
        let (current, words) = (HashMap::new(), HashMap::new());
        let mut emitter = Emitter { ir, layouts, runtime, slots, current, words, frame: None };
        steps.iter().for_each(|step| emitter.step(step));
    }

    fn word(&self, number: u64) -> Value {
        self.ir.number(self.ir.int(64), number)
    }

    fn half(&self, number: u32) -> Value {
        self.ir.number(self.ir.int(32), number.into())
    }

    fn address_of(&self, pointer: Value) -> Value {
        self.ir.cast(instruction::PTR_TO_INT, pointer, self.ir.int(64))
    }

    /// The id that the running program has.
    fn id(&mut self, id: Id) -> Value {
        if !id.is_some() {
            return self.half(0);
        }
        if let Some(&current) = self.current.get(&id) {
            return current;
        }
        let loaded = match self.slots.variables.get(&id) {
            Some(&variable) => self.ir.load(self.ir.int(32), variable),
            None => self.half(0),
        };
        self.current.insert(id, loaded);
        loaded
    }

    /// From here on, an id is this.
    fn set(&mut self, id: Id, value: Value) {
        if id.is_some() {
            self.current.insert(id, value);
            if let Some(&variable) = self.slots.variables.get(&id) {
                self.ir.store(value, variable);
            }
        }
    }

    /// A value as a word.
    fn value(&mut self, of: Concrete) -> Value {
        match of {
            Concrete::Constant(number) => self.word(number),
            Concrete::Leaf(value, index) => {
                if let Some(&word) = self.words.get(&(value, index)) {
                    return word;
                }
                let leaves = self.layouts.of(self.ir, self.ir.type_of(value));
                let word = match &leaves {
                    Some(leaves) => build(self.ir, value, &leaves[index]),
                    None => self.word(0),
                };
                self.words.insert((value, index), word);
                word
            }
            Concrete::NotLeaf(value) => {
                let no = self.ir.number(self.ir.int(1), 0);
                let not = self.ir.compare(predicate::EQ, value, no);
                self.ir.cast(instruction::ZEXT, not, self.ir.int(64))
            }
            Concrete::Address(base, offset) => {
                let base = self.value(Concrete::Leaf(base, 0));
                if offset == 0 { base } else { self.ir.binary(instruction::ADD, base, self.word(offset)) }
            }
            Concrete::Memory(address, bytes) => {
                let loaded = self.ir.load(self.ir.int(8 * bytes), address);
                if bytes < 8 { self.ir.cast(instruction::ZEXT, loaded, self.ir.int(64)) } else { loaded }
            }
        }
    }

    /// The id and the value of an operand.
    fn both(&mut self, operand: Operand) -> (Value, Value) {
        (self.id(operand.id), self.value(operand.value))
    }

    fn call(&self, name: &str, arguments: &[Value]) -> Value {
        self.ir.call(self.runtime.function(name), arguments)
    }

    /// The address of a field of the frame.
    fn field(&mut self, offset: u64) -> Value {
        let frame = match self.frame {
            Some(frame) => frame,
            None => {
                let frame = self.ir.load(self.ir.pointer(), self.runtime.frame);
                self.ir.set_metadata(frame, self.ir.metadata_kind("invariant.load"), None, &[]);
                *self.frame.insert(frame)
            }
        };
        self.ir.offset(frame, offset)
    }

    fn store_field(&mut self, offset: u64, value: Value) {
        let field = self.field(offset);
        self.ir.store(value, field);
    }

    fn load_field(&mut self, offset: u64, bits: u32) -> Value {
        let field = self.field(offset);
        self.ir.load(self.ir.int(bits), field)
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Unary { word, a, out } => {
                let (id, value) = self.both(*a);
                let made = self.call("unary", &[self.half(*word), id, value]);
                self.set(*out, made);
            }
            Step::Binary { word, a, b, out } => {
                let ((a, va), (b, vb)) = (self.both(*a), self.both(*b));
                let made = self.call("binary", &[self.half(*word), a, b, va, vb]);
                self.set(*out, made);
            }
            Step::Select { word, condition, a, b, out } => {
                let ((condition, chosen), (a, va), (b, vb)) =
                    (self.both(*condition), self.both(*a), self.both(*b));
                let chosen = self.ir.cast(instruction::TRUNC, chosen, self.ir.int(32));
                let made = self.call("select", &[self.half(*word), condition, chosen, a, b, va, vb]);
                self.set(*out, made);
            }
            Step::Choose { condition, a, b, out } => {
                let (a, b) = (self.id(*a), self.id(*b));
                let made = self.ir.select(*condition, a, b);
                self.set(*out, made);
            }
            Step::Compose { word, operands, out } => {
                let [(a, va), (b, vb), (c, vc)] = operands.map(|operand| self.both(operand));
                let made = self.call("compose", &[self.half(*word), a, b, c, va, vb, vc]);
                self.set(*out, made);
            }
            Step::Address { result, base, summands, rest, out } => {
                let made = self.address(*result, *base, summands, *rest);
                self.set(*out, made);
            }
            Step::Load { address, size, value, out } => {
                let (id, address) = self.both(*address);
                let value = self.value(*value);
                let made = self.call("load", &[address, self.half(*size), id, value]);
                self.set(*out, made);
            }
            Step::Store { address, size, value } => {
                let ((address_id, address), (id, value)) = (self.both(*address), self.both(*value));
                self.call("store", &[address, self.word(*size), address_id, id, value]);
            }
            Step::Clear { address, bytes } => {
                let (id, address) = self.both(*address);
                self.call("store", &[address, self.word(*bytes), id, self.half(0), self.word(0)]);
            }
            Step::Update { how, address, size, value, old, out } => {
                let ((address_id, address), (id, value)) = (self.both(*address), self.both(*value));
                let old = self.value(*old);
                let (how, size) = (self.half(*how), self.half(*size));
                let made = self.call("update", &[how, address, size, address_id, id, value, old]);
                self.set(*out, made);
            }
            Step::Compare { address, size, expected, value, old, out } => {
                let ((address_id, address), (expected_id, expected), (id, value)) =
                    (self.both(*address), self.both(*expected), self.both(*value));
                let old = self.value(*old);
                let size = self.half(*size);
                let made =
                    self.call("compare", &[address, size, address_id, expected_id, expected, id, value, old]);
                self.set(*out, made);
            }
            Step::Copy { to, from, bytes } => {
                let ((to_id, to), (from_id, from), (bytes_id, bytes)) =
                    (self.both(*to), self.both(*from), self.both(*bytes));
                self.call("copy", &[to, from, bytes, to_id, from_id, bytes_id]);
            }
            Step::Fill { to, bytes, byte } => {
                let ((to_id, to), (bytes_id, bytes), (id, byte)) =
                    (self.both(*to), self.both(*bytes), self.both(*byte));
                self.call("fill", &[to, bytes, to_id, bytes_id, id, byte]);
            }
            Step::Concretise { address, bytes, reason } => {
                let address = self.value(Concrete::Leaf(*address, 0));
                self.call("concretise", &[address, self.word(*bytes), self.half(*reason)]);
            }
            Step::Branch { condition } => {
                let (id, value) = self.both(*condition);
                let taken = self.ir.cast(instruction::TRUNC, value, self.ir.int(32));
                self.call("branch", &[id, taken]);
            }
            Step::Pin { operand, reason } => {
                let (id, value) = self.both(*operand);
                self.call("pin", &[id, value, self.half(*reason)]);
            }
            Step::Phis(pairs) => {
                let taken: Vec<Value> = pairs.iter().map(|(from, _)| self.id(*from)).collect();
                for ((_, to), value) in pairs.iter().zip(taken) {
                    self.set(*to, value);
                }
            }
            Step::Enter { function, arguments, by_value } => self.enter(*function, arguments, by_value),
            Step::Arguments { callee, arguments, by_value } => {
                for (number, id) in arguments {
                    let id = self.id(*id);
                    self.store_field(field::argument(*number), id);
                }
                for (number, structure) in by_value {
                    let address = self.address_of(*structure);
                    self.store_field(field::argument(*number), self.low(address));
                    self.store_field(field::argument(number + 1), self.high(address));
                }
                let address = self.address_of(*callee);
                self.store_field(field::CALLEE, address);
            }
            Step::Results { callee, results, foreign } => self.results(*callee, results, foreign),
            Step::Return { function, results } => {
                for (number, id) in results.iter().enumerate() {
                    let id = self.id(*id);
                    self.store_field(field::result(number), id);
                }
                let address = self.address_of(*function);
                self.store_field(field::RETURNER, address);
            }
            Step::Forget => self.store_field(field::RETURNER, self.word(0)),
        }
    }

    fn low(&self, word: Value) -> Value {
        self.ir.cast(instruction::TRUNC, word, self.ir.int(32))
    }

    fn high(&self, word: Value) -> Value {
        self.low(self.ir.binary(instruction::LSHR, word, self.word(32)))
    }

    /// The id of an address.
    fn address(&mut self, result: Value, base: Operand, summands: &[Summand], rest: bool) -> Value {
        let (mut id, mut value) = self.both(base);
        for (number, summand) in summands.iter().enumerate() {
            let (index, number_of) = self.both(summand.index);
            let (factor, bits) = (self.word(summand.scale), self.half(summand.bits));
            id = self.call("index", &[id, index, value, number_of, factor, bits]);
            if rest || number + 1 < summands.len() {
                let signed = match summand.bits {
                    64 => number_of,
                    bits => {
                        let small = self.ir.cast(instruction::TRUNC, number_of, self.ir.int(bits));
                        self.ir.cast(instruction::SEXT, small, self.ir.int(64))
                    }
                };
                let product = self.ir.binary(instruction::MUL, signed, factor);
                value = self.ir.binary(instruction::ADD, value, product);
            }
        }
        if rest {
            let result = self.value(Concrete::Leaf(result, 0));
            let left = self.ir.binary(instruction::SUB, result, value);
            let add = self.half(operation(ValueOp::Add as u8, 64, 64));
            id = self.call("binary", &[add, id, self.half(0), value, left]);
        }
        id
    }

    fn enter(&mut self, function: Value, arguments: &[(usize, Id)], by_value: &[(usize, Value, u64)]) {
        let own = self.address_of(function);
        let callee = self.load_field(field::CALLEE, 64);
        let mine = self.ir.compare(predicate::EQ, callee, own);
        for (number, id) in arguments {
            let given = self.load_field(field::argument(*number), 32);
            let given = self.ir.select(mine, given, self.half(0));
            self.set(*id, given);
        }
        let mut copies = Vec::new();
        for (number, structure, bytes) in by_value {
            let [low, high] = [0, 1].map(|half| {
                let half = self.load_field(field::argument(number + half), 32);
                self.ir.cast(instruction::ZEXT, half, self.ir.int(64))
            });
            let high = self.ir.binary(instruction::SHL, high, self.word(32));
            let from = self.ir.binary(instruction::OR, low, high);
            copies.push((self.address_of(*structure), from, *bytes));
        }
        let left = self.ir.select(mine, self.word(0), callee);
        self.store_field(field::CALLEE, left);
        for (to, from, bytes) in copies {
            let (none, bytes) = (self.half(0), self.word(bytes));
            self.call("fill", &[to, bytes, none, none, none, self.word(0)]);
            let bytes = self.ir.select(mine, bytes, self.word(0));
            self.call("copy", &[to, from, bytes, none, none, none]);
        }
    }

    fn results(&mut self, callee: Value, results: &[Id], foreign: &[Operand]) {
        let callee = self.address_of(callee);
        let returner = self.load_field(field::RETURNER, 64);
        let same = self.ir.compare(predicate::EQ, returner, callee);
        self.store_field(field::RETURNER, self.word(0));
        for (number, id) in results.iter().enumerate().filter(|(_, id)| id.is_some()) {
            let part = self.load_field(field::result(number), 32);
            let part = self.ir.select(same, part, self.half(0));
            self.set(*id, part);
        }
        for operand in foreign {
            let (id, value) = self.both(*operand);
            let id = self.ir.select(same, self.half(0), id);
            self.call("pin", &[id, value, self.half(PinReason::Foreign as u32)]);
        }
    }
}
