//! Finds accesses to stack memory that is no longer in use. A thread that accesses a variable of another
//! thread's stack does so after the function has returned, or after the thread has ended.
//!
//! Only certain cases are reported. Either the other thread is stopped in a call to the runtime from its own
//! stack, and the memory lies below the calling frame. Or it has ended, and its stack waits for the next
//! thread. Frames that replaced the one that returned hide the error.

use crate::carrier::fibers;
use crate::memory::{ending, symbolic};
use crate::sched::pause;
use crate::sched::{Thread, me, thread};
use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use heisen_trace::Op;
use heisen_wire::{misuse, saved};

/// Where the stack of the main thread ends.
pub static MAIN_END: AtomicUsize = AtomicUsize::new(0);

/// How much of the main thread's stack is checked. The kernel maps nothing else within 128 MiB.
const MAIN_SIZE: usize = 8 << 20;

/// The largest number of runtime frames that is plausible.
const MOST_FRAMES: usize = 64;

/// A word of a stack.
fn read(at: usize) -> usize {
    // SAFETY: callers pass words of the stack of a thread that exists.
    unsafe { *(at as *const usize) }
}

/// The running thread accesses memory that another thread accessed last.
#[inline]
pub fn check(address: usize, other: usize, pc: usize) {
    if !stack_of(other).contains(&address) {
        return;
    }
    if is_dead(address, other) {
        return pause::misused(misuse::DEAD_STACK, address, pc);
    }
    let lowest = &thread(other).shared_from;
    lowest.set(if lowest.get() == 0 { address } else { lowest.get().min(address) });
}

/// The running thread ends, and with it the variables on its stack. Other threads may have accessed some of them.
pub fn ends() {
    let t = thread(me());
    let (from, to) = (t.shared_from.get(), stack_of(me()).end);
    if (1..to).contains(&from) {
        // The return address of a call at the beginning of the thread's function.
        let pc = t.start.get() + 1;
        symbolic::ends(Op::Free, from, to - from, pc);
        ending::conflict(from, to - from, true, pc);
    }
}

/// The stack of a thread; empty if the program provided it, because the program may use it for anything.
fn stack_of(number: usize) -> Range<usize> {
    let t = thread(number);
    match number {
        0 => {
            let end = MAIN_END.load(Relaxed);
            end.saturating_sub(MAIN_SIZE)..end
        }
        _ if t.stack_foreign.get() => 0..0,
        _ => {
            let base = t.stack.get() + t.guard_size.get();
            base..base + t.stack_size.get()
        }
    }
}

#[cold]
fn is_dead(address: usize, other: usize) -> bool {
    let t = thread(other);
    if t.ended.get() {
        return fibers::spare_stacks().any(|(from, to)| (from..to).contains(&address));
    }
    // In the middle of a function there may be variables below its frame.
    t.begun.get()
        && !t.mid_function.get()
        && caller_frame(t, &stack_of(other)).is_some_and(|frame| address < frame)
}

/// The stack pointer of the function that called the runtime, in a thread that is switched out.
fn caller_frame(t: &Thread, stack: &Range<usize>) -> Option<usize> {
    if !stack.contains(&t.sp.get()) {
        return None;
    }
    let mut frame = read(t.sp.get() + 8 * saved::RBP);
    for _ in 0..MOST_FRAMES {
        if !frame.is_multiple_of(8) || !(t.sp.get()..stack.end - 16).contains(&frame) {
            return None;
        }
        if read(frame + 8) == t.pc.get() {
            return Some(frame + 16);
        }
        let next = read(frame);
        if next <= frame {
            return None;
        }
        frame = next;
    }
    None
}
