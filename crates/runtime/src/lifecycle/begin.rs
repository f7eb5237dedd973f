//! The start of an execution: every room takes over its part of the plan.

use crate::blocking::{descriptors, input_log};
use crate::carrier::kernel_threads;
use crate::memory::{heap, race, symbolic};
use crate::sched::alarm::set_alarm;
use crate::sched::plan::{self, take_choices};
use crate::sched::{SCHED, threads, watch_steps};
use crate::sched::{clock, debugger, dependence, faults, hooks, operation_log, scope, symmetry};
use crate::script::unit_mode;
use crate::wire_log::{flags, note, note_begin, set_flags, set_slot, slot, threads_created};
use core::sync::atomic::Ordering::Relaxed;
use heisen_trace::Note;
use heisen_wire::flag;

/// Begins an execution and takes over its plan. Steps and hashes from before `main` do not count.
pub fn begin(number: usize) {
    set_slot(number);
    let plan = &slot().plan;
    let limit = plan.step_limit.load(Relaxed);
    SCHED.step.set(0);
    SCHED.hash.set(heisen_trace::hash::EMPTY);
    SCHED.limit.set(limit);
    SCHED.tail.set(limit / 2);
    // In real time a wait times out when its time is over, not earlier.
    SCHED.horizon.set(if clock::is_real() { 0 } else { plan.horizon.load(Relaxed) });
    SCHED.patience.set(plan.spin_patience.load(Relaxed));
    scope::begin();
    set_flags(plan.flags.load(Relaxed));
    dependence::begin(flags());
    symmetry::begin(flags());
    heap::begin();
    faults::begin(plan.spurious.load(Relaxed), plan.faults.load(Relaxed), plan.fault_kinds.load(Relaxed));
    for (_, t) in threads() {
        for stamp in [&t.enabled_since, &t.scheduled_at, &t.yielded_at, &t.disabled_at, &t.gave_way_at] {
            stamp.set(0);
        }
        t.yields.set(0);
    }
    threads_created(SCHED.count.get());
    take_choices();
    watch_steps();
    if flags() & flag::KERNEL != 0 {
        kernel_threads::begin();
    }
    if flags() & flag::DEBUGGER != 0 {
        debugger::begin();
    }
    set_alarm();
    input_log::begin(flags());
    descriptors::begin(u64::from(plan.patience.load(Relaxed)));
    race::begin();
    symbolic::begin();
    operation_log::begin();
    SCHED.running.set(true);
    note_begin();
    if clock::is_real() {
        note(Note::RealTime);
    }
    hooks::execution_begins();
    if flags() & flag::SCRIPT != 0 {
        unit_mode::begin();
    }
}

/// Begins an execution at a decision: a later snapshot holds everything before it. `followed` is how many
/// overrides of the plan lie before the decision. Takes over the parts of the plan that may differ between
/// executions.
pub fn resume(number: usize, followed: u32) {
    set_slot(number);
    look_at(slot().plan.flags.load(Relaxed));
    take_choices();
    plan::begin_after(followed);
    watch_steps();
    set_alarm();
}

/// Logs states from here on: in any case if `always`, else only if the plan asks for them.
pub fn look_at_states(always: bool) {
    look_at(slot().plan.flags.load(Relaxed) | if always { flag::STATES } else { 0 });
}

/// Logs from here on what `flags` selects, as bits of [`flag`].
fn look_at(flags: u32) {
    set_flags(flags);
    dependence::begin(flags);
    watch_steps();
}
