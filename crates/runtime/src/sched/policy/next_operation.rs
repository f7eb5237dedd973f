//! The pending operations of threads: the object of each, and whether two of them race.
//!
//! `dependence` knows everything that a step has touched, but only after the step. What a step is going to
//! touch has to be derived from the operation alone.

use crate::sched::Thread;
use heisen_trace::Op;

/// Objects of operations that depend on each other but share no address.
const POINTS: usize = 1;
const DESCRIPTORS: usize = 2;
const SIGNALS: usize = 3;

/// The object that a thread is about to touch; 0 if that matters to no other thread.
pub fn object(t: &Thread) -> usize {
    match t.op() {
        // It is unknown what the code after a control point of the program touches.
        Op::Point => POINTS,
        op if op.is_on_descriptor() => DESCRIPTORS,
        Op::Kill | Op::SigWait | Op::SigMask | Op::Handler => SIGNALS,
        Op::Start | Op::Create | Op::Yield | Op::Sleep | Op::Alloc => 0,
        _ => t.object.get(),
    }
}

/// Whether the pending operations of two threads race; `touched` is the object of the first.
pub fn race(event: &Thread, touched: usize, other: &Thread) -> bool {
    touched == object(other) && !(event.op().only_reads() && other.op().only_reads())
}
