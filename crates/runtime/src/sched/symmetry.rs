//! Threads that are alike (`--symmetry`): one after the other made by the same thread, of the same function with the same
//! argument. Until they have done something, nobody can tell which is which, so of those only the first may go on: with every
//! execution that another order leads to, it is the same but for the names of threads.
//!
//! The idea is that of symmetric processes: Ip, Dill: Better Verification Through Symmetry, 1996; Emerson, Sistla: Symmetry and
//! Model Checking, 1996. Here it is a rule about who can go on, which holds for every strategy: a thread is *held* until the
//! one before it has done its first operation. What comes before that, from the start of a thread, touches nothing.
//!
//! It is not for every program. Who has their handles can tell them apart: what joins one of them, and does something else
//! before it joins the others, has chosen between them. That, and other uses of their handles and numbers, is noted where the
//! runtime sees it. It does not see `pthread_self`, nor what is made of the address of a variable on a thread's stack.

use crate::platform::baton::Guarded;
use crate::sched;
use crate::sched::{S, me, thread, threads};
use crate::sched::{dependence, handles};
use crate::wire_log;
use core::cell::Cell;
use heisen_trace::{Note, Op};
use heisen_wire::{MAX_THREADS, flag};

/// What is known of a thread. All zeros, so that it takes no space in the library; thread 0 is never alike to another.
struct About {
    /// The thread that it made, if it has done nothing since.
    made: Cell<u16>,
    /// The thread that is held until this one has done something.
    next: Cell<u16>,
    /// How many steps it has done, as far as that matters.
    steps: Cell<u8>,
    /// The first of those that are alike to it.
    kind: Cell<u16>,
    /// The first of those of which it has just joined one.
    joins: Cell<u16>,
}

struct Symmetry {
    wanted: Cell<bool>,
    /// How many threads are held.
    held: Cell<usize>,
    threads: [About; MAX_THREADS],
}

static A: Guarded<Symmetry> = Guarded::new(Symmetry {
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

/// The start of a thread and its first operation.
const ENOUGH: u8 = 2;

/// An execution begins.
pub fn begin(flags: u32) {
    A.wanted.set(flags & flag::SYMMETRY != 0);
}

/// Whether it matters.
#[inline]
pub fn wanted() -> bool {
    A.wanted.get()
}

/// The running thread has made another one, which is not held yet; `usual` says whether it has the usual attributes.
pub fn created(number: usize, usual: bool) {
    if !wanted() || !S.running.get() {
        return;
    }
    let by = &A.threads[me()];
    let last = usize::from(by.made.get());
    by.made.set(if usual { number as u16 } else { 0 });
    let (t, before) = (thread(number), thread(last));
    let same = t.start.get() == before.start.get() && t.arg.get() == before.arg.get();
    if last != 0 && usual && same && A.threads[last].steps.get() < ENOUGH {
        let kind = &A.threads[last].kind;
        if kind.get() == 0 {
            kind.set(last as u16);
        }
        A.threads[number].kind.set(kind.get());
        A.threads[last].next.set(number as u16);
        A.held.set(A.held.get() + 1);
        sched::hold(number);
    }
}

/// The running thread has come to the end of its step.
pub fn stepped() {
    let (number, about) = (me(), &A.threads[me()]);
    let t = thread(number);
    if t.op() != Op::Create {
        about.made.set(0);
    }
    let kind = about.joins.get();
    if kind != 0 && !(t.op() == Op::Join && kind_of(t.object.get()) == kind) {
        about.joins.set(0);
        let left =
            |(other, t): (usize, &sched::Thread)| A.threads[other].kind.get() == kind && !t.joined.get();
        if threads().any(left) {
            wire_log::note(Note::ThreadsDistinguished);
        }
    }
    about.steps.set(ENOUGH.min(about.steps.get() + 1));
    if about.next.get() != 0 && (about.steps.get() == ENOUGH || t.ended.get()) {
        release(number);
    }
}

/// The first of the threads that are alike to the one with this handle; 0 if there are none.
fn kind_of(handle: usize) -> u16 {
    handles::find(handle).map_or(0, |number| A.threads[number].kind.get())
}

/// Lets the thread go on that is held because of this one.
fn release(number: usize) {
    let next = usize::from(A.threads[number].next.take());
    A.held.set(A.held.get() - 1);
    dependence::just_enabled(next);
    sched::enable(next);
}

/// Nobody can go on: lets all that are held do so. Tells whether there were any.
pub fn release_all() -> bool {
    if A.held.get() == 0 {
        return false;
    }
    dependence::idles();
    for number in 0..S.count.get() {
        if A.threads[number].next.get() != 0 {
            release(number);
        }
    }
    true
}

/// The running thread joins another one.
pub fn joins(number: usize) {
    if wanted() {
        A.threads[me()].joins.set(A.threads[number].kind.get());
    }
}

/// Somebody asks which thread this is, or means this one and no other.
pub fn named(number: usize) {
    if wanted() && A.threads[number].kind.get() != 0 {
        wire_log::note(Note::ThreadsDistinguished);
    }
}
