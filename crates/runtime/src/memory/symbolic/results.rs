//! What threads learn of each other by calls of the C library: the results of threads, and whether an initialiser of
//! `pthread_once` is done. A thread writes it to an address that no program has, and who wants to know reads it there. So
//! the trace needs no other sort of event.

use super::inputs;
use super::terms::{self, CONCRETE, Operand};
use super::traffic::{self, Access};
use crate::platform::program_memory;
use crate::sched::{me, operation_log, thread};
use heisen_trace::ValueOp;
use heisen_wire::symbolic::kind;

/// No program has memory at addresses with one of these bits.
const RESULTS: u64 = 1 << 62;
const ONCE: u64 = 1 << 61;

/// Where the result of a thread lies in traces: it depends on the place of the thread in the tree of creation, and not on
/// its number, which the schedule decides.
fn of(number: usize, pc: usize) -> Access {
    let address = RESULTS | inputs::key(number) << 3 & (RESULTS - 1);
    Access { address: address as usize, size: 8, pc }
}

/// The running thread ends with this result.
pub fn leaves(id: u32, result: usize) {
    of(me(), thread(me()).start.get()).leaves(id, result as u64);
}

/// The running thread has taken the result of another one into this place.
pub fn takes(number: usize, place: usize, pc: usize) {
    let result = program_memory::load(place, 8);
    let id = of(number, pc).takes(result);
    traffic::wrote(Access { address: place, size: 8, pc }, id, result);
}

/// Where it lies whether an initialiser is done.
fn once(control: usize, pc: usize) -> Access {
    Access { address: control | ONCE as usize, size: 1, pc }
}

/// The running thread finds an initialiser done, or is going to run it.
pub fn finds_once(control: usize, done: bool, pc: usize) {
    goes_on(once(control, pc).takes(done.into()), done, pc);
    if done {
        operation_log::leaves_once(control, pc);
    }
}

/// The running thread runs an initialiser unless a byte, which it has read, says that it is done.
fn goes_on(id: u32, done: bool, pc: usize) {
    let (seen, no) = (Operand::of(id, done.into()), Operand::constant(0));
    let runs = terms::binary(ValueOp::Eq, 8, 1, seen, no);
    terms::asserts(kind::BRANCH, runs, !done, pc);
}

/// Where a guard of a static variable says whether it is initialised.
pub fn guard(guard: usize, pc: usize) -> Access {
    Access { address: guard, size: 1, pc }
}

/// The running thread finds a static variable initialised, or is going to initialise it.
pub fn finds_initialised(address: usize, initialised: bool, pc: usize) {
    goes_on(guard(address, pc).loads_atomically(initialised.into()), initialised, pc);
}

/// The running thread has run an initialiser.
pub fn runs_once(control: usize) {
    let pc = thread(me()).start.get();
    once(control, pc).leaves(CONCRETE, 1);
    operation_log::leaves_once(control, pc);
}
