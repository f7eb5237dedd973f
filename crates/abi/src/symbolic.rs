//! The callbacks of symbolic builds: what instrumented code says of its expressions.
//!
//! Each integer, pointer and floating-point value of a symbolic build has an *id* beside it, 0 while the value does not
//! depend on an unknown. Callbacks take ids and values, and return the id of a result. The stub passes on
//! those of operations, branches and pins only if an id is not 0. Code calls the others only where memory may hold
//! expressions ([`Frame::live`]).
//!
//! An operation is a word: its number ([`operation`]), the bits of its operands and the bits of its result. Values have at
//! most 64 bits, extended by zeros.
//!
//! Without a runtime no id is ever other than 0, and the stub's own functions return 0 and do nothing else.

/// Increases with every change of [`symbolic_callbacks`](crate::symbolic_callbacks) and of [`Frame`].
pub const VERSION: u32 = 1;

/// The largest number of arguments of a call that may be expressions.
pub const ARGUMENTS: usize = 48;
/// The largest number of parts of a result that may be expressions.
pub const RESULTS: usize = 16;

/// What calls hand over beside arguments and results. Instrumented code reads and writes it through the hidden variable
/// `heisen_sym_frame` of its module, which points to it. There is one, because one thread runs at a time and no callback
/// lies between the writer and the reader.
///
/// - Before a call with an argument whose id is not 0, the caller stores all ids and then the address of the function.
/// - A function begins by comparing `callee` with its own address. If they are equal, it takes the ids, and stores 0 as
///   `callee`. Otherwise all ids are 0.
/// - A function that returns stores its parts and then its own address as `returner`, even if all of them are 0. Only
///   functions whose callers are all known may leave that out, if no part can be other than 0.
/// - After a call the caller compares `returner` with the address that it called, and stores 0 as `returner`. If they are
///   equal, it takes the parts. Otherwise all ids are 0, and the function is not instrumented: the caller pins the
///   arguments that were expressions.
/// - A structure that is passed by value, in memory, takes two places among the arguments: the lower and the upper half of
///   the address from which the caller copies it.
#[repr(C)]
#[derive(Debug)]
pub struct Frame {
    /// Not 0 if memory may hold expressions, or accesses may be unknowns. Otherwise loads, stores and block operations
    /// need no callback, and functions need not look at `callee`.
    ///
    /// While it is 0, no id is other than 0: instrumented code then looks at nothing else. Once it is not 0, it stays so
    /// until the process ends: ids in frames of running functions are not cleared again.
    pub live: u32,
    /// Unused.
    pub pad: u32,
    /// The function that the arguments are for; 0 if there are none.
    pub callee: u64,
    /// The function that the results are from; 0 if there are none.
    pub returner: u64,
    /// The ids of the arguments, in order; a structure has one for each part.
    pub arguments: [u32; ARGUMENTS],
    /// The ids of the parts of the result.
    pub results: [u32; RESULTS],
}

/// The runtime's functions, exported as `heisen_symbolic_table`.
#[repr(C)]
#[derive(Debug)]
pub struct Table {
    /// [`VERSION`]
    pub version: u32,
    /// [`COUNT`]
    pub length: u32,
    /// The frame of all modules.
    pub frame: *mut Frame,
    /// A function for each name, in the order of [`symbolic_callbacks`](crate::symbolic_callbacks).
    pub callbacks: [*const (); COUNT],
}

// SAFETY: the pointers are addresses of functions and of one frame, and nobody writes them.
unsafe impl Sync for Table {}

/// The word for an operation: `op` is the number of a `heisen_trace::ValueOp`, `from` the bits of its operands (of a
/// selection, of its second and third), `to` the bits of its result.
pub const fn operation(op: u8, from: u32, to: u32) -> u32 {
    op as u32 | from << 8 | to << 16
}

/// The number of the operation, the bits of its operands and the bits of its result.
pub const fn unpack_operation(word: u32) -> (u8, u32, u32) {
    (word as u8, word >> 8 & 0xff, word >> 16 & 0xff)
}

/// Operations that LLVM has and the trace does not. The stub composes them of callbacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Composition {
    /// The unsigned minimum.
    UMin = 1,
    /// The unsigned maximum.
    UMax = 2,
    /// The signed minimum.
    SMin = 3,
    /// The signed maximum.
    SMax = 4,
    /// The absolute value.
    Abs = 5,
    /// The unsigned sum, at most the largest number.
    UAddSat = 6,
    /// The unsigned difference, at least 0.
    USubSat = 7,
    /// The signed sum, at most the largest and at least the smallest number.
    SAddSat = 8,
    /// The signed difference, likewise.
    SSubSat = 9,
    /// The upper half of the first two operands in a row, shifted to the left by the third modulo the width.
    FunnelLeft = 10,
    /// The lower half of the first two operands in a row, shifted to the right by the third modulo the width.
    FunnelRight = 11,
    /// -1, 0 or 1: how two unsigned numbers compare.
    UCompare = 12,
    /// -1, 0 or 1: how two signed numbers compare.
    SCompare = 13,
}

