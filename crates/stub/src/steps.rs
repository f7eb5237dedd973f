//! Runs the programs of symbolic builds: takes one step after the other, see `heisen_abi::symbolic::program`.

use crate::compose::{Number, binary, compose, scaled, select, unary};
use crate::symbolic::{
    frame, heisen_sym_branch, heisen_sym_compare, heisen_sym_copy, heisen_sym_fill, heisen_sym_load,
    heisen_sym_pin, heisen_sym_store, heisen_sym_update,
};
use heisen_abi::symbolic::{CALLED, Frame, operation, program as step};
use heisen_trace::value_op::ValueOp;

/// `heisen_trace::symbolic::PinReason::Foreign`.
const FOREIGN: u32 = 6;

/// What a program needs while it runs.
struct Run {
    program: *const u32,
    area: *mut u32,
    arguments: [u64; step::ARGUMENTS as usize],
    /// The address that the last `INDEX` has computed.
    sum: u64,
}

impl Run {
    /// The next word.
    fn number(&mut self) -> u32 {
        // SAFETY: programs end with a step after which nobody reads on.
        unsafe {
            let word = self.program.read();
            self.program = self.program.add(1);
            word
        }
    }

    /// The id in the next word.
    fn id(&mut self) -> u32 {
        match self.number() {
            0 => 0,
            // SAFETY: indices are of variables of the area.
            place => unsafe { self.area.add(place as usize - 1).read() },
        }
    }

    /// Stores an id in the variable that the next word names.
    fn set(&mut self, id: u32) {
        let place = self.number();
        if place != 0 {
            // SAFETY: as for `id`.
            unsafe { self.area.add(place as usize - 1).write(id) };
        }
    }

    /// The value in the next words.
    fn value(&mut self) -> u64 {
        let word = self.number();
        let rest = word & !step::TAG;
        match word & step::TAG {
            step::VALUE => {
                let number = rest & !step::OFFSET;
                let value = match number.checked_sub(step::ARGUMENTS) {
                    None => self.arguments[number as usize & 3],
                    // SAFETY: the area begins with the other values.
                    Some(place) => unsafe { self.area.cast::<u64>().add(place as usize).read() },
                };
                let offset = if rest & step::OFFSET == 0 { 0 } else { self.number().cast_signed() };
                value.wrapping_add_signed(offset.into())
            }
            step::SMALL => rest.into(),
            step::SUM => self.sum,
            _ => {
                let low = self.number();
                u64::from(low) | u64::from(self.number()) << 32
            }
        }
    }
}

/// Pins an expression.
fn pin(id: u32, value: u64, reason: u32) {
    if id != 0 || reason >= CALLED {
        heisen_sym_pin(id, value, reason);
    }
}

