//! What a symbolic build does beside the program's own instructions, before it is written as code.

use crate::symbolic::ir::Value;

/// The id of one leaf of one value. It is a number of this function; the id that a running program has is another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(pub u32);

impl Id {
    /// The id of leaves that are never expressions.
    pub const NONE: Id = Id(0);

    /// Whether the leaf may be an expression.
    pub fn is_some(self) -> bool {
        self != Id::NONE
    }
}

/// A value of the running program, at most 64 bits of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concrete {
    /// A number.
    Constant(u64),
    /// A leaf of a value.
    Leaf(Value, usize),
    /// The opposite of a value of one bit.
    NotLeaf(Value),
    /// A value of one leaf, extended to 64 bits, plus some bytes.
    Address(Value, i32),
    /// The address that the last summand was added to.
    Sum,
    /// What lies at an address, of this many bytes.
    Memory(Value, u32),
}

/// An id and the value that belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    /// The id.
    pub id: Id,
    /// The value.
    pub value: Concrete,
}

impl Operand {
    /// A value that is never an expression.
    pub fn concrete(value: Concrete) -> Operand {
        Operand { id: Id::NONE, value }
    }

    /// A number.
    pub fn constant(number: u64) -> Operand {
        Operand::concrete(Concrete::Constant(number))
    }
}

/// A summand of an address: an index that may be an expression.
#[derive(Clone, Copy, Debug)]
pub struct Summand {
    /// The index.
    pub index: Operand,
    /// Its bits; it is signed.
    pub bits: u32,
    /// What it is multiplied by.
    pub scale: u64,
}

/// What an address has beside its base and its summands.
#[derive(Clone, Copy, Debug)]
pub enum Rest {
    /// This many bytes.
    Fixed(u64),
    /// Whatever is left up to this value.
    UpTo(Value),
}

/// One action.
#[derive(Clone, Debug)]
pub enum Step {
    /// An operation on one operand.
    Unary { word: u32, a: Operand, out: Id },
    /// An operation on two operands.
    Binary { word: u32, a: Operand, b: Operand, out: Id },
    /// A selection whose condition may be an expression.
    Select { word: u32, condition: Operand, a: Operand, b: Operand, out: Id },
    /// A selection whose condition is not an expression.
    Choose { condition: Value, a: Id, b: Id, out: Id },
    /// Several operations at once.
    Compose { word: u32, operands: [Operand; 3], out: Id },
    /// An address: a base, indices that may be expressions, and the rest.
    Address { base: Operand, summands: Vec<Summand>, rest: Rest, out: Id },
    /// A load.
    Load { address: Operand, size: u32, value: Concrete, out: Id },
    /// A store of at most 8 bytes.
    Store { address: Operand, size: u64, value: Operand },
    /// A store of more than 8 bytes that are not expressions.
    Clear { address: Operand, bytes: u64 },
    /// An atomic update.
    Update { how: u32, address: Operand, size: u32, value: Operand, old: Concrete, out: Id },
    /// A compare-exchange.
    Compare { address: Operand, size: u32, expected: Operand, value: Operand, old: Concrete, out: Id },
    /// A copy of memory.
    Copy { to: Operand, from: Operand, bytes: Operand },
    /// A block of memory was filled.
    Fill { to: Operand, bytes: Operand, byte: Operand },
    /// What lies in memory is replaced by its value.
    Concretise { address: Value, bytes: u64, reason: u32 },
    /// A branch.
    Branch { condition: Operand },
    /// An expression is replaced by its value.
    Pin { operand: Operand, reason: u32 },
    /// A function takes arguments as values, not as expressions.
    TakesValues { callee: Value, operands: Vec<Operand> },
    /// A function without instrumentation is called whose calls are logged: a constant with its name.
    Foreign { name: Value },
    /// Code runs that may access memory without notice.
    Unseen { reason: u32 },
    /// All at once, ids become those of phis.
    Phis(Vec<(Id, Id)>),
    /// The ids of arguments are taken, by their number; and structures passed by value, with their bytes.
    Enter { function: Value, arguments: Vec<(usize, Id)>, by_value: Vec<(usize, Value, u64)> },
    /// The ids of arguments are handed over; and the addresses of structures passed by value.
    Arguments { callee: Value, arguments: Vec<(usize, Id)>, by_value: Vec<(usize, Value)> },
    /// The ids of results are taken. If the function has not handed over any, it is not instrumented: arguments that were
    /// handed over are pinned.
    Results { callee: Value, results: Vec<Id>, foreign: Vec<Operand> },
    /// The ids of results are handed over.
    Return { function: Value, results: Vec<Id> },
    /// No function is the one that handed over results last.
    Forget,
}

