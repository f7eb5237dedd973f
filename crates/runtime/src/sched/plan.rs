//! The plan of the execution that runs: its overrides, in order, and how the runtime notices that the execution does not
//! follow them.

use super::alarm::set_alarm;
use super::pause::put;
use super::{S, me, policy, sleep_sets, thread};
use crate::platform::baton::Guarded;
use crate::wire_log;
use crate::wire_log::{lists, slot, wire};
use core::cell::Cell;
use core::sync::atomic::Ordering::Relaxed;
use heisen_trace::decision::DecisionKind;
use heisen_wire::{MAX_COUNTED, MAX_HOLDS, NO_THREAD, diverged, flag, named};

struct Position {
    /// The next override of the plan, and the end of them.
    next: Cell<u32>,
    overrides: Cell<u32>,
}

static AT: Guarded<Position> = Guarded::new(Position { next: Cell::new(0), overrides: Cell::new(0) });

/// How many overrides of the plan were followed so far, or given up.
pub fn followed() -> u32 {
    AT.next.get() - slot().plan.first_override.load(Relaxed)
}

/// So many overrides were followed before the execution begins: another one has done that part.
pub fn begin_after(followed: u32) {
    AT.next.set(AT.next.get() + followed);
    slot().report.followed.store(followed, Relaxed);
}

/// Whether decisions are logged, the one that was just looked up in the plan and those after it.
#[inline]
pub fn logs_decisions() -> bool {
    let flags = wire_log::flags();
    flags & (flag::DECISIONS | flag::STOPS) != 0
        && (flags & flag::LATE == 0 || AT.next.get() == AT.overrides.get())
}

/// Takes over what the plan says of choices.
pub fn take_choices() {
    let plan = &slot().plan;
    AT.next.set(plan.first_override.load(Relaxed));
    AT.overrides.set(AT.next.get() + plan.overrides.load(Relaxed));
    sleep_sets::begin(&wire().overrides[AT.overrides.get() as usize..], plan);
    let expected = (plan.expected.load(Relaxed) as usize).min(MAX_COUNTED);
    let holds = (plan.holds.load(Relaxed) as usize).min(MAX_HOLDS);
    policy::begin(plan, &lists().expected[..expected], &lists().holds[..holds]);
}

/// The step of the next override that must be followed. At a step, wishes are given up that another override takes over from.
pub(super) fn due(step: Option<u32>) -> Option<u32> {
    let overrides = &wire().overrides[AT.next.get() as usize..AT.overrides.get() as usize];
    let is_wish = |o: &heisen_wire::Override| o.by_name.load(Relaxed) == named::WISH;
    if let Some(step) = step {
        let over = |pair: &&[heisen_wire::Override]| is_wish(&pair[0]) && pair[1].step.load(Relaxed) < step;
        follow(overrides.windows(2).take_while(over).count());
    }
    overrides.iter().find(|o| !is_wish(o)).map(|o| o.step.load(Relaxed))
}

/// So many overrides more have been followed, or given up.
fn follow(count: usize) {
    if count > 0 {
        AT.next.set(AT.next.get() + count as u32);
        let report = &slot().report;
        report.followed.store(report.followed.load(Relaxed) + count as u32, Relaxed);
    }
}

/// The wish of the plan for the thread decision of this step, as an index, if it can be granted; none if there is no wish.
fn wished(step: u32, kind: DecisionKind, find: impl Fn(usize) -> Option<usize>) -> Option<Option<usize>> {
    let overrides = &wire().overrides[AT.next.get() as usize..AT.overrides.get() as usize];
    let at = |o: &heisen_wire::Override| o.step.load(Relaxed);
    let is_wish = |o: &heisen_wire::Override| o.by_name.load(Relaxed) == named::WISH;
    // The last one that is due; all that come before it are over.
    let over = overrides.windows(2).take_while(|pair| is_wish(&pair[0]) && at(&pair[1]) <= step).count();
    follow(over);
    let wish = overrides.get(over).filter(|o| is_wish(o) && at(o) <= step && kind == DecisionKind::Thread)?;
    let index = find(wish.choice.load(Relaxed) as usize);
    follow(1);
    set_alarm();
    Some(index)
}

/// What the plan wants at the decision of this step, if anything. `find` gives the index of a choice by its name.
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
    if let Some(index) = wished(step, kind, &find) {
        return Some(index.unwrap_or(0));
    }
    // Before the last override, what is not fixed is the default, whatever the policy.
    Some(planned_override(step, kind, options, find).unwrap_or(0))
}

fn planned_override(
    step: u32,
    kind: DecisionKind,
    options: usize,
    find: impl Fn(usize) -> Option<usize>,
) -> Option<usize> {
    let planned = &wire().overrides[AT.next.get() as usize];
    if planned.step.load(Relaxed) != step || planned.by_name.load(Relaxed) == named::WISH {
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
    } else if last && expect_hash != 0 && expect_hash != S.hash.get() {
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

/// Gives up on the plan's overrides; the execution goes on by the policy, as CHESS (OSDI'08) section 4.2 does.
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
