//! Plans calls and returns: ids of arguments and results go through the frame.

use crate::symbolic::callees::{SYSTEM_CALL, Use, use_of};
use crate::symbolic::intrinsics::Effect;
use crate::symbolic::ir::Value;
use crate::symbolic::opcode::{FUNCTION, instruction, linkage};
use crate::symbolic::plan::Planner;
use crate::symbolic::step::{Concrete, Id, Operand, Step};
use heisen_abi::symbolic::{ARGUMENTS, update};
use heisen_trace::symbolic::PinReason;

/// Callbacks in which no other thread gets its turn, so that steps may wait.
const MARKERS: [&str; 2] = ["__tsan_func_entry", "__tsan_func_exit"];

/// A callback of ThreadSanitizer that accesses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Load,
    Store,
    Update(u32),
    Compare,
    Copy,
    Fill,
    /// It accesses nothing.
    Nothing,
}

/// What the callback of this name does. `None` if the name is not that of a callback.
fn callback(name: &str) -> Option<Access> {
    let name = name.strip_prefix("__tsan_")?;
    let Some(atomic) = name.strip_prefix("atomic") else {
        return Some(match name {
            "memcpy" | "memmove" => Access::Copy,
            "memset" => Access::Fill,
            _ => Access::Nothing,
        });
    };
    Some(match atomic.split_once('_').map_or("", |(_, operation)| operation) {
        "load" => Access::Load,
        "store" => Access::Store,
        "exchange" => Access::Update(update::EXCHANGE),
        "fetch_add" => Access::Update(update::ADD),
        "fetch_sub" => Access::Update(update::SUB),
        "fetch_and" => Access::Update(update::AND),
        "fetch_or" => Access::Update(update::OR),
        "fetch_xor" => Access::Update(update::XOR),
        "fetch_nand" => Access::Update(update::NAND),
        "compare_exchange_val" => Access::Compare,
        _ => Access::Nothing,
    })
}