impl Step {
    /// The ids that it needs, without those of [`Step::Phis`].
    pub fn uses(&self) -> Vec<Id> {
        match self {
            Step::Unary { a, .. } => vec![a.id],
            Step::Binary { a, b, .. } => vec![a.id, b.id],
            Step::Select { condition, a, b, .. } => vec![condition.id, a.id, b.id],
            Step::Choose { a, b, .. } => vec![*a, *b],
            Step::Compose { operands, .. } => operands.iter().map(|operand| operand.id).collect(),
            Step::Address { base, summands, .. } => {
                summands.iter().map(|summand| summand.index.id).chain([base.id]).collect()
            }
            Step::Load { address, .. } | Step::Clear { address, .. } => vec![address.id],
            Step::Store { address, value, .. } | Step::Update { address, value, .. } => {
                vec![address.id, value.id]
            }
            Step::Compare { address, expected, value, .. } => vec![address.id, expected.id, value.id],
            Step::Copy { to, from, bytes } => vec![to.id, from.id, bytes.id],
            Step::Fill { to, bytes, byte } => vec![to.id, bytes.id, byte.id],
            Step::Branch { condition } => vec![condition.id],
            Step::Pin { operand, .. } => vec![operand.id],
            Step::Arguments { arguments, .. } => arguments.iter().map(|(_, id)| *id).collect(),
            Step::Results { foreign: operands, .. } | Step::TakesValues { operands, .. } => {
                operands.iter().map(|operand| operand.id).collect()
            }
            Step::Return { results, .. } => results.clone(),
            Step::Foreign { .. }
            | Step::Unseen { .. }
            | Step::Concretise { .. }
            | Step::Phis(_)
            | Step::Enter { .. }
            | Step::Forget => Vec::new(),
        }
    }

    /// The ids that it makes.
    pub fn outs(&self) -> Vec<Id> {
        match self {
            Step::Load { out, .. } | Step::Update { out, .. } | Step::Compare { out, .. } => vec![*out],
            Step::Phis(pairs) => pairs.iter().map(|(_, to)| *to).collect(),
            Step::Enter { arguments, .. } => arguments.iter().map(|(_, id)| *id).collect(),
            Step::Results { results, .. } => results.clone(),
            _ => self.pure_out().into_iter().collect(),
        }
    }

    /// Whether it may wait while other code runs: it only makes ids of others.
    pub fn can_wait(&self) -> bool {
        self.pure_out().is_some() || matches!(self, Step::Phis(_))
    }

    /// The id that it makes, if it does nothing else.
    pub fn pure_out(&self) -> Option<Id> {
        match self {
            Step::Unary { out, .. }
            | Step::Binary { out, .. }
            | Step::Select { out, .. }
            | Step::Choose { out, .. }
            | Step::Compose { out, .. }
            | Step::Address { out, .. } => Some(*out),
            _ => None,
        }
    }
}

/// Steps that the program takes one after the other, before an instruction, if there may be expressions at all.
#[derive(Clone, Debug)]
pub struct Group {
    /// The instruction.
    pub before: Value,
    /// The steps.
    pub steps: Vec<Step>,
}
