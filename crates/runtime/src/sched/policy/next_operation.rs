//! What threads are about to do: which object, and whether that races with what another thread is about to do.
//!
//! `dependence` knows all that a step has touched, but only after the step. What a step is going to touch has to be read off
//! the operation alone.

use crate::sched::Thread;
use heisen_trace::Op;

/// Stand for all objects whose operations are known to matter to each other and by no address.
const POINTS: usize = 1;
const DESCRIPTORS: usize = 2;
const SIGNALS: usize = 3;

/// What a thread is about to touch; 0 if that matters to nobody else.
pub fn object(t: &Thread) -> usize {
    match t.op() {
        // What follows a point of the program's own is not known.
        Op::Point => POINTS,
        op if op.is_on_descriptor() => DESCRIPTORS,
        Op::Kill | Op::SigWait | Op::SigMask | Op::Handler => SIGNALS,
        Op::Start | Op::Create | Op::Yield | Op::Sleep | Op::Alloc => 0,
        _ => t.object.get(),
    }
}

/// Whether what two threads are about to do races; `touched` is the object of the first.
pub fn race(event: &Thread, touched: usize, other: &Thread) -> bool {
    touched == object(other) && !(event.op().only_reads() && other.op().only_reads())
}
