//! Names the memory of a paused process as a debugger does: `pool.cv_`, `queue->done`, `self.balance`.
//!
//! A name is a path from a variable to an address. The variable is a global, a thread-local variable, or a local
//! variable of a function that a thread has not left. The path may go through a few pointers. The path with the
//! fewest pointers wins; of equal ones, that of the outermost function, because it stays the same longest.
//!
//! | module | what it finds |
//! | --- | --- |
//! | `globals` | the global variables that hold pointers |
//! | `local_variables` | the local variables of a function at one of its instructions |
//! | `location` | where a variable lies now |
//! | `search` | the path from variables to an address |
//! | `short` | names without long template arguments |

pub(super) mod globals;
pub(super) mod local_variables;
mod location;
mod search;
mod short;

use super::debug_info::DebugInfo;
use super::memory::StackMemory;
use super::types::Types;
use super::value::ValueType;
use super::{Image, Registers, View};
pub use globals::Scalar;
use heisen_trace::Stack;
use location::Frame;
pub use search::Target;
use search::{Root, Search};
pub use short::short;
use std::cell::RefCell;

/// The functions that a thread has not left.
#[derive(Debug)]
pub struct LiveStack {
    /// The number of the thread.
    pub thread: u16,
    /// The thread pointer, from which thread-local variables are counted; 0 if unknown.
    pub pointer: u64,
    /// Innermost first.
    frames: Vec<LiveFrame>,
}

impl LiveStack {
    /// A thread that has left all its functions.
    pub fn ended(thread: u16, pointer: u64) -> LiveStack {
        LiveStack { thread, pointer, frames: Vec::new() }
    }
}

/// One of these functions.
#[derive(Debug)]
struct LiveFrame {
    /// The address of the call or instruction.
    call: u64,
    frame: Frame,
}

/// The name of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The path.
    pub text: String,
    /// How many pointers the path follows. Names with fewer are better.
    pub pointers: usize,
    /// Among equal numbers of pointers, the position of the variable. The lower the better.
    pub order: usize,
    /// Where the object begins to which the last part of the path belongs. Two addresses with the same name and
    /// different bases are different objects.
    pub base: u64,
    /// The type of the value that is accessed there, if it is known.
    pub value: Option<ValueType>,
}

impl View<'_> {
    /// The functions that a thread has not left, from its registers.
    pub fn live_stack(&self, thread: u16, pointer: u64, registers: Registers) -> LiveStack {
        let mut memory = StackMemory::new(self.pid);
        let unwound = self.unwound(registers, &mut memory);
        let cfa = unwound.iter().skip(1).map(|(_, cpu)| cpu.rsp()).chain([None]);
        let live =
            unwound.iter().zip(cfa).filter(|((call, _), _)| !self.is_hidden(*call)).map(
                |((call, cpu), cfa)| LiveFrame { call: *call, frame: Frame { registers: cpu.all(), cfa } },
            );
        LiveStack { thread, pointer, frames: live.collect() }
    }

    /// The name of an address in a global variable.
    pub fn global_name(&self, address: u64) -> Option<String> {
        self.object_name(address).map(|name| short(&name))
    }

    /// The global variables of the program with a single value, as loaded.
    pub fn scalars(&self) -> Vec<Scalar> {
        let Some(image) = self.images.iter().find(|image| image.main) else { return Vec::new() };
        let Some(debug) = self.module(image).and_then(|module| module.debug()) else { return Vec::new() };
        let found = debug.with_variables(|dwarf, variables| {
            globals::scalars(&Types::new(dwarf, variables.units()), variables)
        });
        let loaded = |scalar: Scalar| Scalar {
            name: short(&scalar.name),
            address: scalar.address.wrapping_add(image.bias),
            ..scalar
        };
        found.into_iter().map(loaded).collect()
    }

    /// The value of a variable as its type shows it. `None` if it cannot be read.
    pub fn value_of(&self, scalar: &Scalar) -> Option<String> {
        let mut words = [0];
        // A word may reach beyond the end of the memory, but its beginning need not be aligned.
        let end = scalar.address.checked_add(scalar.size.into())?;
        self.read_words(end.checked_sub(8)?, &mut words).ok()?;
        let value = words[0] >> (8 * (8 - u32::from(scalar.size)));
        Some(scalar.value.text(value, scalar.size, |address| self.symbol_at(address)))
    }

    /// The innermost frames of a thread, up to the first with a line of the program.
    pub fn stack_to_program(&mut self, registers: Registers) -> Stack {
        let mut frames = Vec::new();
        for (call, _) in self.unwound(registers, &mut StackMemory::new(self.pid)) {
            if self.is_hidden(call) {
                continue;
            }
            frames.extend(self.frame_at(call, false));
            if frames.iter().any(|frame| frame.own && frame.line.is_some()) {
                break;
            }
        }
        Stack(frames)
    }

    /// The name of an address.
    pub fn name(&self, target: &Target, stacks: &[LiveStack]) -> Option<Named> {
        let address = target.address;
        if let Some(text) = self.global_name(address) {
            let value = self.global_type(address, target.size);
            return Some(Named { text, pointers: 0, order: 0, base: address, value });
        }
        let mut best: Option<Named> = None;
        for image in &self.images {
            // Reading the debug information of the runtime would take longer than all else.
            let module = self.module(image).filter(|module| !self.hides(module));
            let Some(debug) = module.and_then(|module| module.debug()) else { continue };
            let found = self.name_in(image, debug, target, stacks);
            let better = |new: &Named| {
                best.as_ref().is_none_or(|old| (new.pointers, new.order) < (old.pointers, old.order))
            };
            best = found.filter(better).or(best);
        }
        best
    }

    fn name_in(
        &self,
        image: &Image,
        debug: &DebugInfo,
        target: &Target,
        stacks: &[LiveStack],
    ) -> Option<Named> {
        let address = target.address;
        let memory = RefCell::new(StackMemory::new(self.pid));
        let read = |address: u64| memory.borrow_mut().word(address);
        debug.with_variables(|dwarf, variables| {
            let types = Types::new(dwarf, variables.units());
            let tls = self.module(image).filter(|_| image.main).and_then(|module| module.tls_size());
            if let Some(size) = tls {
                for stack in stacks.iter().filter(|stack| stack.pointer >= size) {
                    let Some(offset) = address.checked_sub(stack.pointer - size).filter(|o| *o < size) else {
                        continue;
                    };
                    let name = variables.thread_local(&types, offset)?;
                    let text = format!("{} of T{}", short(&name), stack.thread);
                    let value = variables.thread_local_type(&types, offset, target.size);
                    return Some(Named { text, pointers: 0, order: 0, base: address, value });
                }
            }
            let mut roots = Vec::new();
            roots.extend(
                debug.globals(&types, variables).iter().map(|global| Root::global(global, image.bias)),
            );
            for stack in stacks {
                for live in stack.frames.iter().rev() {
                    if !self.image(live.call).is_some_and(|of| std::ptr::eq(of, image)) {
                        continue;
                    }
                    let Some(scope) = debug.scope(live.call.wrapping_sub(image.bias), dwarf, &types) else {
                        continue;
                    };
                    for variable in &scope.variables {
                        let at = live.frame.locate(variable, &scope, image.bias, &read);
                        roots.extend(at.map(|at| Root::local(variable, at, scope.rust)));
                    }
                }
            }
            let pointers = |type_| debug.pointers(&types, type_);
            Search::new(&types, &pointers, &read, target.clone()).run(roots)
        })
    }
}
