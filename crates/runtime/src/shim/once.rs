//! One-time initialisation. The real function runs the initialiser, since it alone can undo a half-done one when an
//! exception passes through it; here a thread only waits until nobody is in the middle of it. Nobody tells us when
//! that is over (an exception leaves the real function without passing this code), so the scheduler looks again at
//! each step while anyone is about to call it.

use super::detours;
use crate::glibc::Real;
use crate::sched::{self, S};
use heisen_trace::Op;

static REAL: Real = Real::new(c"pthread_once");
static REAL_C11: Real = Real::new(c"call_once");

/// glibc sets this bit of the control word while the initialiser runs.
const IN_PROGRESS: i32 = 1;

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
    }
}

/// Enables the waiters of every `pthread_once` that is no longer in progress, and disables those of one that is.
pub fn recheck() {
    for (number, t) in sched::threads() {
        let control = sched::needs(number);
        if t.op() == Op::Once && control != 0 {
            if in_progress(control) { sched::taken(control) } else { sched::freed(control) }
        }
    }
}
