//! Symmetry (`--symmetry`): of interchangeable threads only the first may continue. Threads are
//! interchangeable if one thread creates them one after the other, with the same function and argument. Until
//! they act, no thread can distinguish them: another order leads to the same executions with other names of
//! threads.
//!
//! The idea is that of symmetric processes: Ip, Dill: Better Verification Through Symmetry, 1996; Emerson,
//! Sistla: Symmetry and Model Checking, 1996. Here it is a rule about enabledness, which holds for every
//! strategy: a thread is *held* until the thread before it has done its first operation. The part of a thread
//! before its first operation touches nothing.
//!
//! This is opt-in, because code that holds thread handles can tell the threads apart. For example, it joins
//! one of them and does something else before it joins the others: it has chosen between them. The runtime
//! notes this, and other uses of their handles and numbers, where it sees them. It does not see
//! `pthread_self`, nor uses of the address of a variable on a thread's stack.

use crate::platform::baton::Guarded;
use crate::sched;
use crate::sched::{SCHED, me, thread, threads};
use crate::sched::{dependence, handles};
use crate::wire_log;
use core::cell::Cell;
use heisen_trace::{Note, Op};
use heisen_wire::{MAX_THREADS, flag};

/// The record of a thread. All fields are zero at first, so it takes no space in the library. Thread 0 is
/// never interchangeable with another.
struct About {
    /// The thread that it has created last, if it has done nothing since; else 0.
    made: Cell<u16>,
    /// The thread that is held until this one has acted; 0 if none.
    next: Cell<u16>,
    /// How many steps it has taken, counted up to [`ENOUGH`].
    steps: Cell<u8>,
    /// The first thread of its group of interchangeable threads; 0 if it has no group.
    kind: Cell<u16>,
    /// The group of the thread that it has just joined; 0 if none.
    joins: Cell<u16>,
}

struct Symmetry {
    wanted: Cell<bool>,
    /// The number of threads that are held.
    held: Cell<usize>,
    threads: [About; MAX_THREADS],
}

static SYMMETRY: Guarded<Symmetry> = Guarded::new(Symmetry {
    wanted: Cell::new(false),
    held: Cell::new(0),
    threads: [const {
        About {
            made: Cell::new(0),
            next: Cell::new(0),
            steps: Cell::new(0),
            kind: Cell::new(0),
            joins: Cell::new(0),
        }
    }; MAX_THREADS],
});

/// The steps after which a thread has acted: its start and its first operation.
const ENOUGH: u8 = 2;

/// An execution begins.
pub fn begin(flags: u32) {
    SYMMETRY.wanted.set(flags & flag::SYMMETRY != 0);
}

/// Whether the plan asks for symmetry.
#[inline]
pub fn wanted() -> bool {
    SYMMETRY.wanted.get()
}

/// The running thread has created another one, which is not held yet. `usual` says whether it has the default
/// attributes.
pub fn created(number: usize, usual: bool) {
    if !wanted() || !SCHED.running.get() {
        return;
    }
    let by = &SYMMETRY.threads[me()];
    let last = usize::from(by.made.get());
    by.made.set(if usual { number as u16 } else { 0 });
    let (t, before) = (thread(number), thread(last));
    let same = t.start.get() == before.start.get() && t.arg.get() == before.arg.get();
    if last != 0 && usual && same && SYMMETRY.threads[last].steps.get() < ENOUGH {
        let kind = &SYMMETRY.threads[last].kind;
        if kind.get() == 0 {
            kind.set(last as u16);
        }
        SYMMETRY.threads[number].kind.set(kind.get());
        SYMMETRY.threads[last].next.set(number as u16);
        SYMMETRY.held.set(SYMMETRY.held.get() + 1);
        sched::hold(number);
    }
}

/// The running thread has come to the end of its step.
pub fn stepped() {
    let (number, about) = (me(), &SYMMETRY.threads[me()]);
    let t = thread(number);
    if t.op() != Op::Create {
        about.made.set(0);
    }
    let kind = about.joins.get();
    if kind != 0 && !(t.op() == Op::Join && kind_of(t.object.get()) == kind) {
        about.joins.set(0);
        let left = |(other, t): (usize, &sched::Thread)| {
            SYMMETRY.threads[other].kind.get() == kind && !t.joined.get()
        };
        if threads().any(left) {
            wire_log::note(Note::ThreadsDistinguished);
        }
    }
    about.steps.set(ENOUGH.min(about.steps.get() + 1));
    if about.next.get() != 0 && (about.steps.get() == ENOUGH || t.ended.get()) {
        release(number);
    }
}

/// The group of the thread with this handle; 0 if it has none.
fn kind_of(handle: usize) -> u16 {
    handles::find(handle).map_or(0, |number| SYMMETRY.threads[number].kind.get())
}

/// Releases the thread that is held because of this one.
fn release(number: usize) {
    let next = usize::from(SYMMETRY.threads[number].next.take());
    SYMMETRY.held.set(SYMMETRY.held.get() - 1);
    dependence::just_enabled(next);
    sched::enable(next);
}

/// No thread can run: releases all held threads. Returns whether there were any.
pub fn release_all() -> bool {
    if SYMMETRY.held.get() == 0 {
        return false;
    }
    dependence::idles();
    for number in 0..SCHED.count.get() {
        if SYMMETRY.threads[number].next.get() != 0 {
            release(number);
        }
    }
    true
}

/// The running thread joins another one.
pub fn joins(number: usize) {
    if wanted() {
        SYMMETRY.threads[me()].joins.set(SYMMETRY.threads[number].kind.get());
    }
}

/// The program asks which thread this is, or refers to this particular thread.
pub fn named(number: usize) {
    if wanted() && SYMMETRY.threads[number].kind.get() != 0 {
        wire_log::note(Note::ThreadsDistinguished);
    }
}
