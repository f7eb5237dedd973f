//! The plan of the running execution: its overrides in order, and how the runtime notices a divergence.

use super::alarm::set_alarm;
use super::pause::put;
use super::{SCHED, me, policy, sleep_sets, thread};
use crate::platform::baton::Guarded;
use crate::wire_log;
use crate::wire_log::{lists, slot, wire};
use core::cell::Cell;
use core::sync::atomic::Ordering::Relaxed;
use heisen_trace::decision::DecisionKind;
use heisen_wire::{MAX_COUNTED, MAX_HOLDS, NO_THREAD, diverged, flag, named};

struct Position {
    /// The index of the next override of the plan, and the end of the overrides.
    next: Cell<u32>,
    overrides: Cell<u32>,
}

static AT: Guarded<Position> = Guarded::new(Position { next: Cell::new(0), overrides: Cell::new(0) });

/// The number of overrides that the execution has followed or given up so far.
pub fn followed() -> u32 {
    AT.next.get() - slot().plan.first_override.load(Relaxed)
}

/// The execution begins at a snapshot behind this many overrides: an earlier execution has followed them.
pub fn begin_after(followed: u32) {
    AT.next.set(AT.next.get() + followed);
    slot().report.followed.store(followed, Relaxed);
}

/// Whether the runtime logs the decision that was just looked up in the plan, and all later ones. With
/// `flag::LATE`, logging starts at the last override.
#[inline]
pub fn logs_decisions() -> bool {
    let flags = wire_log::flags();
    flags & (flag::DECISIONS | flag::STOPS) != 0
        && (flags & flag::LATE == 0 || AT.next.get() == AT.overrides.get())
}

/// Takes over the overrides, the sleep set and the policy of the plan.
pub fn take_choices() {
    let plan = &slot().plan;
    AT.next.set(plan.first_override.load(Relaxed));
    AT.overrides.set(AT.next.get() + plan.overrides.load(Relaxed));
    sleep_sets::begin(&wire().overrides[AT.overrides.get() as usize..], plan);
    let expected = (plan.expected.load(Relaxed) as usize).min(MAX_COUNTED);
    let holds = (plan.holds.load(Relaxed) as usize).min(MAX_HOLDS);
    policy::begin(plan, &lists().expected[..expected], &lists().holds[..holds]);
}

/// The step of the next override that must be followed. A preference (`named::PREFERENCE`) need not be followed; at
/// a given step, preferences that a later override has replaced are given up first.
pub(super) fn due(step: Option<u32>) -> Option<u32> {
    let overrides = &wire().overrides[AT.next.get() as usize..AT.overrides.get() as usize];
    let is_preference = |o: &heisen_wire::Override| o.by_name.load(Relaxed) == named::PREFERENCE;
    if let Some(step) = step {
        let over =
            |pair: &&[heisen_wire::Override]| is_preference(&pair[0]) && pair[1].step.load(Relaxed) < step;
        follow(overrides.windows(2).take_while(over).count());
    }
    overrides.iter().find(|o| !is_preference(o)).map(|o| o.step.load(Relaxed))
}

/// Counts overrides that have been followed or given up.
fn follow(count: usize) {
    if count > 0 {
        AT.next.set(AT.next.get() + count as u32);
        let report = &slot().report;
        report.followed.store(report.followed.load(Relaxed) + count as u32, Relaxed);
    }
}

/// The choice that the plan prefers at the thread decision of this step. `None` if the plan has no preference
/// here, `Some(None)` if the preferred thread is not among the choices.
fn preferred(step: u32, kind: DecisionKind, find: impl Fn(usize) -> Option<usize>) -> Option<Option<usize>> {
    let overrides = &wire().overrides[AT.next.get() as usize..AT.overrides.get() as usize];
    let at = |o: &heisen_wire::Override| o.step.load(Relaxed);
    let is_preference = |o: &heisen_wire::Override| o.by_name.load(Relaxed) == named::PREFERENCE;
    // Of the preferences that are due, only the last one counts.
    let over =
        overrides.windows(2).take_while(|pair| is_preference(&pair[0]) && at(&pair[1]) <= step).count();
    follow(over);
    let wish =
        overrides.get(over).filter(|o| is_preference(o) && at(o) <= step && kind == DecisionKind::Thread)?;
    let index = find(wish.choice.load(Relaxed) as usize);
    follow(1);
    set_alarm();
    Some(index)
}

/// The choice that the plan fixes at the decision of this step, if any. `find` returns the index of a choice
/// by its name.
#[inline]
pub fn planned(
    step: u32,
    kind: DecisionKind,
    options: usize,
    find: impl Fn(usize) -> Option<usize>,
) -> Option<usize> {
    if AT.next.get() == AT.overrides.get() {
        return None;
    }
    if let Some(index) = preferred(step, kind, &find) {
        return Some(index.unwrap_or(0));
    }
    // Before the last override, the plan means the default at every decision that it does not name, whatever
    // the policy.
    Some(planned_override(step, kind, options, find).unwrap_or(0))
}

fn planned_override(
    step: u32,
    kind: DecisionKind,
    options: usize,
    find: impl Fn(usize) -> Option<usize>,
) -> Option<usize> {
    let planned = &wire().overrides[AT.next.get() as usize];
    if planned.step.load(Relaxed) != step || planned.by_name.load(Relaxed) == named::PREFERENCE {
        return None;
    }
    let t = thread(me());
    let expect = planned.expect.load(Relaxed);
    let (expect_options, expect_from) = (expect & 0xffff, expect >> 16);
    let expect_op = planned.op.load(Relaxed);
    let choice = planned.choice.load(Relaxed) as usize;
    let last = AT.next.get() + 1 == AT.overrides.get();
    let expect_hash = slot().plan.expect.load(Relaxed);
    let index = if planned.by_name.load(Relaxed) == named::NAME { find(choice) } else { Some(choice) };
    let why = if planned.kind.load(Relaxed) != kind as u8 {
        diverged::NO_DECISION
    } else if expect_from != NO_THREAD && expect_from as usize != me()
        || expect_op != 0 && expect_op != t.op() as u8
    {
        diverged::OTHER_OP
    } else if expect_options != 0 && expect_options as usize != options {
        diverged::OPTIONS
    } else if last && expect_hash != 0 && expect_hash != SCHED.hash.get() {
        diverged::HASH
    } else if index.is_none_or(|index| index >= options) {
        diverged::NOT_ENABLED
    } else {
        follow(1);
        set_alarm();
        return index;
    };
    diverge(why, step, options);
    None
}

/// Gives up the plan's overrides. The execution continues by its policy, as in CHESS (OSDI'08), section 4.2.
pub(super) fn diverge(why: u32, step: u32, options: usize) {
    let report = &slot().report;
    report.diverged.store(why, Relaxed);
    report.diverged_step.store(step, Relaxed);
    report.diverged_thread.store(me() as u32, Relaxed);
    report.diverged_op.store(thread(me()).op() as u32, Relaxed);
    report.diverged_options.store(options as u32, Relaxed);
    put(&report.diverged_object, thread(me()).object.get());
    put(&report.diverged_pc, thread(me()).pc.get());
    AT.next.set(AT.overrides.get());
    set_alarm();
}
