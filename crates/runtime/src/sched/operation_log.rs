//! The visible operations of threads in a symbolic trace: what each thread did, whose waits it ended, and what it was
//! about to do at the end of the execution.

use super::{NONE, SCHED, handles, me, thread, threads};
use crate::platform::program_memory;
use crate::wire_log::symbolic_log::{self, Logged};
use heisen_trace::Op;
use heisen_wire::symbolic::kind;

/// An execution begins: logs its threads, if it logs a symbolic trace.
pub fn begin() {
    if symbolic_log::is_on() {
        threads().for_each(|(number, _)| created(number));
    }
}

/// A thread was created.
pub fn created(number: usize) {
    let t = thread(number);
    let parent = if t.parent.get() == NONE { heisen_wire::NO_THREAD as u16 } else { t.parent.get() };
    symbolic_log::thread(number, parent, t.child.get());
}

/// Another thread runs, from this step on.
#[inline(always)]
pub fn switched(to: usize) {
    if symbolic_log::is_on() {
        runs(to);
    }
}

#[cold]
fn runs(to: usize) {
    let logged = Logged { kind: kind::RUNS, op: 0, address: 0, value: 0, id: 0, size: 0, pc: 0 };
    symbolic_log::push_event(SCHED.step.get(), to as u16, logged);
}

/// The running thread does an operation. Accesses of memory are logged elsewhere, with their values.
pub fn does(op: Op, object: usize, pc: usize) {
    if symbolic_log::is_on() && !op.is_access() {
        match op {
            // What becomes of it is logged where that is known.
            Op::FutexWait | Op::FutexWake => symbolic_log::no_operation(),
            op => log(me(), kind::SYNC, op, object, 1, pc),
        }
    }
}

/// The running thread does an operation on a futex of a sort that the trace has no events for.
pub fn does_with_futex(op: Op, word: usize, pc: usize) {
    if symbolic_log::is_on() {
        log(me(), kind::SYNC, op, word, 1, pc);
    }
}

/// The running thread has ended the wait of another one.
pub fn wakes(number: usize) {
    if symbolic_log::is_on() {
        log(me(), kind::SYNC, Op::Wake, number, 1, 0);
    }
}

/// The running thread ends.
pub fn ends() {
    if symbolic_log::is_on() {
        log(me(), kind::SYNC, Op::End, 0, 1, 0);
    }
}

/// The running thread is about to lock a read-write lock or to join a thread. `gives_up`: rather than waiting for ever.
/// `polite`: writers that wait go first.
pub fn about_to(op: Op, gives_up: bool, polite: bool) {
    let as_op = match op {
        Op::ReadLock if polite => Op::PolitelyReadLock,
        Op::ReadLock if gives_up => Op::TryReadLock,
        Op::WriteLock if gives_up => Op::TryWriteLock,
        Op::Join if gives_up => Op::TryJoin,
        op => op,
    };
    thread(me()).logged_as.set(as_op as u8);
}

/// The running thread leaves a barrier, at which it was the last to arrive or not. `matters`: what it does next may
/// depend on that.
pub fn leaves_barrier(barrier: usize, last: bool, matters: bool, pc: usize) {
    does(Op::BarrierLeave, barrier, pc);
    if matters {
        does(Op::BarrierLast, barrier, pc);
        if !last {
            symbolic_log::failed();
        }
    }
}

/// The running thread leaves `pthread_once`, or its initialiser has ended.
pub fn leaves_once(control: usize, pc: usize) {
    does(Op::OnceEnd, control, pc);
}

/// The running thread has initialised a semaphore.
pub fn initialises(semaphore: usize, pc: usize) {
    does(Op::SemInit, semaphore, pc);
}

/// The execution ends: logs what all threads were about to do. A thread may still do something, for example in an exit
/// handler; what it was about to do before is then without meaning.
pub fn ending() {
    if !symbolic_log::is_on() || !SCHED.running.get() {
        return;
    }
    for (number, t) in threads().filter(|(_, t)| !t.ended.get()) {
        let runs = number == me() && SCHED.enabled.has(number);
        if let Some(op) = Op::from_code(t.op.get()).filter(|_| !runs) {
            let blocked = !SCHED.enabled.has(number) || SCHED.late.has(number);
            log(number, kind::PENDING, op, t.object.get(), u32::from(blocked), t.pc.get());
        }
    }
}

fn log(number: usize, what: u8, op: Op, object: usize, size: u32, pc: usize) {
    let address = match op {
        Op::Create => SCHED.count.get() as u64,
        Op::Join => handles::find(object).map_or(object as u64, |joined| joined as u64),
        _ => object as u64,
    };
    let value = count_at(op, object);
    let op = match op {
        Op::ReadLock | Op::WriteLock | Op::Join => thread(number).logged_as.get(),
        op => op as u8,
    };
    let logged = Logged { kind: what, op, address, value, id: 0, size, pc };
    symbolic_log::push_operation(SCHED.step.get(), number as u16, logged);
}

/// The count of a semaphore or barrier before the operation; of a semaphore that is initialised, after it.
fn count_at(op: Op, object: usize) -> u64 {
    /// The offset of the count of a barrier.
    const BARRIER: usize = 8;
    match op {
        Op::SemWait | Op::SemTryWait | Op::SemTimedWait | Op::SemPost | Op::SemGetValue | Op::SemInit => {
            program_memory::load(object, 4)
        }
        Op::Barrier => program_memory::load(object + BARRIER, 4),
        _ => 0,
    }
}