impl Planner<'_> {
    /// Plans a call that is not the end of its block.
    pub(super) fn call(&mut self, at: Value) {
        if self.is_intrinsic(at) {
            return match self.intrinsic(at) {
                Effect::None => {}
                Effect::Before => self.flush_effects(at),
            };
        }
        if self.named(at).is_some_and(|name| MARKERS.contains(&&*name)) {
            return;
        }
        self.call_arguments(at);
        if self.ir.must_tail(at) {
            self.flush(at);
        } else {
            self.flush_effects(at);
        }
        self.call_results(at);
    }

    /// The function that a call names; `None` if its address is computed.
    fn named(&self, at: Value) -> Option<String> {
        let callee = self.ir.callee(at);
        self.ir.is_function(callee).then(|| self.ir.name(callee))
    }

    /// Whether a call is one of LLVM's own operations.
    fn is_intrinsic(&self, at: Value) -> bool {
        self.named(at).is_some_and(|name| name.starts_with("llvm."))
    }

    /// Whether the function that is called may be one that is not instrumented.
    fn may_be_foreign(&self, callee: Value) -> bool {
        !self.ir.is_function(callee)
            || !self.shared.has_own_code(callee)
            || matches!(self.ir.linkage(callee), linkage::LINK_ONCE_ANY | linkage::WEAK_ANY)
    }

    /// What a call does with its arguments. A function of the program's own may have the name of a known one.
    fn use_of(&self, at: Value) -> Use {
        let known = self.named(at).filter(|_| !self.shared.has_own_code(self.ir.callee(at)));
        match known.map_or(Use::Unknown, |name| use_of(&name)) {
            Use::Prints if self.ir.is_used(at) => Use::Counts,
            known => known,
        }
    }

    /// The arguments of a call that have ids, by number; all others that may be expressions; and structures passed by
    /// value.
    #[expect(clippy::type_complexity, reason = "three lists")]
    fn split_arguments(&self, at: Value) -> (Vec<(usize, Operand)>, Vec<Value>, Vec<(usize, Value)>) {
        let ty = self.ir.callee_type(at);
        // The runtime's `syscall` takes the expressions of all its arguments.
        let hides_some = self.ir.is_variadic(ty) && self.named(at).is_none_or(|name| name != SYSTEM_CALL);
        let named = if hides_some { self.ir.declared_arguments(ty) } else { usize::MAX };
        let (mut passed, mut left, mut by_value) = (Vec::new(), Vec::new(), Vec::new());
        let mut number = 0;
        for (index, argument) in self.ir.arguments(at).into_iter().enumerate() {
            let position = index as u32 + 1;
            if self.ir.call_has_attribute(at, position, self.shared.attributes.by_value) {
                if number + 2 <= ARGUMENTS {
                    by_value.push((number, argument));
                }
                number += 2;
                continue;
            }
            let ids = self.ids_of(argument);
            if index >= named || number + ids.len() > ARGUMENTS {
                left.push(argument);
            } else {
                passed.extend(ids.iter().enumerate().map(|(leaf, &id)| {
                    (number + leaf, Operand { id, value: Concrete::Leaf(argument, leaf) })
                }));
            }
            number += ids.len().max(1);
        }
        (passed, left, by_value)
    }

    /// A function takes the values of arguments that may be expressions.
    fn takes_values(&mut self, callee: Value, mut operands: Vec<Operand>) {
        operands.retain(|operand| operand.id.is_some());
        if !operands.is_empty() {
            self.push(Step::TakesValues { callee, operands });
        }
    }

    /// What happens before a call.
    pub(super) fn call_arguments(&mut self, at: Value) {
        let callee = self.ir.callee(at);
        if self.ir.is_assembly(callee) {
            if !self.ir.is_empty_assembly(callee) {
                self.push(Step::Unseen { reason: PinReason::Assembly as u32 });
            }
            return self.ir.arguments(at).into_iter().for_each(|value| self.pin(value, PinReason::Assembly));
        }
        if let Some(access) = self.named(at).and_then(|name| callback(&name)) {
            if access == Access::Copy {
                let [to, from, bytes] = [0, 1, 2].map(|index| self.ir.operand(at, index));
                self.copies(to, from, bytes);
            }
            return;
        }
        if self.is_intrinsic(at) {
            self.intrinsic(at);
            return;
        }
        self.pin(callee, PinReason::Address);
        if let Some(&name) = self.shared.foreign.get(&callee) {
            self.push(Step::Foreign { name });
        }
        match self.use_of(at) {
            Use::Decides => {
                return self
                    .ir
                    .arguments(at)
                    .into_iter()
                    .for_each(|value| self.pin(value, PinReason::Address));
            }
            Use::Prints => return,
            Use::Counts => self.push(Step::Unseen { reason: PinReason::Foreign as u32 }),
            Use::Unknown => {}
        }
        let (passed, left, by_value) = self.split_arguments(at);
        let left: Vec<Operand> = left.into_iter().flat_map(|value| self.leaves_of(value)).collect();
        self.takes_values(callee, left);
        let no_return = self.shared.attributes.no_return;
        let ends = self.ir.call_has_attribute(at, FUNCTION, no_return)
            || (self.ir.is_function(callee) && self.ir.has_attribute(callee, FUNCTION, no_return));
        if ends && self.may_be_foreign(callee) {
            return self.takes_values(callee, passed.into_iter().map(|(_, operand)| operand).collect());
        }
        if self.ir.must_tail(at) {
            self.push(Step::Forget);
        }
        if !by_value.is_empty() || passed.iter().any(|(_, operand)| operand.id.is_some()) {
            let arguments = passed.into_iter().map(|(number, operand)| (number, operand.id)).collect();
            self.push(Step::Arguments { callee, arguments, by_value });
        }
    }

    /// What happens after a call has returned.
    pub(super) fn call_results(&mut self, at: Value) {
        let callee = self.ir.callee(at);
        if self.ir.is_assembly(callee) {
            return;
        }
        if let Some(access) = self.named(at).and_then(|name| callback(&name)) {
            return self.callback_returned(at, access);
        }
        if self.is_intrinsic(at) || self.ir.must_tail(at) {
            return;
        }
        let count = self.leaves(at).filter(|_| self.ir.is_used(at)).unwrap_or(0);
        let mut foreign = Vec::new();
        if self.may_be_foreign(callee) && matches!(self.use_of(at), Use::Counts | Use::Unknown) {
            let (passed, ..) = self.split_arguments(at);
            foreign.extend(passed.into_iter().map(|(_, operand)| operand).filter(|o| o.id.is_some()));
        }
        if count == 0 && foreign.is_empty() {
            return;
        }
        let results: Vec<Id> = self.new_ids(count);
        let step = Step::Results { callee, results: results.clone(), foreign };
        if self.ir.opcode(at) == instruction::INVOKE {
            let next = self.ir.normal_successor(at);
            self.push_at_head(next, step);
        } else {
            self.push(step);
        }
        self.set(at, results);
    }

    /// A callback has accessed memory.
    fn callback_returned(&mut self, at: Value, access: Access) {
        let operand = |index| self.ir.operand(at, index);
        match access {
            Access::Load => self.loaded(at, operand(0)),
            Access::Store => self.stored(operand(1), operand(0)),
            Access::Update(how) => self.updated(how, at, operand(0), operand(1)),
            Access::Compare => {
                if let Some(out) = self.compared(at, operand(0), operand(1), operand(2)) {
                    self.set(at, vec![out]);
                }
            }
            Access::Fill => self.filled(operand(0), operand(1), operand(2)),
            Access::Copy | Access::Nothing => {}
        }
    }

    /// A function returns.
    pub(super) fn returns(&mut self, at: Value) {
        let result = self.ir.operands(at).first().copied();
        let results = result.map(|result| self.ids_of(result)).unwrap_or_default();
        let symbolic = results.iter().any(|id| id.is_some());
        if symbolic || self.is_called_by_others() {
            let results = if symbolic { results } else { vec![Id::NONE; results.len()] };
            self.push(Step::Return { function: self.public, results });
        }
    }

    /// Whether code of other modules may call this function, or code that does not know which function it calls. It has
    /// to be able to tell that the function is instrumented.
    fn is_called_by_others(&self) -> bool {
        let is_own = matches!(self.ir.linkage(self.public), linkage::INTERNAL | linkage::PRIVATE);
        let calls = |user: &Value| {
            self.ir.is_call(*user)
                && self.ir.callee(*user) == self.public
                && !self.ir.arguments(*user).contains(&self.public)
        };
        !is_own || !self.ir.users(self.public).iter().all(calls)
    }
}
