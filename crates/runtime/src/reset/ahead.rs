//! The snapshot is moved ahead, to the first choice of an execution.
//!
//! Until then all executions are the same, whatever their plans: what a program does before it has a second thread is done
//! once, and executions begin where they part. For a program whose start takes long that is most of its time, and for the
//! smallest it is a part that counts.
//!
//! What is told of an execution must be what it would be if it had been run from its beginning. So what was told so far
//! is kept and told again, and the plan is taken over as at the beginning. Where that does not give the same, the runner
//! ends, and the zygote forks another one, which begins at `main`: a plan that asks for something else to be told, or that has
//! another budget; a policy that has to see every step; an override before the first choice.

use super::{Control, calls, control};
use crate::sched::{S, me, thread};
use crate::{fibers, report, sleep, touch};
use core::cell::Cell;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;
use heisen_wire::{Plan, Report, Wire, flag, policy};

/// So many executions are run from `main` first: saving the program again must be worth while.
const AFTER: u32 = 64;
/// Most of the log that is told again.
const MAX_LOG: usize = 1024;
/// So often a runner may end because of a plan that does not fit, until none is moved ahead any more.
const MOST_MISFITS: u32 = 8;

/// Whether the execution that runs may still be moved ahead of. Lies in the program's memory, so it is put back.
static MAY: AtomicBool = AtomicBool::new(false);

/// What was told and asked for until the first choice.
pub struct Ahead {
    /// Whether executions begin there.
    there: Cell<bool>,
    began: Cell<bool>,
    asked: Cell<Asked>,
    /// The step of the choice, and how many there were.
    choice: Cell<u32>,
    steps: Cell<u32>,
    threads: Cell<u32>,
    notes: Cell<u64>,
    graph: Cell<u64>,
    log: [Cell<[u64; 2]>; MAX_LOG],
    logged: Cell<usize>,
    /// How many stacks the last execution mapped and this one has mapped so far, their size and that of their guard.
    stacks: [Cell<usize>; 2],
    stack_size: Cell<(usize, usize)>,
}

/// What plans must have in common.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Asked {
    flags: u32,
    horizon: u64,
    step_limit: u32,
    patience: u32,
    budget: [u32; 3],
}

impl Asked {
    fn by(plan: &Plan) -> Asked {
        Asked {
            // States are known until the first choice, whoever asks.
            flags: plan.flags.load(Relaxed) | flag::STATES,
            horizon: plan.horizon.load(Relaxed),
            step_limit: plan.step_limit.load(Relaxed),
            patience: plan.patience.load(Relaxed),
            budget: [&plan.spurious, &plan.faults, &plan.fault_kinds].map(|field| field.load(Relaxed)),
        }
    }
}

/// An execution begins at `main`: it may be the one that is moved ahead of. Not if it began in memory that is not verified.
pub fn begin(c: &Control, wire: &Wire) {
    let good = wire.unverified.load(Relaxed) == 0
        && wire.misfits.load(Relaxed) < MOST_MISFITS
        && sees_no_step(&wire.slots[c.slot.get()].plan);
    MAY.store(good && c.resets.get() >= AFTER, Relaxed);
    if MAY.load(Relaxed) {
        // Others may ask for states, if this one does not.
        report::look_at_states(true);
    }
    c.ahead.stacks[0].set(c.ahead.stacks[1].replace(0));
}

/// At this step there is a choice, which nothing has been asked about yet.
#[inline(always)]
pub fn at_choice(step: u32) {
    if MAY.load(Relaxed) {
        reach(step);
    }
}

