//! Plans the steps of a function: which ids it has, and where groups of steps run.
//!
//! Steps wait until something could run in between: a call, or the end of the block. Then they become a group, which has
//! one guard. An operation thus costs nothing until its block ends or calls.

use crate::symbolic::callees::is_logged;
use crate::symbolic::ir::{Block, Ir, Value};
use crate::symbolic::layout::{Layouts, LeafKind};
use crate::symbolic::opcode::{FUNCTION, instruction, linkage};
use crate::symbolic::step::{Concrete, Group, Id, Operand, Step};
use heisen_trace::symbolic::PinReason;
use std::collections::{HashMap, HashSet};

/// The numbers of attributes that matter here.
#[derive(Debug)]
pub struct Attributes {
    /// A structure is passed by value.
    pub by_value: u32,
    /// A function does not return.
    pub no_return: u32,
    /// A function has no code but what its author wrote.
    pub naked: u32,
}

impl Attributes {
    fn new(ir: &Ir<'_>) -> Attributes {
        let [by_value, no_return, naked] = ["byval", "noreturn", "naked"].map(|name| ir.attribute(name));
        Attributes { by_value, no_return, naked }
    }
}

/// What the plans of all functions of a module share.
#[derive(Debug)]
pub struct Shared<'a> {
    /// The module.
    pub ir: &'a Ir<'a>,
    /// The leaves of its types.
    pub layouts: Layouts,
    /// Attributes.
    pub attributes: Attributes,
    /// Functions without instrumentation whose calls are logged, and variables that hold their addresses,
    /// each with a constant that is the name of the function.
    pub foreign: HashMap<Value, Value>,
}

impl<'a> Shared<'a> {
    /// For a module; `entire` if it is the entire program.
    pub fn new(ir: &'a Ir<'a>, entire: bool) -> Shared<'a> {
        let (layouts, attributes) = (Layouts::default(), Attributes::new(ir));
        let mut shared = Shared { ir, layouts, attributes, foreign: HashMap::new() };
        if entire {
            let logged: Vec<Value> = shared.logged_functions().collect();
            for function in logged {
                let name = ir.add_text(&ir.name(function));
                let variables: Vec<Value> =
                    ir.users(function).into_iter().filter(|&user| shared.only_loaded(user)).collect();
                shared.foreign.extend(variables.into_iter().chain([function]).map(|place| (place, name)));
            }
        }
        shared
    }

    /// The functions without instrumentation whose calls are logged.
    fn logged_functions(&self) -> impl Iterator<Item = Value> {
        let functions = self.ir.functions().into_iter();
        functions.filter(|&function| !self.has_own_code(function) && is_logged(&self.ir.name(function)))
    }

    /// Whether this is a variable from which functions of the module load, and nothing else. Rust's standard library has one
    /// for each function that may be missing.
    fn only_loaded(&self, variable: Value) -> bool {
        let is_load =
            |user: &Value| self.ir.is_instruction(*user) && self.ir.opcode(*user) == instruction::LOAD;
        self.ir.is_variable(variable) && self.ir.users(variable).iter().all(is_load)
    }

    /// Whether this does nothing with an address but compare it.
    fn only_compared(&self, user: Value) -> bool {
        match self.ir.is_instruction(user) {
            true => self.ir.opcode(user) == instruction::ICMP,
            false => {
                let users = self.ir.users(user);
                self.ir.is_cast_of_constant(user) && users.into_iter().all(|user| self.only_compared(user))
            }
        }
    }

    /// The names of those whose addresses the module takes.
    pub fn address_taken(&self) -> Vec<String> {
        let calls = |user: &Value, function: Value| {
            self.ir.is_call(*user)
                && self.ir.callee(*user) == function
                && !self.ir.arguments(*user).contains(&function)
        };
        let taken = self.logged_functions().filter(|&function| {
            let users = self.ir.users(function);
            !users
                .iter()
                .all(|user| calls(user, function) || self.only_compared(*user) || self.only_loaded(*user))
        });
        taken.map(|function| self.ir.name(function)).collect()
    }

    /// Whether the code of a function is the program's, to be instrumented.
    pub fn has_own_code(&self, function: Value) -> bool {
        !self.ir.is_declaration(function)
            && self.ir.linkage(function) != linkage::AVAILABLE_EXTERNALLY
            && !self.ir.has_attribute(function, FUNCTION, self.attributes.naked)
    }
}

