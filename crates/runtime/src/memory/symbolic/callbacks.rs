//! The functions that instrumented code calls; `heisen_abi::symbolic` says what they mean.

use super::terms::{self, CONCRETE, Operand};
use super::traffic::Access;
use super::{block_traffic, is_on};
use crate::memory::tsan;
use crate::platform::registers::caller;
use core::cell::UnsafeCell;
use heisen_abi::symbolic::{
    ARGUMENTS, CALLED, COUNT, Frame, RESULTS, Table, UNSEEN, VERSION, unpack_operation,
};
use heisen_trace::ValueOp;
use heisen_wire::symbolic::{kind, reason};

/// What calls hand over beside arguments and results.
#[repr(transparent)]
pub struct SharedFrame(UnsafeCell<Frame>);

// SAFETY: only the thread that runs accesses the frame, and only with copies of its fields.
unsafe impl Sync for SharedFrame {}

/// The frame of all modules.
pub static FRAME: SharedFrame = SharedFrame(UnsafeCell::new(Frame {
    live: 0,
    pad: 0,
    callee: 0,
    returner: 0,
    arguments: [CONCRETE; ARGUMENTS],
    results: [CONCRETE; RESULTS],
    place: 0,
}));

impl SharedFrame {
    /// From now on memory may hold expressions. Instrumented code relies on that until the process ends, or its memory is
    /// restored.
    pub fn begin(&self) {
        // SAFETY: as for the static.
        unsafe { (*self.0.get()).live = 1 };
    }

    /// The place from which the stub calls; 0 if it does not.
    fn place(&self) -> usize {
        // SAFETY: as for the static.
        unsafe { (*self.0.get()).place as usize }
    }

    /// The expressions of the arguments of the function at this address, which is called now.
    pub fn take_arguments<const N: usize>(&self, function: usize) -> [u32; N] {
        let frame = self.0.get();
        // SAFETY: as for the static.
        unsafe {
            if (*frame).callee != function as u64 {
                return [CONCRETE; N];
            }
            (*frame).callee = 0;
            core::array::from_fn(|index| (&raw const (*frame).arguments[index]).read())
        }
    }

    /// The expression that the function at this address has returned.
    pub fn take_result(&self, function: usize) -> u32 {
        let frame = self.0.get();
        // SAFETY: as for the static.
        unsafe { if (*frame).returner == function as u64 { (*frame).results[0] } else { CONCRETE } }
    }

    /// The function at this address returns an expression, or 0. Callers of functions that do not say so replace the
    /// arguments by their values.
    pub fn returns(&self, function: usize, id: u32) {
        let frame = self.0.get();
        // SAFETY: as for the static.
        unsafe {
            (*frame).results[0] = id;
            (*frame).returner = function as u64;
        }
    }
}

/// The place in the program that a callback is about: the stub says it; other code calls from there.
macro_rules! place {
    () => {
        match FRAME.place() {
            0 => caller!(),
            place => place,
        }
    };
}

/// Whether an access has one of the sizes that are logged as one event.
fn is_word(size: u64) -> bool {
    (1..=8).contains(&size)
}

/// The operation of a word, and the bits of its operands and its result.
fn parsed(word: u32) -> Option<(ValueOp, u32, u32)> {
    let (op, from, to) = unpack_operation(word);
    ValueOp::from_code(op).map(|op| (op, from, to))
}

/// See `heisen_abi::symbolic_callbacks`.
pub extern "C" fn heisen_sym_unary(operation: u32, id: u32, _value: u64) -> u32 {
    match parsed(operation) {
        Some((op, from, to)) if is_on() => terms::unary(op, from, to, id),
        _ => CONCRETE,
    }
}

/// See `heisen_abi::symbolic_callbacks`.
pub extern "C" fn heisen_sym_binary(operation: u32, a: u32, b: u32, va: u64, vb: u64) -> u32 {
    match parsed(operation) {
        Some((op, from, to)) if is_on() => {
            let (a, b) = (Operand::of(a, va), Operand::of(b, vb));
            terms::divided(op, from, a, b, place!());
            terms::binary(op, from, to, a, b)
        }
        _ => CONCRETE,
    }
}

/// See `heisen_abi::symbolic_callbacks`.
pub extern "C" fn heisen_sym_select(
    operation: u32,
    condition: u32,
    chosen: u32,
    a: u32,
    b: u32,
    va: u64,
    vb: u64,
) -> u32 {
    if !is_on() {
        return CONCRETE;
    }
    if condition == CONCRETE {
        return if chosen & 1 != 0 { a } else { b };
    }
    let (_, from, _) = unpack_operation(operation);
    terms::select(from, condition, Operand::of(a, va), Operand::of(b, vb))
}

