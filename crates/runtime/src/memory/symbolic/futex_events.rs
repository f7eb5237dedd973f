//! What threads do with futexes, as events of the trace.
//!
//! A wait compares the word with a value in the same step in which it begins. Both may be expressions: the comparison is a
//! read and a branch. How many threads a wake has woken is an unknown.

use super::callbacks::FRAME;
use super::terms::{self, CONCRETE, Operand};
use super::traffic::Access;
use super::{is_on, log, log_unknown};
use crate::wire_log::symbolic_log::Logged;
use core::ffi::CStr;
use heisen_trace::{Op, ValueOp};
use heisen_wire::symbolic::futex::{COUNT_BITS, MOST_SHIFT, TIMED_OUT, WAITS, WAITS_TIMED, WAKES, WOKEN};
use heisen_wire::symbolic::{kind, reason};

/// The name of the function, for calls that are not for a futex.
const NAME: &CStr = c"syscall";

/// The number of arguments of `syscall` for a futex, and which of them is the value that a wait expects.
const ARGUMENTS: usize = 7;
const EXPECTED: usize = 3;

/// Takes the expressions of the arguments of `syscall`, which is at this address. If it is called for a futex, returns the
/// expression of the value that a wait expects; each value of the others is a way of its own.
pub fn take_arguments(function: usize, arguments: [usize; ARGUMENTS], is_futex: bool, pc: usize) -> u32 {
    if !is_on() {
        return CONCRETE;
    }
    let ids: [u32; ARGUMENTS] = FRAME.take_arguments(function);
    FRAME.returns(function, CONCRETE);
    if !is_futex {
        super::calls(NAME.as_ptr() as u64);
    }
    let why = if is_futex { reason::ADDRESS } else { reason::FOREIGN };
    for (number, (id, value)) in ids.into_iter().zip(arguments).enumerate() {
        if number != EXPECTED || !is_futex {
            terms::pin(id, value as u64, why, pc);
        }
    }
    if is_futex { ids[EXPECTED] } else { CONCRETE }
}

/// Goes on with the value of an argument of `syscall`.
pub fn pin(id: u32, value: u32, pc: usize) {
    if is_on() {
        terms::pin(id, value.into(), reason::ADDRESS, pc);
    }
}

/// The running thread compares the word of a futex, which has this value, with another one.
pub fn compares(word: usize, value: u32, expected: u32, expected_id: u32, pc: usize) {
    if !is_on() {
        return;
    }
    let access = Access { address: word, size: size_of::<u32>(), pc };
    let id = access.loads_atomically(value.into());
    let expected = Operand::of(access.fit(expected_id), expected.into());
    let condition = terms::binary(ValueOp::Eq, u32::BITS, 1, Operand::of(id, value.into()), expected);
    terms::asserts(kind::BRANCH, condition, u64::from(value) == expected.value, pc);
}

/// The running thread begins to wait.
pub fn waits(word: usize, timed: bool, pc: usize) {
    acts(word, if timed { WAITS_TIMED } else { WAITS }, pc);
}

/// The running thread was woken.
pub fn woken(word: usize, pc: usize) {
    acts(word, WOKEN, pc);
}

/// The wait of the running thread has timed out.
pub fn timed_out(word: usize, pc: usize) {
    acts(word, TIMED_OUT, pc);
}

fn acts(word: usize, act: u32, pc: usize) {
    if is_on() {
        log(Logged {
            kind: kind::FUTEX,
            op: Op::FutexWait as u8,
            address: word as u64,
            value: 0,
            id: CONCRETE,
            size: act,
            pc,
        });
    }
}

/// The running thread wakes so many threads, of at most `most`. Their number is the result of the function at this address.
pub fn wakes(function: usize, word: usize, most: usize, woken: usize, pc: usize) {
    if !is_on() {
        return;
    }
    let most = (most as u32).min(u32::MAX >> MOST_SHIFT);
    let logged = Logged {
        kind: kind::FUTEX,
        op: Op::FutexWake as u8,
        address: word as u64,
        value: woken as u64,
        id: CONCRETE,
        size: WAKES | most << MOST_SHIFT,
        pc,
    };
    let id = terms::added(log_unknown(COUNT_BITS, logged), COUNT_BITS);
    let result =
        if id == CONCRETE { CONCRETE } else { terms::unary(ValueOp::ZExt, COUNT_BITS, u64::BITS, id) };
    FRAME.returns(function, result);
}
