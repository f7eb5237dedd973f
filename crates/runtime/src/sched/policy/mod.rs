//! Policies: the choice where the plan fixes none. It is the default, or that of a sampler; each sampler has
//! a file.
//!
//! A policy is asked at decisions only. A policy that also has to know of every step says so when the
//! execution begins ([`watches`]); the others pay nothing for that.

mod burst;
mod delay;
mod directed;
mod next_operation;
mod pct;
mod pos;
mod random;
mod surw;

use crate::platform::baton::Guarded;
use crate::sched::decision::Choices;
use crate::sched::{Thread, me, thread as get, threads};
use crate::sched::{script_state, sleep_sets};
use core::cell::Cell;
use core::sync::atomic::Ordering::Relaxed;
use heisen_trace::DecisionKind;
use heisen_trace::hash::PARTS;
use heisen_wire::{Expected, Hold, policy};
use random::below;

struct Policy {
    kind: Cell<u32>,
    /// The parameter of the policy: the depth of PCT, the mean burst (also of `directed`), the number of
    /// delays, or the part of SURW.
    parameter: Cell<u32>,
    /// A spurious wake-up or fault happens once in this many times in this execution; 0 if that is not drawn
    /// yet.
    rarity: Cell<u64>,
    /// Whether steps and touches are recorded for executions that begin later than this one; see [`follow`].
    follows: Cell<bool>,
}

static POLICY: Guarded<Policy> = Guarded::new(Policy {
    kind: Cell::new(policy::DEFAULT),
    parameter: Cell::new(0),
    rarity: Cell::new(0),
    follows: Cell::new(false),
});

/// The data of the policies about a thread. All zeros stand for a thread of which nothing is known.
#[derive(Debug)]
#[repr(C)]
pub struct Mark {
    /// PCT and POS: the priority; the highest runs first. Under POS, 0 means that none is drawn yet.
    priority: Cell<u64>,
    /// POS: the step at which the priority was drawn.
    drawn_at: Cell<u32>,
    /// SURW: its index in the table of expected events, plus 1; 0 if it is not there.
    place: Cell<u16>,
    /// SURW: the events that it, and the threads that it has yet to create, are expected to have from here
    /// on.
    weight: Cell<u64>,
    /// SURW: the number of events that it has reached.
    events: Cell<u32>,
    /// SURW: the number of events that it reached before the first choice, for each part of the objects;
    /// index 0 is for all objects.
    early: [Cell<u32>; 1 + PARTS as usize],
}

impl Mark {
    /// The data about a thread of which nothing is known.
    pub const fn new() -> Mark {
        Mark {
            priority: Cell::new(0),
            drawn_at: Cell::new(0),
            place: Cell::new(0),
            weight: Cell::new(0),
            events: Cell::new(0),
            early: [const { Cell::new(0) }; 1 + PARTS as usize],
        }
    }
}

/// The number of rarities: spurious wake-ups and faults happen each time, or once in 2, 4, ... 512 times.
const RARITIES: u64 = 10;

/// Sets the policy of the execution that begins. `expected` has the expected events of its threads, for SURW;
/// `holds` steers it, for `directed`.
pub fn begin(plan: &heisen_wire::Plan, expected: &'static [Expected], holds: &[Hold]) {
    let kind = plan.policy.load(Relaxed);
    let parameter = plan.parameter.load(Relaxed);
    // For SURW the field is the mean length of runs.
    let steps = plan.expected_steps.load(Relaxed).max(1);
    POLICY.kind.set(kind);
    POLICY.parameter.set(parameter);
    POLICY.rarity.set(0);
    random::begin(plan.seed.load(Relaxed));
    match kind {
        policy::PCT | policy::FAIR_PCT => pct::begin(parameter, steps, kind == policy::FAIR_PCT),
        policy::DELAY => delay::begin(parameter, steps),
        policy::SURW => surw::begin(parameter, steps, expected),
        policy::DIRECTED => directed::begin(holds),
        _ => {}
    }
    for (number, _) in threads() {
        created(number);
    }
    if kind == policy::SURW {
        surw::catch_up();
    }
}

