//! One-time initialisation. The real function runs the initialiser, because only it can undo a half-done
//! initialisation when an exception passes through. The shim makes a thread wait while another thread is inside
//! the initialiser. An exception leaves the real function without passing the shim, so the shim cannot see the
//! end directly. Instead the scheduler checks at each step while a thread is about to call it.
//!
//! For the race check the end of the initialiser counts, not later steps of its thread. The shim therefore
//! passes [`heisen_once_initialiser`] to the real function: it calls the program's initialiser and then
//! releases the control word.

use super::{Arguments, detours};
use crate::memory::race::order;
use crate::memory::symbolic;
use crate::platform::baton::Guarded;
use crate::platform::glibc::Real;
use crate::sched::dependence;
use crate::sched::{self, SCHED};
use core::arch::global_asm;
use core::cell::Cell;
use heisen_trace::Op;

static REAL: Real = Real::new(c"pthread_once");
static REAL_C11: Real = Real::new(c"call_once");

/// glibc sets this bit of the control word while the initialiser runs.
const IN_PROGRESS: i32 = 1;
/// glibc sets this bit when the initialiser is done.
const DONE: i32 = 2;

fn in_progress(control: usize) -> bool {
    // SAFETY: the program passes a `pthread_once_t`.
    unsafe { *(control as *const i32) & IN_PROGRESS != 0 }
}

detours! {
    /// Waits while another thread is inside the initialiser, then runs the initialiser if it is not done. If
    /// that thread ends or an exception leaves the initialiser, the next thread runs it.
    fn pthread_once = before;

    /// The C11 form of `pthread_once`.
    fn call_once = before_c11;
}

/// Waits for its turn and returns the address of the real function.
extern "C" fn before(control: usize, _initialiser: usize, pc: usize, arguments: &mut Arguments) -> usize {
    wait(control, pc, arguments);
    REAL.address()
}

extern "C" fn before_c11(flag: usize, _initialiser: usize, pc: usize, arguments: &mut Arguments) -> usize {
    wait(flag, pc, arguments);
    REAL_C11.address()
}

fn wait(control: usize, pc: usize, arguments: &mut Arguments) {
    if SCHED.active.get() {
        sched::add_errand();
        sched::wait_for(Op::Once, control, pc, || !in_progress(control), u64::MAX);
        sched::remove_errand();
        order::acquire(control);
        // SAFETY: the program passes a `pthread_once_t`.
        let done = unsafe { *(control as *const i32) & DONE != 0 };
        symbolic::finds_once(control, done, pc);
        if !done {
            begins(control);
            let initialiser =
                core::mem::replace(&mut arguments.rsi, heisen_once_initialiser as *const () as usize);
            CALLED.0.set(Called { initialiser, control });
        }
    }
}

/// The initialiser that the real function is about to call, and its control word. One entry is enough: there is
/// no scheduling point before the real function calls it.
#[repr(C)]
#[derive(Clone, Copy)]
struct Called {
    initialiser: usize,
    control: usize,
}

struct Calls(Cell<Called>);

static CALLED: Guarded<Calls> = Guarded::new(Calls(Cell::new(Called { initialiser: 0, control: 0 })));

extern "C" fn called() -> Called {
    CALLED.0.get()
}

/// The initialiser has ended: every thread that finds it done is ordered after it.
extern "C" fn initialised(control: usize) {
    symbolic::runs_once(control);
    order::release(control);
}

unsafe extern "C" {
    fn heisen_once_initialiser();
}

global_asm!(
    // Calls the program's initialiser, then `initialised`. An exception may pass through: there is nothing to
    // clean up.
    ".hidden heisen_once_initialiser",
    ".globl heisen_once_initialiser",
    ".type heisen_once_initialiser, @function",
    "heisen_once_initialiser:",
    ".cfi_startproc",
    "push rbx",
    ".cfi_adjust_cfa_offset 8",
    ".cfi_offset rbx, -16",
    "call {called}",
    "mov rbx, rdx",
    "call rax",
    "mov rdi, rbx",
    "call {initialised}",
    "pop rbx",
    ".cfi_adjust_cfa_offset -8",
    ".cfi_restore rbx",
    "ret",
    ".cfi_endproc",
    ".size heisen_once_initialiser, . - heisen_once_initialiser",
    called = sym called,
    initialised = sym initialised,
);

/// Control words of running initialisers. Where touches are recorded, the runtime must see in which step an
/// initialiser ends.
struct Running([Cell<usize>; 8]);

static RUNNING: Guarded<Running> = Guarded::new(Running([const { Cell::new(0) }; 8]));

fn begins(control: usize) {
    if dependence::wanted()
        && let Some(free) = RUNNING.0.iter().find(|slot| slot.get() == 0)
    {
        free.set(control);
        sched::add_errand();
    }
}

fn see_ends() {
    for slot in RUNNING.0.iter().filter(|slot| slot.get() != 0 && !in_progress(slot.get())) {
        dependence::just_wrote(slot.replace(0));
        sched::remove_errand();
    }
}

/// Enables the threads that wait for a `pthread_once` that is no longer in progress, and disables those of one
/// that is.
pub fn recheck() {
    see_ends();
    for (number, t) in sched::threads() {
        let control = sched::needs(number);
        if t.op() == Op::Once && control != 0 {
            if in_progress(control) { sched::taken(control) } else { sched::freed(control) }
        }
    }
}