/// The steps of a function.
#[derive(Debug)]
pub struct Plan {
    /// Its groups.
    pub groups: Vec<Group>,
    /// The ids that outlive their group.
    pub slots: Vec<Id>,
}

/// Makes the plan of a function.
#[derive(Debug)]
pub struct Planner<'a> {
    pub(super) shared: &'a Shared<'a>,
    pub(super) ir: &'a Ir<'a>,
    /// The body of the function.
    pub(super) function: Value,
    /// The function by which others call it.
    pub(super) public: Value,
    /// The ids of values that may be expressions.
    ids: HashMap<Value, Vec<Id>>,
    last_id: u32,
    /// Steps that are not in a group yet.
    pending: Vec<Step>,
    groups: Vec<Group>,
    /// Steps with which a block begins.
    heads: HashMap<Block, Vec<Step>>,
    /// What the phis of a block take at the end of each block before it. The phis' own ids are set when the block begins,
    /// from others, if a block before it has several successors.
    staged: HashMap<Block, Vec<(Value, Vec<Id>)>>,
}

/// Plans the body of a function, which others call by `public`. `None` if there is nothing to do in it.
pub fn plan(shared: &Shared<'_>, function: Value, public: Value) -> Option<Plan> {
    let mut planner = Planner {
        shared,
        ir: shared.ir,
        function,
        public,
        ids: HashMap::new(),
        last_id: 0,
        pending: Vec::new(),
        groups: Vec::new(),
        heads: HashMap::new(),
        staged: HashMap::new(),
    };
    planner.run();
    let groups = drop_unused(planner.groups);
    let slots = outliving(&groups);
    (!groups.is_empty()).then_some(Plan { groups, slots })
}

