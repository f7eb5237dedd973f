//! One-time initialisation. The real function runs the initialiser, since it alone can undo a half-done one when an
//! exception passes through it; here a thread only waits until nobody is in the middle of it. Nobody tells us when
//! that is over (an exception leaves the real function without passing this code), so the scheduler looks again at
//! each step while anyone is about to call it.

use super::detours;
use crate::glibc::Real;
use crate::race::order;
use crate::sched::{self, S};
use crate::touch;
use core::cell::Cell;
use heisen_trace::Op;

static REAL: Real = Real::new(c"pthread_once");
static REAL_C11: Real = Real::new(c"call_once");

/// glibc sets this bit of the control word while the initialiser runs.
const IN_PROGRESS: i32 = 1;
/// And this one when it is done.
const DONE: i32 = 2;

fn in_progress(control: usize) -> bool {
    // SAFETY: the program passes a `pthread_once_t`.
    unsafe { *(control as *const i32) & IN_PROGRESS != 0 }
}

detours! {
    /// Waits while another thread is inside the initialiser, then runs the initialiser or returns. After an
    /// exception or the end of that thread the next one runs it.
    fn pthread_once = before;

    /// The C11 form of `pthread_once`.
    fn call_once = before_c11;

    /// A static variable of C++ is initialised; to the race check, whoever sees that knows what was done before. No
    /// scheduling point: threads that wait for it do so by a futex.
    fn __cxa_guard_release = before_guard_release;
}

static REAL_GUARD: Real = Real::new(c"__cxa_guard_release");

extern "C" fn before_guard_release(guard: usize) -> usize {
    order::release(guard);
    REAL_GUARD.address()
}

/// Waits for its turn; the address of the real function.
extern "C" fn before(control: usize, _initialiser: usize, pc: usize) -> usize {
    wait(control, pc);
    REAL.address()
}

extern "C" fn before_c11(flag: usize, _initialiser: usize, pc: usize) -> usize {
    wait(flag, pc);
    REAL_C11.address()
}

fn wait(control: usize, pc: usize) {
    if S.active.get() {
        sched::add_errand();
        sched::wait_for(Op::Once, control, pc, || !in_progress(control), u64::MAX);
        sched::remove_errand();
        // Its end is not seen, so those that come later are taken to know all that the thread has done which ran it.
        // SAFETY: the program passes a `pthread_once_t`.
        if unsafe { *(control as *const i32) & DONE != 0 } {
            order::learn_from_last(control);
        } else {
            order::release(control);
            begins(control);
        }
    }
}

/// Initialisers that run, by their control words: where every touch counts, it must be seen in which step they end.
struct Running([Cell<usize>; 8]);

// SAFETY: as for `sched::S`.
unsafe impl Sync for Running {}

static RUNNING: Running = Running([const { Cell::new(0) }; 8]);

fn begins(control: usize) {
    if touch::wanted()
        && let Some(free) = RUNNING.0.iter().find(|slot| slot.get() == 0)
    {
        free.set(control);
        sched::add_errand();
    }
}

fn see_ends() {
    for slot in RUNNING.0.iter().filter(|slot| slot.get() != 0 && !in_progress(slot.get())) {
        touch::just_wrote(slot.replace(0));
        sched::remove_errand();
    }
}

/// Enables the waiters of every `pthread_once` that is no longer in progress, and disables those of one that is.
pub fn recheck() {
    see_ends();
    for (number, t) in sched::threads() {
        let control = sched::needs(number);
        if t.op() == Op::Once && control != 0 {
            if in_progress(control) { sched::taken(control) } else { sched::freed(control) }
        }
    }
}
