//! Choices that are known before they come up: nothing is asked at such a step, and so it costs a fraction of others.
//!
//! By priorities (PCT) a thread goes on until its priority falls or one with a higher priority can run, whatever happens
//! besides. So a policy may say that a thread goes on up to some step, as long as nobody can run but those it was compared
//! with. What else could have a say in a choice is looked at when that is said, and whoever changes it later takes it back:
//! the calls of [`KnownChoice::forget`].

use super::{S, candidates, decision, dependence, fair, plan};
use crate::wire_log;
use core::cell::Cell;
use heisen_trace::hash;

/// Who goes on.
#[derive(Debug)]
#[repr(C)]
pub struct KnownChoice {
    /// Before this step; 0 if no choice is known.
    until: Cell<u32>,
    thread: Cell<u16>,
    /// Whoever else can run of these, as bits. All threads that can run when it is said are among them.
    over: Cell<u64>,
}

impl KnownChoice {
    pub(super) const fn new() -> KnownChoice {
        KnownChoice { until: Cell::new(0), thread: Cell::new(0), over: Cell::new(0) }
    }

    /// No choice is known any more.
    pub fn forget(&self) {
        self.until.set(0);
        self.over.set(0);
    }

    /// The thread, and those that it goes on over as far as its policy is concerned; nobody if that was forgotten.
    #[inline]
    pub fn known(&self) -> (usize, u64) {
        (self.thread.get().into(), self.over.get())
    }

    /// A thread goes on before that step over these, as far as its policy is concerned. To be said at a decision, about which
    /// the plan had nothing to say.
    #[inline]
    pub fn say(&self, thread: usize, over: u64, until: u32) {
        let alone = S.look_again.get() == 0
            && !(dependence::wanted()
                || fair::any_lowered()
                || plan::logs_decisions()
                || decision::awaits_choice());
        self.until.set(if alone { until.min(S.plain_until.get()) } else { 0 });
        self.thread.set(thread as u16);
        self.over.set(over);
    }

    /// Whether the running thread, which could go on, does so without a question; then its step is taken.
    #[inline(always)]
    pub(super) fn goes_on(&self, number: usize, op: u8) -> bool {
        let (step, set) = (S.step.get() + 1, candidates(0));
        let known =
            step < self.until.get() && set & !self.over.get() == 0 && self.thread.get() as usize == number;
        if !known || step >= S.alarm.get() {
            return false;
        }
        S.step.set(step);
        wire_log::steps(step);
        S.hash.set(hash::fold(S.hash.get(), number as u16, op, set.count_ones() as u16));
        true
    }
}
