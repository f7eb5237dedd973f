//! Choices that a policy announces in advance: such a step skips the decision and costs a fraction of other
//! steps.
//!
//! Under priorities (PCT), a thread continues until its priority falls or a thread with a higher priority can
//! run. So a policy may announce that a thread continues up to some step. The announcement holds as long as
//! all candidates are among the threads that it was compared with. [`KnownChoice::say`] checks everything
//! else that could influence a choice. Code that changes such a condition later withdraws the announcement
//! with [`KnownChoice::forget`].

use super::{SCHED, candidates, decision, dependence, fair, plan};
use crate::wire_log;
use core::cell::Cell;
use heisen_trace::hash;

/// The thread that continues.
#[derive(Debug)]
#[repr(C)]
pub struct KnownChoice {
    /// The announcement holds before this step; 0 if no choice is known.
    until: Cell<u32>,
    thread: Cell<u16>,
    /// The threads that it was compared with, as bits. They include all candidates at the time of the
    /// announcement.
    over: Cell<u64>,
}

impl KnownChoice {
    pub(super) const fn new() -> KnownChoice {
        KnownChoice { until: Cell::new(0), thread: Cell::new(0), over: Cell::new(0) }
    }

    /// Withdraws the announcement.
    pub fn forget(&self) {
        self.until.set(0);
        self.over.set(0);
    }

    /// The announced thread and the threads that it was compared with, which are none after
    /// [`KnownChoice::forget`].
    #[inline]
    pub fn known(&self) -> (usize, u64) {
        (self.thread.get().into(), self.over.get())
    }

    /// Announces, for a policy, that `thread` continues before step `until`, as long as only the threads in
    /// `over` can run. The policy calls this at a decision that the plan does not fix.
    #[inline]
    pub fn say(&self, thread: usize, over: u64, until: u32) {
        let alone = SCHED.step_work.get() == 0
            && !(dependence::wanted()
                || fair::any_lowered()
                || plan::logs_decisions()
                || decision::awaits_choice());
        self.until.set(if alone { until.min(SCHED.plain_until.get()) } else { 0 });
        self.thread.set(thread as u16);
        self.over.set(over);
    }

    /// Whether the running thread, which is enabled, continues without a decision. If so, this counts its
    /// step.
    #[inline(always)]
    pub(super) fn goes_on(&self, number: usize, op: u8) -> bool {
        let (step, set) = (SCHED.step.get() + 1, candidates(0));
        let known =
            step < self.until.get() && set & !self.over.get() == 0 && self.thread.get() as usize == number;
        if !known || step >= SCHED.alarm.get() {
            return false;
        }
        SCHED.step.set(step);
        wire_log::steps(step);
        SCHED.hash.set(hash::fold(SCHED.hash.get(), number as u16, op, set.count_ones() as u16));
        true
    }
}