/// See `heisen_abi::symbolic_callbacks`.
pub extern "C" fn heisen_sym_load(address: u64, size: u32, address_id: u32, value: u64) -> u32 {
    if !is_on() || !is_word(size.into()) {
        return CONCRETE;
    }
    let access = Access { address: address as usize, size: size as usize, pc: place!() };
    access.pins(address_id);
    access.loads(value)
}

/// See `heisen_abi::symbolic_callbacks`.
pub extern "C" fn heisen_sym_store(address: u64, size: u64, address_id: u32, id: u32, value: u64) {
    if !is_on() {
        return;
    }
    let access = Access { address: address as usize, size: size as usize, pc: place!() };
    access.pins(address_id);
    if is_word(size) {
        access.stores(id, value);
    } else {
        block_traffic::stored(access.address, access.size, access.pc);
    }
}

/// See `heisen_abi::symbolic_callbacks`.
pub extern "C" fn heisen_sym_update(
    how: u32,
    address: u64,
    size: u32,
    address_id: u32,
    id: u32,
    value: u64,
    old: u64,
) -> u32 {
    if !is_on() || !is_word(size.into()) {
        return CONCRETE;
    }
    let access = Access { address: address as usize, size: size as usize, pc: place!() };
    access.pins(address_id);
    access.updates(how, Operand::of(id, value), old)
}

/// See `heisen_abi::symbolic_callbacks`.
pub extern "C" fn heisen_sym_compare(
    address: u64,
    size: u32,
    address_id: u32,
    expected_id: u32,
    expected: u64,
    id: u32,
    value: u64,
    old: u64,
) -> u32 {
    if !is_on() || !is_word(size.into()) {
        return CONCRETE;
    }
    let access = Access { address: address as usize, size: size as usize, pc: place!() };
    access.pins(address_id);
    access.compares(Operand::of(expected_id, expected), Operand::of(id, value), old)
}

/// See `heisen_abi::symbolic_callbacks`.
pub extern "C" fn heisen_sym_copy(to: u64, from: u64, bytes: u64, to_id: u32, from_id: u32, bytes_id: u32) {
    if !is_on() {
        return;
    }
    let pc = place!();
    terms::pin(to_id, to, reason::ADDRESS, pc);
    terms::pin(from_id, from, reason::ADDRESS, pc);
    terms::pin(bytes_id, bytes, reason::SIZE, pc);
    let (to, from, bytes) = (to as usize, from as usize, bytes as usize);
    // Other threads may run before the copy is made, but not between this function and the copy.
    tsan::announce(to, from, bytes, pc);
    if is_on() {
        block_traffic::copies(to, from, bytes, pc);
    }
}

/// See `heisen_abi::symbolic_callbacks`.
pub extern "C" fn heisen_sym_fill(to: u64, bytes: u64, to_id: u32, bytes_id: u32, id: u32, value: u64) {
    if !is_on() {
        return;
    }
    let pc = place!();
    terms::pin(to_id, to, reason::ADDRESS, pc);
    terms::pin(bytes_id, bytes, reason::SIZE, pc);
    block_traffic::fills(to as usize, bytes as usize, Operand::of(id, value), pc);
}

/// See `heisen_abi::symbolic_callbacks`.
pub extern "C" fn heisen_sym_branch(id: u32, taken: u32) {
    if is_on() {
        terms::asserts(kind::BRANCH, id, taken & 1 != 0, place!());
    }
}

/// See `heisen_abi::symbolic_callbacks`.
pub extern "C" fn heisen_sym_pin(id: u32, value: u64, reason: u32) {
    if !is_on() {
        return;
    }
    match reason {
        CALLED => super::calls(value),
        reason if reason & UNSEEN != 0 => super::accesses_unseen(reason - UNSEEN),
        reason => terms::pin(id, value, reason, place!()),
    }
}

macro_rules! addresses {
    ($($name:ident($($argument:ident: $ty:ty),*) -> $result:ty;)*) => {
        [$({
            let function: extern "C" fn($($ty),*) -> $result = $name;
            function as *const ()
        },)*]
    };
}

/// The functions, for instrumented code.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static heisen_symbolic_table: Table = Table {
    version: VERSION,
    length: COUNT as u32,
    frame: FRAME.0.get(),
    callbacks: heisen_abi::symbolic_callbacks!(addresses),
};
