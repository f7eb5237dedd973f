//! Moves the snapshot forward, from `main` to a decision of an execution.
//!
//! Up to their first decision all executions are the same, whatever their plans. So the part of the program
//! before its second thread runs once, and executions begin where they differ. That saves most of the time of
//! a program with a long start, and a noticeable part for the smallest programs.
//!
//! A search that tries the choices of a long execution one after the other would repeat the steps before them
//! again and again. So the engine runs plans with a long common prefix together and names the step at which
//! they begin to differ. The first of these executions moves the snapshot there. A snapshot can be moved
//! forward, but not back: that needs another runner.
//!
//! The report of an execution must be the same as if it had run from its beginning. So the report up to the
//! snapshot is stored and written again. The plan is taken over as at the beginning, without the overrides
//! that were followed already. If a plan would give another result, the runner ends, and the zygote forks
//! another one, which begins at `main`. That is so if the plan asks for another log, has another budget, or
//! has other overrides before the decision. Policies that see every step also get the steps before the
//! decision, which are stored for that (`policy::follow`).

use super::{Control, calls, control};
use crate::carrier::fibers;
use crate::lifecycle::begin as execution;
use crate::sched::decision::await_choice;
use crate::sched::plan;
use crate::sched::{SCHED, me, thread};
use crate::sched::{dependence, policy, sleep_sets};
use crate::wire_log;
use core::cell::Cell;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;
use heisen_trace::hash;
use heisen_wire::{Override, Plan, Report, WORTH, Wire, flag};

/// The number of executions that run from `main` before the snapshot is moved, so that moving it is
/// worthwhile. The number is smaller if another runner has moved its snapshot before.
const AFTER: u32 = 64;
const AFTER_OTHERS: u32 = 8;
/// The longest log that is written again, and the memory for it.
const MAX_LOG: usize = 1 << 16;
pub const LOG_SIZE: usize = MAX_LOG * size_of::<[u64; 2]>();
/// How many runners may end because a plan does not fit, in addition to one in `OF_EACH` executions. Beyond
/// that the snapshot is moved only where the engine asks for it.
const MOST_MISFITS: u32 = 8;
const OF_EACH: u32 = 200;

/// The step of the decision to which the snapshot is moved; 0 for the first decision.
static TO: AtomicU32 = AtomicU32::new(0);

/// The part of the report and of the plan that lies before the later snapshot.
pub struct LaterSnapshot {
    /// Whether executions begin at the later snapshot. `began`: whether the present one did.
    there: Cell<bool>,
    began: Cell<bool>,
    /// Whether the engine has named the decision.
    requested: Cell<bool>,
    asked: Cell<Asked>,
    /// The step of the decision, and the number of steps before it.
    choice: Cell<u32>,
    steps: Cell<u32>,
    /// The overrides that were followed up to there: their number and a hash of them.
    followed: Cell<(u32, u64)>,
    threads: Cell<u32>,
    notes: Cell<u64>,
    graph: Cell<u64>,
    logged: Cell<usize>,
    /// The number of stacks that the last execution has mapped, and that of the present one so far. Then the
    /// size of a stack and of its guard.
    stacks: [Cell<usize>; 2],
    stack_size: Cell<(usize, usize)>,
}

/// What plans must have in common to begin at the same snapshot.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Asked {
    flags: u32,
    horizon: u64,
    spin_patience: u32,
    step_limit: u32,
    patience: u32,
    budget: [u32; 3],
}

impl Asked {
    fn by(plan: &Plan) -> Asked {
        Asked {
            // The states before the decision are recorded for every plan.
            flags: plan.flags.load(Relaxed) | flag::STATES,
            horizon: plan.horizon.load(Relaxed),
            spin_patience: plan.spin_patience.load(Relaxed),
            step_limit: plan.step_limit.load(Relaxed),
            patience: plan.patience.load(Relaxed),
            budget: [&plan.spurious, &plan.faults, &plan.fault_kinds].map(|field| field.load(Relaxed)),
        }
    }
}