impl Composition {
    /// The word for it, with the bits of its operands and of its result.
    pub const fn word(self, from: u32, to: u32) -> u32 {
        operation(self as u8, from, to)
    }
}

/// How an atomic update changes memory, in the first argument of `heisen_sym_update`.
pub mod update {
    /// Stores the operand.
    pub const EXCHANGE: u32 = 0;
    /// Adds the operand.
    pub const ADD: u32 = 1;
    /// Subtracts the operand.
    pub const SUB: u32 = 2;
    /// Bitwise and.
    pub const AND: u32 = 3;
    /// Bitwise or.
    pub const OR: u32 = 4;
    /// Bitwise exclusive or.
    pub const XOR: u32 = 5;
    /// The inverted bitwise and.
    pub const NAND: u32 = 6;
    /// The signed maximum.
    pub const MAX: u32 = 7;
    /// The signed minimum.
    pub const MIN: u32 = 8;
    /// The unsigned maximum.
    pub const UMAX: u32 = 9;
    /// The unsigned minimum.
    pub const UMIN: u32 = 10;
}

/// Calls the macro that it is given with the list: `name(arguments) -> result;` for each callback.
///
/// | callback | when |
/// | --- | --- |
/// | `unary`, `binary` | after an operation; each operand has id and value |
/// | `select` | after a selection with a condition whose id is not 0: condition, both operands |
/// | `load` | after a load of 1 to 8 bytes: address, size, id of the address, the value; gives the id of the value |
/// | `store` | after a store: address, size, id of the address, id and value; a size above 8 has id 0 and clears |
/// | `update` | after an atomic update: how, address, size, id of the address, id and value of the operand, the old value; gives the id of the old value |
/// | `compare` | after a compare-exchange: address, size, id of the address, id and value of what was expected, of what was to be stored, and the old value; gives the id of the old value |
/// | `copy` | before memory is copied: to, from, bytes, and their ids |
/// | `fill` | after memory was filled: address, bytes, their ids, id and value of the byte |
/// | `branch` | before a branch on an expression: id and value of the condition |
/// | `pin` | an expression is replaced by its value: id, value, the number of a `heisen_trace::symbolic::PinReason` |
#[macro_export]
macro_rules! symbolic_callbacks {
    ($with:ident) => {
        $with! {
            heisen_sym_unary(operation: u32, id: u32, value: u64) -> u32;
            heisen_sym_binary(operation: u32, a: u32, b: u32, va: u64, vb: u64) -> u32;
            heisen_sym_select(operation: u32, condition: u32, chosen: u32, a: u32, b: u32, va: u64, vb: u64) -> u32;
            heisen_sym_load(address: u64, size: u32, address_id: u32, value: u64) -> u32;
            heisen_sym_store(address: u64, size: u64, address_id: u32, id: u32, value: u64) -> ();
            heisen_sym_update(how: u32, address: u64, size: u32, address_id: u32, id: u32, value: u64, old: u64) -> u32;
            heisen_sym_compare(address: u64, size: u32, address_id: u32, expected_id: u32, expected: u64, id: u32, value: u64, old: u64) -> u32;
            heisen_sym_copy(to: u64, from: u64, bytes: u64, to_id: u32, from_id: u32, bytes_id: u32) -> ();
            heisen_sym_fill(to: u64, bytes: u64, to_id: u32, bytes_id: u32, id: u32, value: u64) -> ();
            heisen_sym_branch(id: u32, taken: u32) -> ();
            heisen_sym_pin(id: u32, value: u64, reason: u32) -> ();
        }
    };
}

/// Calls the macro that it is given with the list of the stub's own functions, in the form of
/// [`symbolic_callbacks`](crate::symbolic_callbacks). They consist of callbacks, and keep instrumented code short.
///
/// | function | what it does |
/// | --- | --- |
/// | `compose` | a [`Composition`]: up to three operands, their ids first |
/// | `index` | adds an index times a factor to an address: id of the address, of the index, their values, the factor, the bits of the index, which is signed |
/// | `concretise` | pins what lies in memory: address, bytes, reason |
/// | `clear` | sets variables of the caller to 0: address, number of words of 4 bytes |
#[macro_export]
macro_rules! symbolic_helpers {
    ($with:ident) => {
        $with! {
            heisen_sym_compose(word: u32, a: u32, b: u32, c: u32, va: u64, vb: u64, vc: u64) -> u32;
            heisen_sym_index(address: u32, index: u32, va: u64, vi: u64, factor: u64, bits: u32) -> u32;
            heisen_sym_concretise(address: u64, bytes: u64, reason: u32) -> ();
            heisen_sym_clear(address: u64, words: u64) -> ();
        }
    };
}

macro_rules! names {
    ($($name:ident($($argument:ident: $ty:ty),*) -> $result:ty;)*) => {
        [$(stringify!($name)),*]
    };
}

/// The names of the callbacks, in order.
pub const NAMES: &[&str] = &symbolic_callbacks!(names);

/// How many callbacks there are.
pub const COUNT: usize = NAMES.len();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_round_trip() {
        assert_eq!(unpack_operation(operation(36, 64, 1)), (36, 64, 1));
        assert_eq!(COUNT, 11, "the list has changed: it needs a new version");
    }
}
