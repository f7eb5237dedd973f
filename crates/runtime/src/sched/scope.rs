//! Scope: the code in which threads may be preempted, so that the search spends its preemptions there (CHESS,
//! OSDI'08, section 4.4.1).
//!
//! Outside the scope a thread that can continue is not preempted. The program excludes regions between
//! `heisen_no_preempt_begin` and `heisen_no_preempt_end`. The user gives patterns, from which the engine
//! computes ranges of code addresses. A scheduling point out of scope is not a decision: the thread
//! continues, which is the default choice anyway. Steps and hashes are the same with and without ranges, so a
//! schedule found with ranges can be followed without them. A thread that blocks or yields is switched away
//! from as usual, and the fair tail ignores the scope.

use super::{SCHED, Thread, thread, threads};
use crate::platform::baton::Guarded;
use crate::wire_log;
use core::arch::asm;
use core::cell::Cell;
use core::sync::atomic::Ordering::Relaxed;
use heisen_trace::Note;
use heisen_wire::{MAX_SCOPE, ScopeRange, scope};

/// The largest number of frames that are searched for the caller of a library's wrapper.
const FRAMES: usize = 64;
/// How far below the first frame of `main` a frame of the main thread may lie: the usual limit of its stack.
const MAIN_STACK: usize = 8 << 20;

struct Scope {
    /// The frame of the function that calls `main`.
    main_frame: Cell<usize>,
}

static SCOPE: Guarded<Scope> = Guarded::new(Scope { main_frame: Cell::new(0) });

/// `main` is about to be called.
#[inline(always)]
pub fn main_begins() {
    SCOPE.main_frame.set(frame_pointer());
}

/// An execution begins.
pub fn begin() {
    let scoped = ranges().0 != scope::NONE || threads().any(|(_, t)| t.no_preempt.get() > 0);
    SCHED.plain_until.set(if scoped { 0 } else { SCHED.tail.get() });
}

/// The running thread enters a region without preemption.
pub fn enter(t: &Thread) {
    t.no_preempt.set(t.no_preempt.get().saturating_add(1));
    SCHED.plain_until.set(0);
    SCHED.known.forget();
}

/// The running thread leaves a region. False if it is not in one.
pub fn leave(t: &Thread) -> bool {
    let depth = t.no_preempt.get();
    t.no_preempt.set(depth.saturating_sub(1));
    depth > 0
}

/// Whether a thread is in a region without preemption.
pub fn in_region(number: usize) -> bool {
    thread(number).no_preempt.get() > 0
}

/// Whether the running thread, which could continue, must not be preempted before its operation.
pub fn holds(number: usize) -> bool {
    if in_region(number) {
        return true;
    }
    let (default, ranges) = ranges();
    let held = default != scope::NONE && kind_of(thread(number), default, ranges) == scope::HELD;
    wire_log::note(if held { Note::OutOfScope } else { Note::InScope });
    held
}

/// The kind of code outside all ranges, and the ranges.
fn ranges() -> (u32, &'static [ScopeRange]) {
    let wire = wire_log::wire();
    let count = (wire.scope_ranges.load(Relaxed) as usize).min(MAX_SCOPE);
    (wire.scope_default.load(Relaxed), &wire.scope[..count])
}

/// The kind of the code before a return address.
fn kind_at(pc: usize, default: u32, ranges: &[ScopeRange]) -> u32 {
    let call = pc.wrapping_sub(1) as u64;
    let end = ranges.partition_point(|range| range.start.load(Relaxed) <= call);
    match ranges[..end].last().filter(|range| call < range.end.load(Relaxed)) {
        Some(range) => range.kind.load(Relaxed) as u32,
        None => default,
    }
}

/// The kind of the code from which the thread called its operation. For a wrapper in a library of the
/// language, the caller of the wrapper counts. Such wrappers are compiled with the program or, in Rust's
/// standard library, with frame pointers. So the chain of frames leads through them.
fn kind_of(t: &Thread, default: u32, ranges: &[ScopeRange]) -> u32 {
    let mut kind = kind_at(t.pc.get(), default, ranges);
    if kind != scope::GLUE {
        return kind;
    }
    let (bottom, top) = match t.stack_bounds() {
        Some((base, size, _)) => (base, base + size),
        None => (SCOPE.main_frame.get().saturating_sub(MAIN_STACK), SCOPE.main_frame.get() + 16),
    };
    let mut frame = frame_pointer();
    let mut outside = false;
    for _ in 0..FRAMES {
        if frame < bottom || frame + 16 > top || !frame.is_multiple_of(8) {
            break;
        }
        // SAFETY: the frame lies on the running thread's stack, above the stack pointer.
        let [next, pc] = unsafe { *(frame as *const [usize; 2]) };
        if outside {
            kind = kind_at(pc, default, ranges);
            if kind != scope::GLUE {
                return kind;
            }
        }
        outside |= pc == t.pc.get();
        if next <= frame {
            break;
        }
        frame = next;
    }
    default
}

#[inline(always)]
fn frame_pointer() -> usize {
    let frame;
    // SAFETY: reads a register.
    unsafe { asm!("mov {}, rbp", out(reg) frame, options(nomem, nostack, preserves_flags)) };
    frame
}
