//! The alarm: the first step at which the scheduler has to check more than the threads.
//!
//! It can be the next override of the plan, the fair tail, the step limit, a signal from outside, a debugger,
//! a script or an atomic section. One comparison at each step covers all of them.

use super::plan::{diverge, due};
use super::{SCHED, arrived_signals, clock, debugger, fair, pause, recurrence, script_state, time_passed};
use crate::wire_log;
use core::sync::atomic::{Ordering::SeqCst, compiler_fence};
use heisen_trace::Note;
use heisen_wire::{diverged, end, want};

/// Sets the step of the next alarm. It is due at once if signals from outside have to be handed to threads.
pub fn set_alarm() {
    let mut at = SCHED.tail.get().min(SCHED.limit.get()).min(debugger::until());
    if let Some(planned) = due(None) {
        at = at.min(planned.saturating_add(1));
    }
    if SCHED.step.get() >= SCHED.tail.get() {
        at = SCHED.limit.get();
    }
    let seeks_cycle = SCHED.step.get() >= SCHED.tail.get() && recurrence::wanted();
    if script_state::is_on() || SCHED.in_section.get() || seeks_cycle {
        at = 0;
    }
    SCHED.alarm.set(at);
    // From here on, an arriving signal sets the alarm itself, and so does a debugger.
    compiler_fence(SeqCst);
    if arrived_signals::arrived() || debugger::until() < at {
        SCHED.alarm.set(0);
    }
}

/// Handles everything that is due at this step.
#[cold]
pub fn alarm(step: u32) {
    if let Some(planned) = due(Some(step))
        && step > planned
    {
        diverge(diverged::NO_DECISION, planned, 0);
    }
    if step >= debugger::until() {
        debugger::reached(want::STEP);
        set_alarm();
    }
    if step >= SCHED.limit.get() {
        let bad = fair::bad_samaritan(SCHED.tail.get());
        pause::finish(end::STEP_LIMIT, bad.map_or(0, |number| number as i32 + 1), 0);
    }
    if step >= SCHED.tail.get() {
        wire_log::note(Note::FairTail);
        fair::watch();
        if !clock::is_real() {
            SCHED.horizon.set(u64::MAX);
        }
        time_passed();
    }
    set_alarm();
}