impl Planner<'_> {
    fn run(&mut self) {
        let order = reverse_postorder(self.ir, self.function);
        let mut before: HashMap<Block, Vec<Block>> = HashMap::new();
        for &block in &order {
            for next in self.ir.successors(self.ir.terminator(block)) {
                let blocks = before.entry(next).or_default();
                if !blocks.contains(&block) {
                    blocks.push(block);
                }
            }
        }
        let may = self.may_be_expressions(&order);
        for &block in &order {
            self.declare_phis(block, before.get(&block).map_or(&[], |blocks| &blocks[..]), &may);
        }
        for (index, &block) in order.iter().enumerate() {
            self.pending = self.heads.remove(&block).unwrap_or_default();
            let all = self.ir.instructions(block);
            if index == 0 {
                self.enter(&all);
            }
            for &at in &all {
                self.instruction(at, block);
            }
        }
    }

    /// Which values may be expressions: whatever hangs on arguments, memory, and results of calls.
    fn may_be_expressions(&self, order: &[Block]) -> HashSet<Value> {
        let mut may: HashSet<Value> = self.ir.parameters(self.function).into_iter().collect();
        let all: Vec<Value> = order.iter().flat_map(|&block| self.ir.instructions(block)).collect();
        loop {
            let known = may.len();
            for &at in &all {
                let any = |values: &[Value]| values.iter().any(|value| may.contains(value));
                let yes = match self.ir.opcode(at) {
                    instruction::LOAD | instruction::CALL | instruction::INVOKE | instruction::ATOMIC_RMW => {
                        true
                    }
                    instruction::COMPARE_EXCHANGE => true,
                    instruction::ALLOCA | instruction::LANDING_PAD | instruction::VA_ARG => false,
                    instruction::PHI => {
                        any(&self.ir.incoming(at).iter().map(|(value, _)| *value).collect::<Vec<_>>())
                    }
                    _ => any(&self.ir.operands(at)),
                };
                if yes {
                    may.insert(at);
                }
            }
            if may.len() == known {
                return may;
            }
        }
    }

    /// Gives the phis of a block their ids. A phi of a block that comes after one block only has those of its operand.
    fn declare_phis(&mut self, block: Block, before: &[Block], may: &HashSet<Value>) {
        if before.len() < 2 {
            return;
        }
        let stage = before.iter().any(|&block| self.ir.successors(self.ir.terminator(block)).len() > 1);
        let mut staged = Vec::new();
        let mut pairs = Vec::new();
        for phi in self.ir.instructions(block) {
            if self.ir.opcode(phi) != instruction::PHI {
                break;
            }
            let Some(count) = self.leaves(phi).filter(|_| may.contains(&phi)) else { continue };
            let own = self.new_ids(count);
            let taken = if stage { self.new_ids(count) } else { own.clone() };
            if stage {
                pairs.extend(taken.iter().copied().zip(own.iter().copied()));
            }
            self.ids.insert(phi, own);
            staged.push((phi, taken));
        }
        if !pairs.is_empty() {
            self.heads.insert(block, vec![Step::Phis(pairs)]);
        }
        self.staged.insert(block, staged);
    }

    /// The copies to the phis of the blocks after this one.
    fn pass_to_phis(&mut self, block: Block) {
        let mut pairs = Vec::new();
        let mut seen = Vec::new();
        for next in self.ir.successors(self.ir.terminator(block)) {
            if seen.contains(&next) {
                continue;
            }
            seen.push(next);
            for (phi, taken) in self.staged.get(&next).into_iter().flatten() {
                let from = self.ir.incoming(*phi).into_iter().find(|(_, from)| *from == block);
                let ids = from.map(|(value, _)| self.ids_of(value)).unwrap_or_default();
                for (index, &to) in taken.iter().enumerate() {
                    let from = ids.get(index).copied().unwrap_or(Id::NONE);
                    if from != to {
                        pairs.push((from, to));
                    }
                }
            }
        }
        if !pairs.is_empty() {
            self.push(Step::Phis(pairs));
        }
    }

    /// A step that waits.
    pub(super) fn push(&mut self, step: Step) {
        self.pending.push(step);
    }

    /// A step with which a block begins.
    pub(super) fn push_at_head(&mut self, block: Block, step: Step) {
        self.heads.entry(block).or_default().push(step);
    }

    /// Makes a group of the steps that wait, if one of them may not wait while other code runs.
    pub(super) fn flush_effects(&mut self, before: Value) {
        if !self.pending.iter().all(Step::can_wait) {
            self.flush(before);
        }
    }

    /// Makes a group of the steps that wait.
    pub(super) fn flush(&mut self, before: Value) {
        if !self.pending.is_empty() {
            let steps = std::mem::take(&mut self.pending);
            self.groups.push(Group { before, steps });
        }
    }

    /// A new id.
    pub(super) fn new_id(&mut self) -> Id {
        self.last_id += 1;
        Id(self.last_id)
    }

    /// New ids.
    pub(super) fn new_ids(&mut self, count: usize) -> Vec<Id> {
        (0..count).map(|_| self.new_id()).collect()
    }

    /// The number of leaves of a value, if it has ids.
    pub(super) fn leaves(&self, of: Value) -> Option<usize> {
        Some(self.shared.layouts.of(self.ir, self.ir.type_of(of))?.len())
    }

    /// The kind and bits of a value that has one leaf.
    pub(super) fn scalar(&self, of: Value) -> Option<(LeafKind, u32)> {
        self.shared.layouts.scalar(self.ir, self.ir.type_of(of))
    }

    /// The bits of an integer or pointer.
    pub(super) fn bits(&self, of: Value) -> Option<u32> {
        self.scalar(of).filter(|(kind, _)| *kind != LeafKind::Float).map(|(_, bits)| bits)
    }

    /// The ids of a value, one for each leaf; empty if it has none.
    pub(super) fn ids_of(&self, value: Value) -> Vec<Id> {
        match self.ids.get(&value) {
            Some(ids) => ids.clone(),
            None => vec![Id::NONE; self.leaves(value).unwrap_or(0)],
        }
    }

    /// Whether a leaf of a value may be an expression.
    pub(super) fn is_symbolic(&self, value: Value) -> bool {
        self.ids.get(&value).is_some_and(|ids| ids.iter().any(|id| id.is_some()))
    }

    /// Gives a value its ids.
    pub(super) fn set(&mut self, value: Value, ids: Vec<Id>) {
        if ids.iter().any(|id| id.is_some()) {
            self.ids.insert(value, ids);
        }
    }

    /// A value that has one leaf, as an operand.
    pub(super) fn operand(&self, value: Value) -> Operand {
        self.leaf(value, 0)
    }

    /// A leaf of a value, as an operand.
    pub(super) fn leaf(&self, value: Value, leaf: usize) -> Operand {
        let id = self.ids.get(&value).map_or(Id::NONE, |ids| ids[leaf]);
        match self.ir.constant_int(value) {
            Some(number) => Operand::constant(number),
            None => Operand { id, value: self.concrete(value, leaf) },
        }
    }

    /// A leaf of a value, by way of the value from which it differs by a constant only. So a program needs fewer values.
    fn concrete(&self, value: Value, leaf: usize) -> Concrete {
        if self.scalar(value).is_none() {
            return Concrete::Leaf(value, leaf);
        }
        let (mut at, mut offset) = (value, 0u64);
        while self.ir.is_instruction(at) {
            let from = self.ir.operand(at, 0);
            match self.ir.opcode(at) {
                instruction::GET_ELEMENT_PTR => {
                    let Some(bytes) = self.fixed_offset(at) else { break };
                    offset = offset.wrapping_add(bytes);
                }
                instruction::ZEXT | instruction::PTR_TO_INT | instruction::INT_TO_PTR => {
                    if self.bits(from) > self.bits(at) {
                        break;
                    }
                }
                _ => break,
            }
            if self.bits(from).is_none() {
                break;
            }
            at = from;
        }
        match i32::try_from(offset.cast_signed()) {
            Ok(0) => Concrete::Leaf(at, 0),
            Ok(offset) => Concrete::Address(at, offset),
            Err(_) => Concrete::Leaf(value, leaf),
        }
    }

    /// The leaves of a value that may be expressions, as operands.
    pub(super) fn leaves_of(&self, value: Value) -> Vec<Operand> {
        let leaves = self.ids_of(value).into_iter().enumerate().filter(|(_, id)| id.is_some());
        leaves.map(|(leaf, id)| Operand { id, value: Concrete::Leaf(value, leaf) }).collect()
    }

    /// Replaces the expressions of a value by what they are.
    pub(super) fn pin(&mut self, value: Value, reason: PinReason) {
        for operand in self.leaves_of(value) {
            self.push(Step::Pin { operand, reason: reason as u32 });
        }
    }

    /// Takes the ids of arguments. Comes after the frame's variables, before everything else.
    fn enter(&mut self, entry: &[Value]) {
        let mut arguments = Vec::new();
        let mut by_value = Vec::new();
        let mut number = 0;
        for (index, parameter) in self.ir.parameters(self.function).into_iter().enumerate() {
            let attribute = self.shared.attributes.by_value;
            if let Some(ty) = self.ir.type_attribute(self.function, index as u32 + 1, attribute) {
                by_value.push((number, parameter, self.ir.stride(ty)));
                number += 2;
                continue;
            }
            let count = self.leaves(parameter);
            if let Some(count) = count.filter(|count| number + count <= heisen_abi::symbolic::ARGUMENTS) {
                let ids = self.new_ids(count);
                arguments.extend(ids.iter().enumerate().map(|(leaf, id)| (number + leaf, *id)));
                self.ids.insert(parameter, ids);
            }
            number += count.unwrap_or(1);
        }
        by_value.retain(|(number, ..)| number + 2 <= heisen_abi::symbolic::ARGUMENTS);
        if arguments.is_empty() && by_value.is_empty() {
            return;
        }
        self.push(Step::Enter { function: self.public, arguments, by_value });
        let first = entry.iter().find(|at| self.ir.opcode(**at) != instruction::ALLOCA);
        if let Some(&first) = first {
            self.flush(first);
        }
    }

    /// Plans an instruction.
    fn instruction(&mut self, at: Value, block: Block) {
        match self.ir.opcode(at) {
            instruction::PHI => {
                if let (false, [(value, _)]) = (self.ids.contains_key(&at), &self.ir.incoming(at)[..]) {
                    let ids = self.ids_of(*value);
                    self.set(at, ids);
                }
            }
            instruction::LOAD => self.load(at),
            instruction::STORE => self.store(at),
            instruction::ATOMIC_RMW => self.atomic_update(at),
            instruction::COMPARE_EXCHANGE => self.compare_exchange(at),
            instruction::CALL => self.call(at),
            instruction::INVOKE => {
                self.call_arguments(at);
                self.pass_to_phis(block);
                self.flush(at);
                self.call_results(at);
            }
            instruction::RET => {
                // Nothing may stand between such a call and the return.
                if !self.ir.previous(at).is_some_and(|call| self.ir.must_tail(call)) {
                    self.returns(at);
                    self.flush(at);
                }
                self.pending.clear();
            }
            instruction::BR | instruction::SWITCH | instruction::INDIRECT_BR | instruction::CALL_BR => {
                self.decide(at);
                self.pass_to_phis(block);
                self.flush(at);
            }
            instruction::RESUME | instruction::UNREACHABLE => self.flush(at),
            _ => self.operation(at),
        }
    }

    /// The expressions on which a jump depends.
    fn decide(&mut self, at: Value) {
        match self.ir.opcode(at) {
            instruction::BR => {
                if let [condition, ..] = self.ir.operands(at)[..]
                    && self.is_symbolic(condition)
                {
                    let condition = self.operand(condition);
                    self.push(Step::Branch { condition });
                }
            }
            instruction::SWITCH => self.pin(self.ir.operand(at, 0), PinReason::Switch),
            instruction::INDIRECT_BR => self.pin(self.ir.operand(at, 0), PinReason::Address),
            _ => {
                for operand in self.ir.operands(at) {
                    self.pin(operand, PinReason::Assembly);
                }
            }
        }
    }
}