/// The stored log.
fn log() -> &'static [Cell<[u64; 2]>; MAX_LOG] {
    // SAFETY: as for `super::control`.
    unsafe { &*(super::LOG as *const [Cell<[u64; 2]>; MAX_LOG]) }
}

fn overrides<'a>(wire: &'a Wire, plan: &Plan) -> &'a [Override] {
    let (first, count) = (plan.first_override.load(Relaxed), plan.overrides.load(Relaxed));
    &wire.overrides[first as usize..][..count as usize]
}

/// The number of overrides before a step, and a hash of them.
fn before(overrides: &[Override], step: u32) -> (u32, u64) {
    let before = overrides.iter().take_while(|planned| planned.step.load(Relaxed) < step);
    before.fold((0, hash::EMPTY), |(count, hash), o| {
        let what = u64::from(o.step.load(Relaxed)) << 32 | u64::from(o.choice.load(Relaxed));
        let how = u64::from(o.kind.load(Relaxed)) << 8 | u64::from(o.by_name.load(Relaxed));
        (count + 1, hash::mix(hash::mix(hash, what), how << 32 | u64::from(o.expect.load(Relaxed))))
    })
}

/// Called when an execution begins at `main`. Decides whether this execution moves the snapshot.
pub fn begin(c: &Control, wire: &Wire) {
    let shared_until = wire.shared_until.load(Relaxed);
    let requested = shared_until != 0 && c.resets.get() == 0;
    let misfits = wire.misfits.load(Relaxed);
    // A symbolic trace begins at `main`.
    let whole = wire_log::flags() & flag::SYMBOLIC != 0;
    let few = misfits < MOST_MISFITS + wire.resets.load(Relaxed) / OF_EACH;
    let by_itself = few && c.resets.get() >= if misfits == 0 { AFTER } else { AFTER_OTHERS };
    may_move(wire, if requested { shared_until } else { 0 }, !whole && (requested || by_itself));
    c.later.stacks[0].set(c.later.stacks[1].replace(0));
}

/// Sets whether the execution that begins moves the snapshot to step `to`. It does not if it began in
/// unverified memory.
fn may_move(wire: &Wire, to: u32, may: bool) {
    let may = may && wire.unverified.load(Relaxed) == 0;
    await_choice(may);
    TO.store(to, Relaxed);
    if may {
        policy::follow(true);
        // Later plans may ask for states although this one does not.
        execution::look_at_states(true);
    }
}

/// Called at a decision of an execution. If the snapshot is taken here, this returns again in each execution
/// that begins here.
#[cold]
pub fn reach(step: u32) {
    let to = TO.load(Relaxed);
    if step < to {
        return;
    }
    await_choice(false);
    policy::follow(false);
    let (c, wire) = (control(), wire_log::wire());
    let plan = &wire.slots[c.slot.get()].plan;
    let report = wire_log::so_far();
    let before = before(overrides(wire, plan), step);
    let good = (to == 0 || step == to) && before.0 == plan::followed() && can_be_rewritten(report);
    if !good || !super::sees() || !c.calls.can_stay() {
        execution::look_at_states(false);
        return;
    }
    c.selector.store(calls::UNSEEN, Relaxed);
    // Maps in advance the stacks that each execution would map and unmap again.
    let [last, now] = c.later.stacks.each_ref().map(Cell::get);
    let (size, guard) = c.later.stack_size.get();
    fibers::add_to_pool(last.saturating_sub(now), size, guard);
    c.later.keep(wire, report, plan, step, before);
    c.later.requested.set(to != 0);
    c.calls.stay();
    c.fs.set(thread(me()).fs.get());
    c.snapshot.forget();
    // Sleeping threads belong to the plan, and later executions have other plans.
    sleep_sets::wake_all();
    // SAFETY: as in `super::begin`.
    if unsafe { super::save_context(&raw const c.context) } != 0 {
        super::begins(c, wire);
        return;
    }
    match c.snapshot.take(c.context.rsp.get()) {
        Ok(()) => c.selector.store(calls::SEEN, Relaxed),
        Err(why) => {
            wire.misfits.store(wire.misfits.load(Relaxed) + 1, Relaxed);
            super::leave(c, why);
        }
    }
    execution::resume(c.slot.get(), before.0);
}