/// The first choice of an execution. Returns again in each that begins here.
#[cold]
fn reach(step: u32) {
    MAY.store(false, Relaxed);
    let (c, wire) = (control(), report::wire());
    let told = report::so_far();
    if !super::sees() || !c.calls.can_stay() || !is_little(told) {
        report::look_at_states(false);
        return;
    }
    let plan = &wire.slots[c.slot.get()].plan;
    c.selector.store(calls::UNSEEN, Relaxed);
    // Stacks that each execution would map, and unmap again.
    let [before, now] = c.ahead.stacks.each_ref().map(Cell::get);
    let (size, guard) = c.ahead.stack_size.get();
    fibers::add_to_pool(before.saturating_sub(now), size, guard);
    c.ahead.keep(wire, told, plan, step);
    c.calls.stay();
    c.fs.set(thread(me()).fs.get());
    c.snapshot.forget();
    // Who sleeps is known by the plan, which is another one by the time it is asked for.
    sleep::wake_all();
    // SAFETY: as in `super::begin`.
    if unsafe { super::save_context(&raw const c.context) } != 0 {
        super::begins(c, wire);
        return;
    }
    match c.snapshot.take() {
        Ok(()) => c.selector.store(calls::SEEN, Relaxed),
        Err(why) => {
            wire.misfits.store(wire.misfits.load(Relaxed) + 1, Relaxed);
            super::leave(c, why);
        }
    }
    report::resume(c.slot.get());
}

/// Whether a policy need not know what was done before the first choice.
fn sees_no_step(plan: &Plan) -> bool {
    !matches!(plan.policy.load(Relaxed), policy::SURW | policy::DIRECTED)
}

/// Whether nothing was told that is not kept.
fn is_little(told: &Report) -> bool {
    let others = [&told.events, &told.end, &told.misuse, &told.panic_thread, &told.diverged, &told.text];
    let more = [&told.followed, &told.conflicts, &told.counted];
    others.iter().chain(&more).all(|field| field.load(Relaxed) == 0)
        && told.decisions.load(Relaxed) as usize <= MAX_LOG
}

impl Ahead {
    fn keep(&self, wire: &Wire, told: &Report, plan: &Plan, step: u32) {
        self.there.set(true);
        self.asked.set(Asked::by(plan));
        self.choice.set(step);
        self.steps.set(S.step.get());
        self.threads.set(told.threads.load(Relaxed));
        self.notes.set(told.notes.load(Relaxed));
        self.graph.set(told.graph.load(Relaxed));
        let first = told.first_decision.load(Relaxed) as usize;
        let logged = told.decisions.load(Relaxed) as usize;
        for (entry, kept) in wire.decisions[first..].iter().zip(&self.log[..logged]) {
            kept.set(entry.each_ref().map(|word| word.load(Relaxed)));
        }
        self.logged.set(logged);
    }

    /// An execution maps a stack.
    pub fn mapped_stack(&self, size: usize, guard: usize) {
        self.stacks[1].set(self.stacks[1].get() + 1);
        self.stack_size.set((size, guard));
    }

    /// Whether executions begin at their first choice.
    pub fn is_there(&self) -> bool {
        self.there.get()
    }

    /// Whether the execution that ends began there.
    pub fn began(&self) -> bool {
        self.began.get()
    }

    /// Whether the execution in this slot can begin there.
    pub fn suits(&self, wire: &Wire, number: usize) -> bool {
        let plan = &wire.slots[number].plan;
        let (first, count) = (plan.first_override.load(Relaxed), plan.overrides.load(Relaxed));
        let overrides = &wire.overrides[first as usize..][..count as usize];
        Asked::by(plan) == self.asked.get()
            && sees_no_step(plan)
            && overrides.iter().all(|planned| planned.step.load(Relaxed) >= self.choice.get())
    }

    /// An execution begins there: tells again what was told.
    pub fn tell(&self, told: &Report) {
        self.began.set(true);
        told.steps.store(self.steps.get(), Relaxed);
        told.threads.store(self.threads.get(), Relaxed);
        told.notes.store(self.notes.get(), Relaxed);
        if touch::wanted() {
            told.graph.store(self.graph.get(), Relaxed);
        }
        self.log[..self.logged.get()].iter().for_each(|kept| report::log(kept.get()));
    }
}