/// The blocks that can be reached, each after those that dominate it.
fn reverse_postorder(ir: &Ir<'_>, function: Value) -> Vec<Block> {
    let entry = ir.entry(function);
    let mut seen = HashSet::from([entry]);
    let mut order = Vec::new();
    let mut stack = vec![(entry, ir.successors(ir.terminator(entry)))];
    while let Some((block, left)) = stack.last_mut() {
        match left.pop() {
            Some(next) if seen.insert(next) => {
                let successors = ir.successors(ir.terminator(next));
                stack.push((next, successors));
            }
            Some(_) => {}
            None => {
                order.push(*block);
                stack.pop();
            }
        }
    }
    order.reverse();
    order
}

/// Removes steps that only make ids that nobody needs.
fn drop_unused(groups: Vec<Group>) -> Vec<Group> {
    let mut makers: HashMap<Id, Vec<Id>> = HashMap::new();
    let mut left: Vec<Id> = Vec::new();
    for step in groups.iter().flat_map(|group| &group.steps) {
        match (step, step.pure_out()) {
            (Step::Phis(pairs), _) => {
                pairs.iter().for_each(|(from, to)| makers.entry(*to).or_default().push(*from));
            }
            (_, Some(out)) => makers.entry(out).or_default().extend(step.uses()),
            (_, None) => left.extend(step.uses()),
        }
    }
    let mut used: HashSet<Id> = HashSet::new();
    while let Some(id) = left.pop() {
        if id.is_some() && used.insert(id) {
            left.extend(makers.get(&id).into_iter().flatten());
        }
    }
    let keep = |step: Step| match step {
        Step::Phis(mut pairs) => {
            pairs.retain(|(_, to)| used.contains(to));
            (!pairs.is_empty()).then_some(Step::Phis(pairs))
        }
        Step::Enter { function, mut arguments, by_value } => {
            arguments.retain(|(_, id)| used.contains(id));
            let needed = !arguments.is_empty() || !by_value.is_empty();
            needed.then_some(Step::Enter { function, arguments, by_value })
        }
        Step::Results { callee, mut results, foreign } => {
            results.iter_mut().filter(|id| !used.contains(id)).for_each(|id| *id = Id::NONE);
            let needed = results.iter().any(|id| id.is_some()) || !foreign.is_empty();
            needed.then_some(Step::Results { callee, results, foreign })
        }
        step => step.pure_out().is_none_or(|out| used.contains(&out)).then_some(step),
    };
    let groups = groups.into_iter().map(|Group { before, steps }| {
        let steps = steps.into_iter().filter_map(keep).collect();
        Group { before, steps }
    });
    groups.filter(|group| !group.steps.is_empty()).collect()
}

/// The ids that are needed in another group than the one that makes them.
fn outliving(groups: &[Group]) -> Vec<Id> {
    let mut made: HashMap<Id, usize> = HashMap::new();
    let mut slots: HashSet<Id> = HashSet::new();
    for (index, group) in groups.iter().enumerate() {
        for step in &group.steps {
            for id in step.outs() {
                made.insert(id, index);
                if matches!(step, Step::Phis(_)) {
                    slots.insert(id);
                }
            }
        }
    }
    for (index, group) in groups.iter().enumerate() {
        for step in &group.steps {
            let taken: Vec<Id> = match step {
                Step::Phis(pairs) => pairs.iter().map(|(from, _)| *from).collect(),
                step => step.uses(),
            };
            slots.extend(taken.into_iter().filter(|id| id.is_some() && made.get(id) != Some(&index)));
        }
    }
    let mut slots: Vec<Id> = slots.into_iter().collect();
    slots.sort();
    slots
}
