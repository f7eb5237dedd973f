//! Spurious wake-ups and faults: decisions that are not about threads and that the program does not ask for.
//! Each kind has a budget for the execution, so that such decisions do not crowd out those about threads.
//! With an exhausted budget there is no decision.

use super::object_key::{key, space};
use super::{SCHED, decision, dependence, me, script_state, thread};
use crate::platform::allocation::set_may_fail;
use crate::platform::baton::Guarded;
use core::cell::Cell;
use heisen_trace::{DecisionKind, Fault, Op};

struct Budget {
    /// The remaining spurious wake-ups.
    spurious: Cell<u32>,
    /// The remaining faults. `kinds` has the bits of the faults that may happen.
    faults: Cell<u32>,
    /// Whether a budget was above 0 at the beginning. Then threads compete for the rest of it.
    shared: Cell<bool>,
    kinds: Cell<u32>,
}

static BUDGET: Guarded<Budget> = Guarded::new(Budget {
    spurious: Cell::new(0),
    faults: Cell::new(0),
    shared: Cell::new(false),
    kinds: Cell::new(0),
});

/// For dependence, a budget is an object: a decision reads it, and writes it if it uses up one.
fn touch(budget: usize, used: bool) {
    if BUDGET.shared.get() && dependence::wanted() {
        let key = key(space::BUDGET, budget);
        if used { dependence::write(key) } else { dependence::read(key) }
    }
}

const FAULTS: usize = 0;
const SPURIOUS: usize = 1;

/// An execution begins, with these budgets.
pub fn begin(spurious: u32, faults: u32, kinds: u32) {
    BUDGET.spurious.set(spurious);
    BUDGET.faults.set(faults);
    BUDGET.kinds.set(kinds);
    BUDGET.shared.set(spurious + faults > 0);
    arm();
}

/// Tells the allocator whether each allocation has to ask for a fault.
pub fn arm() {
    // If touches are recorded, an allocation also has to report that it found the budget exhausted.
    let may = (BUDGET.faults.get() > 0 || BUDGET.shared.get() && dependence::wanted())
        && BUDGET.kinds.get() & Fault::Malloc.bit() != 0;
    set_may_fail(may || script_state::promises_any(DecisionKind::Fault));
}

/// Whether faults can still happen.
#[inline]
pub fn faults_are_left() -> bool {
    BUDGET.faults.get() > 0 || script_state::promises_any(DecisionKind::Fault)
}

/// Whether the running thread's call fails although it could succeed: a decision while the budget lasts. The
/// report shows the operation that the thread was last [about to do](crate::sched::Thread::about_to). A fault
/// that a script has promised needs no budget.
#[inline]
pub fn fault(which: Fault) -> bool {
    (BUDGET.faults.get() > 0 || BUDGET.shared.get() || script_state::promises_any(DecisionKind::Fault))
        && decide_fault(which)
}

#[cold]
fn decide_fault(which: Fault) -> bool {
    let promised = script_state::promises_any(DecisionKind::Fault);
    if BUDGET.kinds.get() & which.bit() == 0 && !promised || !SCHED.active.get() || !SCHED.running.get() {
        return false;
    }
    if BUDGET.faults.get() == 0 && !promised {
        touch(FAULTS, false);
        return false;
    }
    let code = which as usize;
    let find = |name| (name == code).then_some(1);
    let failed = decision::choose_value(DecisionKind::Fault, 2, find, |_| code) != 0;
    touch(FAULTS, failed);
    if failed {
        BUDGET.faults.set(BUDGET.faults.get().saturating_sub(1));
        arm();
    }
    failed
}

/// Whether the running thread, which begins to wait in the queue of `queue`, may continue without a wake: a
/// decision while the budget lasts.
#[inline]
pub fn spurious(op: Op, queue: usize, pc: usize) -> bool {
    (BUDGET.spurious.get() > 0 || BUDGET.shared.get() || script_state::promises_any(DecisionKind::Spurious))
        && decide_spurious(op, queue, pc)
}

#[cold]
fn decide_spurious(op: Op, queue: usize, pc: usize) -> bool {
    if BUDGET.spurious.get() == 0 && !script_state::promises_any(DecisionKind::Spurious) {
        touch(SPURIOUS, false);
        return false;
    }
    thread(me()).about_to(op, queue, pc);
    let find = |name| (name == 1).then_some(1);
    let wakes = decision::choose_value(DecisionKind::Spurious, 2, find, |_| 1) != 0;
    touch(SPURIOUS, wakes);
    if wakes {
        BUDGET.spurious.set(BUDGET.spurious.get().saturating_sub(1));
    }
    wakes
}
