//! The callbacks of symbolic builds: what instrumented code says of its expressions.
//!
//! Each integer, pointer and floating-point value of a symbolic build has an *id* beside it, 0 while the value does not
//! depend on an unknown. Callbacks take ids and values, and return the id of a result. The stub calls
//! those of operations, branches and pins only if an id is not 0, and the others only where memory may hold expressions
//! ([`Frame::live`]).
//!
//! An operation is a word: its number ([`operation`]), the bits of its operands and the bits of its result. Values have at
//! most 64 bits, extended by zeros.
//!
//! Without a runtime code that has ids does not run, but for functions that cannot be copied. Their ids are 0, and the stub
//! does nothing for them.

/// Increases with every change of [`symbolic_callbacks`](crate::symbolic_callbacks) and of [`Frame`].
pub const VERSION: u32 = 1;

/// The section that each object with symbolic code has.
pub const NOTE: &str = ".note.heisen.symbolic";

/// The largest number of arguments of a call that may be expressions.
pub const ARGUMENTS: usize = 48;
/// The largest number of parts of a result that may be expressions.
pub const RESULTS: usize = 16;

/// What calls hand over beside arguments and results. The stub of each module reads and writes it for the module's code. There is one, because one thread runs at a time and no callback
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
    /// While it is 0, no id is other than 0: the stub then looks at nothing else. Once it is not 0, it stays so until the
    /// process ends: ids in frames of running functions are not cleared again.
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
    /// The place in the program from which the callbacks that run now come: a return address. Where arguments are pinned,
    /// the address of the function that takes them.
    pub place: u64,
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

/// In place of the number of a reason in `heisen_sym_pin` with the id 0: the value is the address of the name, which ends with
/// a 0, of a function without instrumentation that is called now.
pub const CALLED: u32 = 1 << 16;

/// Added to the number of a reason in `heisen_sym_pin` with the id 0: code runs now that may access memory without notice.
pub const UNSEEN: u32 = 1 << 17;
/// The section that lists the functions without instrumentation whose addresses the program takes, each ending with a 0. It
/// is there if the program is one module, whose calls of such functions are logged.
pub const ADDRESS_TAKEN: &str = ".heisen.taken";

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
/// | `pin` | an expression is replaced by its value: id, value, the number of a `heisen_trace::symbolic::PinReason`; see also [`CALLED`] and [`UNSEEN`] |
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

/// The steps of instrumented code. A list of steps is a *program*, a constant of the module. Where a runtime is loaded, code
/// calls `heisen_sym_run(program, area, a, b, c, d)` of the stub, which takes the steps one after the other, by
/// callbacks. That keeps code small. The function keeps all general registers but `r11` (LLVM's `preserve_mostcc`). The format belongs to the name of the function: another format has another name.
///
/// A program consists of words of 4 bytes. A step is a word with its number, and then as many words as are listed here:
///
/// | operand | words |
/// | --- | --- |
/// | id | the index of a variable of the area plus 1, or 0 for none |
/// | value | a word with a tag in the two highest bits, see [`program::VALUE`] |
/// | number | itself |
///
/// The area are the variables of the running function: values that are not among the four arguments, of 8 bytes each, and
/// then ids of 4 bytes. Indices count 4 bytes.
pub mod program {
    /// The name of the stub's hidden variable of 4 bytes that is not 0 if a runtime is loaded. Functions look at it when they
    /// begin: where it is 0, they go on in a body that is not instrumented at all. It never changes while code of the
    /// module runs.
    pub const LOADED: &str = "heisen_sym_loaded";
    /// The name of the function that runs programs. It returns at once while [`Frame::live`](super::Frame::live) is 0.
    pub const RUN: &str = "heisen_sym_run";
    /// How many values are arguments of that function.
    pub const ARGUMENTS: u32 = 4;

    /// The tag of a value: its number. The first ones are arguments, the others lie in the area.
    pub const VALUE: u32 = 0;
    /// This bit beside the tag of a value says that the next word, which is signed, is to be added.
    pub const OFFSET: u32 = 1 << 29;
    /// The tag of a constant: the other 30 bits.
    pub const SMALL: u32 = 1 << 30;
    /// The tag of a constant in the next two words, the lower half first.
    pub const LARGE: u32 = 2 << 30;
    /// The tag of the address that the last `INDEX` has computed.
    pub const SUM: u32 = 3 << 30;
    /// The bits of the tag.
    pub const TAG: u32 = 3 << 30;

    /// The program ends.
    pub const END: u32 = 0;
    /// `word`, id and value; out.
    pub const UNARY: u32 = 1;
    /// `word`, two ids, two values; out.
    pub const BINARY: u32 = 2;
    /// `word`, three ids, three values, the condition first; out.
    pub const SELECT: u32 = 3;
    /// The value of the condition, two ids; out.
    pub const CHOOSE: u32 = 4;
    /// `word` of a [`Composition`](super::Composition), three ids, three values; out.
    pub const COMPOSE: u32 = 5;
    /// Ids of an address and of an index, their values, a factor (a value), the bits of the index, which is signed; out.
    pub const INDEX: u32 = 6;
    /// Id and value of the start of an address, the value of its end; out.
    pub const REST: u32 = 7;
    /// The size, id and value of the address, the value; out.
    pub const LOAD: u32 = 8;
    /// The size, id and value of the address, id and value.
    pub const STORE: u32 = 9;
    /// How, the size, id and value of the address, id and value of the operand, the old value; out.
    pub const UPDATE: u32 = 10;
    /// The size, id and value of the address, of what was expected, of what was to be stored; the old value; out.
    pub const COMPARE: u32 = 11;
    /// Three ids and three values: to, from, bytes.
    pub const COPY: u32 = 12;
    /// Three ids and three values: to, bytes, byte.
    pub const FILL: u32 = 13;
    /// The address (a value), the bytes, the reason.
    pub const CONCRETISE: u32 = 14;
    /// Id and value.
    pub const BRANCH: u32 = 15;
    /// Id and value, the reason; see also [`CALLED`](super::CALLED) and [`UNSEEN`](super::UNSEEN).
    pub const PIN: u32 = 16;
    /// Two ids: from, to.
    pub const MOVE: u32 = 17;
    /// The address of the function (a value), how many arguments; for each its number and id.
    pub const ENTER: u32 = 18;
    /// The number of the first argument for it, the address of the function, its own (values), its bytes: a structure
    /// passed by value. Comes before `ENTER`.
    pub const TAKE_STRUCTURE: u32 = 19;
    /// The address of the function (a value), how many arguments; for each its number and id.
    pub const PASS: u32 = 20;
    /// The number of the first argument for it, its address (a value): a structure passed by value.
    pub const PASS_STRUCTURE: u32 = 21;
    /// The address of the function (a value), how many results, how many arguments to pin; for each result its number and
    /// id; for each argument id and value.
    pub const RESULTS: u32 = 22;
    /// The address of the function (a value), how many results; for each its id.
    pub const RETURN: u32 = 23;
    /// No function is the one that returned last.
    pub const FORGET: u32 = 24;
    /// The address of the function (a value), how many of its arguments; for each id and value: the function takes them as
    /// values, for it is not instrumented or takes any number of arguments.
    pub const FOREIGN: u32 = 25;
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