/// `heisen_sym_run`.
///
/// # Safety
/// Instrumented code calls it with a program of its module, and its own variables.
pub unsafe extern "C" fn run(program: *const u32, area: *mut u32, a: u64, b: u64, c: u64, d: u64) {
    let mut at = Run { program, area, arguments: [a, b, c, d], sum: 0 };
    // SAFETY: the frame is the runtime's, or the stub's own, which nobody else writes.
    let frame = unsafe { &mut *frame() };
    loop {
        match at.number() {
            step::UNARY => {
                let (word, id, value) = (at.number(), at.id(), at.value());
                at.set(unary(word, id, value));
            }
            step::BINARY => {
                let (word, a, b, va, vb) = (at.number(), at.id(), at.id(), at.value(), at.value());
                at.set(binary(word, a, b, va, vb));
            }
            step::SELECT => {
                let (word, condition, a, b) = (at.number(), at.id(), at.id(), at.id());
                let (chosen, va, vb) = (at.value(), at.value(), at.value());
                at.set(select(word, condition, chosen as u32, a, b, va, vb));
            }
            step::CHOOSE => {
                let (chosen, a, b) = (at.value(), at.id(), at.id());
                at.set(if chosen == 0 { b } else { a });
            }
            step::COMPOSE => {
                let word = at.number();
                let ids = [at.id(), at.id(), at.id()];
                let values = [at.value(), at.value(), at.value()];
                at.set(compose(word, ids, values));
            }
            step::INDEX => {
                let (address, index, va, vi) = (at.id(), at.id(), at.value(), at.value());
                let (factor, bits) = (at.value(), at.number());
                let index = scaled(index, vi, factor, bits);
                let sum = Number { id: address, value: va, bits: 64 }.plus(index);
                at.sum = sum.value;
                at.set(sum.id);
            }
            step::REST => {
                let (id, start, end) = (at.id(), at.value(), at.value());
                at.set(binary(operation(ValueOp::Add as u8, 64, 64), id, 0, start, end.wrapping_sub(start)));
            }
            step::LOAD => {
                let (size, id, address, value) = (at.number(), at.id(), at.value(), at.value());
                at.set(heisen_sym_load(address, size, id, value));
            }
            step::STORE => {
                let (size, address_id, address) = (at.number(), at.id(), at.value());
                let (id, value) = (at.id(), at.value());
                heisen_sym_store(address, size.into(), address_id, id, value);
            }
            step::UPDATE => {
                let (how, size, address_id, address) = (at.number(), at.number(), at.id(), at.value());
                let (id, value, old) = (at.id(), at.value(), at.value());
                at.set(heisen_sym_update(how, address, size, address_id, id, value, old));
            }
            step::COMPARE => {
                let (size, address_id, address) = (at.number(), at.id(), at.value());
                let (expected_id, expected, id, value) = (at.id(), at.value(), at.id(), at.value());
                let old = at.value();
                at.set(heisen_sym_compare(address, size, address_id, expected_id, expected, id, value, old));
            }
            step::COPY => {
                let (to_id, from_id, bytes_id) = (at.id(), at.id(), at.id());
                let (to, from, bytes) = (at.value(), at.value(), at.value());
                heisen_sym_copy(to, from, bytes, to_id, from_id, bytes_id);
            }
            step::FILL => {
                let (to_id, bytes_id, id) = (at.id(), at.id(), at.id());
                let (to, bytes, byte) = (at.value(), at.value(), at.value());
                heisen_sym_fill(to, bytes, to_id, bytes_id, id, byte);
            }
            step::CONCRETISE => {
                let (address, bytes, reason) = (at.value(), at.number(), at.number());
                // SAFETY: the program has just accessed as many bytes there.
                unsafe { concretise(address, bytes.into(), reason) };
            }
            step::BRANCH => {
                let (id, value) = (at.id(), at.value());
                if id != 0 {
                    heisen_sym_branch(id, value as u32);
                }
            }
            step::PIN => {
                let (id, value, reason) = (at.id(), at.value(), at.number());
                pin(id, value, reason);
            }
            step::MOVE => {
                let id = at.id();
                at.set(id);
            }
            step::ENTER => enter(&mut at, frame),
            step::TAKE_STRUCTURE => {
                let (first, own, to, bytes) = (at.number(), at.value(), at.value(), at.number());
                heisen_sym_fill(to, bytes.into(), 0, 0, 0, 0);
                if frame.callee == own {
                    let half =
                        |number: u32| u64::from(frame.arguments.get(number as usize).copied().unwrap_or(0));
                    heisen_sym_copy(to, half(first) | half(first + 1) << 32, bytes.into(), 0, 0, 0);
                }
            }
            step::PASS => {
                frame.callee = at.value();
                for _ in 0..at.number() {
                    let number = at.number();
                    let id = at.id();
                    if let Some(argument) = frame.arguments.get_mut(number as usize) {
                        *argument = id;
                    }
                }
            }
            step::PASS_STRUCTURE => {
                let (first, address) = (at.number() as usize, at.value());
                if let Some([low, high]) = frame.arguments.get_mut(first..first + 2) {
                    (*low, *high) = (address as u32, (address >> 32) as u32);
                }
            }
            step::RESULTS => results(&mut at, frame),
            step::RETURN => {
                frame.returner = at.value();
                let count = at.number() as usize;
                for number in 0..count {
                    let id = at.id();
                    if let Some(result) = frame.results.get_mut(number) {
                        *result = id;
                    }
                }
            }
            step::FORGET => frame.returner = 0,
            step::FOREIGN => {
                let (function, count) = (at.value(), at.number());
                takes_values(&mut at, frame, function, count, false);
            }
            _ => return,
        }
    }
}

/// A function takes the ids of its arguments, if they are for it.
fn enter(at: &mut Run, frame: &mut Frame) {
    let mine = frame.callee == at.value();
    for _ in 0..at.number() {
        let given = frame.arguments.get(at.number() as usize);
        at.set(given.copied().filter(|_| mine).unwrap_or(0));
    }
    if mine {
        frame.callee = 0;
    }
}

/// A caller takes the ids of the results, if they are from the function that it called.
fn results(at: &mut Run, frame: &mut Frame) {
    let function = at.value();
    let same = frame.returner == function;
    frame.returner = 0;
    let (results, foreign) = (at.number(), at.number());
    for _ in 0..results {
        let given = frame.results.get(at.number() as usize);
        at.set(given.copied().filter(|_| same).unwrap_or(0));
    }
    takes_values(at, frame, function, foreign, same);
}

/// The function at this address takes so many arguments as values, unless it has taken their ids.
fn takes_values(at: &mut Run, frame: &mut Frame, function: u64, count: u32, has_taken_ids: bool) {
    let place = core::mem::replace(&mut frame.place, function);
    for _ in 0..count {
        let (id, value) = (at.id(), at.value());
        if !has_taken_ids {
            pin(id, value, FOREIGN);
        }
    }
    frame.place = place;
}

/// Replaces the expressions in memory by their values.
///
/// # Safety
/// There is as much memory.
unsafe fn concretise(address: u64, bytes: u64, reason: u32) {
    let mut at = 0;
    while at < bytes {
        // No more than there are, and no call of a function that copies.
        let size = match bytes - at {
            8.. => 8,
            4.. => 4,
            2.. => 2,
            _ => 1,
        };
        let place = (address + at) as *const u8;
        // SAFETY: as the caller promises.
        let value = unsafe {
            match size {
                8 => place.cast::<u64>().read_unaligned(),
                4 => place.cast::<u32>().read_unaligned().into(),
                2 => place.cast::<u16>().read_unaligned().into(),
                _ => place.read().into(),
            }
        };
        pin(heisen_sym_load(address + at, size as u32, 0, value), value, reason);
        at += size;
    }
}