/// Starts or stops recording for executions that begin later, at a choice of this one. Their policies may
/// need the steps and touches before that choice; see `lifecycle::in_process::later_snapshot`.
pub fn follow(follows: bool) {
    POLICY.follows.set(follows);
}

/// Whether everything before the first choice was recorded that the policy of this plan needs.
pub fn has_followed(plan: &heisen_wire::Plan) -> bool {
    plan.policy.load(Relaxed) != policy::DIRECTED || directed::has_followed()
}

/// Whether [`stepped`] has to be called at every step.
pub fn watches() -> bool {
    POLICY.kind.get() == policy::SURW || POLICY.follows.get()
}

/// The running thread has reached a scheduling point.
pub fn stepped(number: usize) {
    if POLICY.follows.get() {
        surw::follow(number);
    }
    if POLICY.kind.get() == policy::SURW {
        surw::stepped(number);
    }
}

/// A thread was created.
pub fn created(number: usize) {
    match POLICY.kind.get() {
        policy::PCT | policy::FAIR_PCT => pct::created(get(number)),
        policy::POS => get(number).mark.priority.set(0),
        policy::SURW => surw::created(number),
        _ => {}
    }
}

/// The running thread touches an object, as reported by [`dependence`](crate::sched::dependence).
pub fn touched(op: u8, object: u64) {
    if POLICY.follows.get() {
        directed::follow(op, object);
    }
    if POLICY.kind.get() == policy::DIRECTED {
        directed::touched(me(), op, object);
    }
}

/// The thread that takes step `step`. `able` says whether the running thread could continue; it is choice 0
/// then.
#[inline]
pub fn thread(choices: Choices, step: u32, able: bool) -> usize {
    match POLICY.kind.get() {
        policy::RANDOM => choices.nth(below(choices.options as u64) as usize),
        policy::DEFAULT if sleep_sets::any() => {
            choices.iter().find(|&t| !sleep_sets::asleep(t)).unwrap_or(choices.first)
        }
        policy::DEFAULT => choices.first,
        policy::PCT | policy::FAIR_PCT => pct::choose(choices, step),
        policy::SURW => surw::choose(choices),
        kind => choices.nth(sampled(kind, choices, step, able)),
    }
}

#[inline(never)]
fn sampled(kind: u32, choices: Choices, step: u32, able: bool) -> usize {
    match kind {
        policy::BURST => burst::choose(choices, able, POLICY.parameter.get()),
        policy::POS => pos::choose(choices, step),
        policy::DELAY => delay::choose(choices, step),
        policy::DIRECTED => directed::choose(choices, able, POLICY.parameter.get()),
        policy::SCRIPT => script_state::choose(choices),
        _ => 0,
    }
}

/// The choice among `options` waiters to wake.
pub fn waiter(options: usize) -> usize {
    if is_default() { 0 } else { below(options as u64) as usize }
}

/// Whether every choice that is not steered is the default.
fn is_default() -> bool {
    let kind = POLICY.kind.get();
    matches!(kind, policy::DEFAULT | policy::SCRIPT)
        || kind == policy::DIRECTED && POLICY.parameter.get() == 0
}

/// The choice among `options` values. Values that the program asks for all have the same chance. Spurious
/// wake-ups and faults are rare, and how rare differs between executions. So the first hundred calls of a
/// long program do not always use up the budget, and a short program uses it often enough.
pub fn value(kind: DecisionKind, options: usize) -> usize {
    if is_default() {
        return 0;
    }
    if kind == DecisionKind::Choose {
        return below(options as u64) as usize;
    }
    if POLICY.rarity.get() == 0 {
        POLICY.rarity.set(1 << below(RARITIES));
    }
    (below(POLICY.rarity.get()) == 0) as usize
}

/// The record of the running thread.
fn running() -> &'static Thread {
    get(me())
}
