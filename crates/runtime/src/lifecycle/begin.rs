//! Where executions begin: every room takes over its part of the plan.

use crate::blocking::{descriptors, input_log};
use crate::carrier::kernel_threads;
use crate::memory::{heap, race};
use crate::sched::alarm::set_alarm;
use crate::sched::plan::{self, take_choices};
use crate::sched::{S, threads, watch_steps};
use crate::sched::{clock, debugger, dependence, faults, hooks, scope, symmetry};
use crate::script::unit_mode;
use crate::wire_log::{flags, note, note_begin, set_flags, set_slot, slot, threads_created};
use core::sync::atomic::Ordering::Relaxed;
use heisen_trace::Note;
use heisen_wire::flag;

/// An execution begins: takes over the plan. What was done before `main` does not count.
pub fn begin(number: usize) {
    set_slot(number);
    let plan = &slot().plan;
    let limit = plan.step_limit.load(Relaxed);
    S.step.set(0);
    S.hash.set(heisen_trace::hash::EMPTY);
    S.limit.set(limit);
    S.tail.set(limit / 2);
    // In real time a wait times out when its time is over, and not before.
    S.horizon.set(if clock::is_real() { 0 } else { plan.horizon.load(Relaxed) });
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
    }
    threads_created(S.count.get());
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
    S.running.set(true);
    note_begin();
    if clock::is_real() {
        note(Note::RealTime);
    }
    hooks::execution_begins();
    if flags() & flag::SCRIPT != 0 {
        unit_mode::begin();
    }
}

/// An execution begins at a choice, after what is the same in all of them was done in another one, so many of the plan's overrides
/// among it: takes over from the plan what may differ.
pub fn resume(number: usize, followed: u32) {
    set_slot(number);
    look_at(slot().plan.flags.load(Relaxed));
    take_choices();
    plan::begin_after(followed);
    watch_steps();
    set_alarm();
}

/// States are kept, whether or not the plan asks for them, or only if it does.
pub fn look_at_states(always: bool) {
    look_at(slot().plan.flags.load(Relaxed) | if always { flag::STATES } else { 0 });
}

/// From here on this is kept, as bits of [`flag`].
fn look_at(flags: u32) {
    set_flags(flags);
    dependence::begin(flags);
    watch_steps();
}