/// Whether the report holds only data that is stored and written again.
fn can_be_rewritten(report: &Report) -> bool {
    let others =
        [&report.events, &report.end, &report.misuse, &report.panic_thread, &report.diverged, &report.text];
    others.iter().all(|field| field.load(Relaxed) == 0)
        && report.conflicts.load(Relaxed) == 0
        && report.decisions.load(Relaxed) as usize <= MAX_LOG
}

impl LaterSnapshot {
    fn keep(&self, wire: &Wire, report: &Report, plan: &Plan, step: u32, followed: (u32, u64)) {
        self.there.set(true);
        self.asked.set(Asked::by(plan));
        self.choice.set(step);
        self.steps.set(SCHED.step.get());
        self.followed.set(followed);
        self.threads.set(report.threads.load(Relaxed));
        self.notes.set(report.notes.load(Relaxed));
        self.graph.set(report.graph.load(Relaxed));
        let first = report.first_decision.load(Relaxed) as usize;
        let logged = report.decisions.load(Relaxed) as usize;
        for (entry, kept) in wire.decisions[first..].iter().zip(&log()[..logged]) {
            kept.set(entry.each_ref().map(|word| word.load(Relaxed)));
        }
        self.logged.set(logged);
    }

    /// Called when an execution maps a stack.
    pub fn mapped_stack(&self, size: usize, guard: usize) {
        self.stacks[1].set(self.stacks[1].get() + 1);
        self.stack_size.set((size, guard));
    }

    /// Whether executions begin at the later snapshot.
    pub fn is_there(&self) -> bool {
        self.there.get()
    }

    /// Whether the engine has named the decision of the snapshot.
    pub fn was_requested(&self) -> bool {
        self.requested.get()
    }

    /// Whether the execution that ends began at the later snapshot.
    pub fn began(&self) -> bool {
        self.began.get()
    }

    /// How many steps the execution that ends has skipped because they lie before the snapshot.
    pub fn skipped(&self) -> u32 {
        if self.began.get() { self.steps.get() } else { 0 }
    }

    /// Whether the execution in this slot can begin at the later snapshot.
    pub fn suits(&self, wire: &Wire, number: usize) -> bool {
        let plan = &wire.slots[number].plan;
        let (overrides, choice) = (overrides(wire, plan), self.choice.get());
        // Choices before the snapshot, if there were any, came from overrides and from the default.
        let last = overrides.last().map_or(0, |planned| planned.step.load(Relaxed));
        let sleeps = plan.sleepers.load(Relaxed) != 0;
        let by_default = plan.policy.load(Relaxed) == heisen_wire::policy::DEFAULT && !sleeps;
        let fixed = !self.was_requested() || by_default || last >= choice;
        let wakes = !sleeps || !self.was_requested() || plan.sleep_from.load(Relaxed) >= choice;
        Asked::by(plan) == self.asked.get()
            && policy::has_followed(plan)
            && fixed
            && wakes
            && before(overrides, choice) == self.followed.get()
    }

    /// Begins the execution in this slot at the later snapshot: takes over its plan and writes the stored
    /// report again. The first execution of a turn may move the snapshot further, for the others of the turn.
    pub fn resume(&self, wire: &Wire, number: usize) {
        self.began.set(true);
        execution::resume(number, self.followed.get().0);
        let report = &wire.slots[number].report;
        report.steps.store(self.steps.get(), Relaxed);
        report.threads.store(self.threads.get(), Relaxed);
        report.notes.store(self.notes.get(), Relaxed);
        if dependence::wanted() {
            report.graph.store(self.graph.get(), Relaxed);
        }
        log()[..self.logged.get()].iter().for_each(|kept| wire_log::log(kept.get()));
        let shared_until = wire.shared_until.load(Relaxed);
        let more = u64::from(shared_until.saturating_sub(self.choice.get()));
        let worth = more * u64::from(wire.slots_wanted.load(Relaxed)) >= WORTH;
        may_move(wire, shared_until, number == 0 && worth);
    }
}
