//! The choice where the plan fixes none: the default, or one of the samplers, one file each.
//!
//! A policy is asked at decisions only. Those that have to know of every step besides say so when the execution begins
//! ([`watches`]), so that the others pay nothing for it.

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
    /// The depth of PCT, the mean burst, the delays or the part of SURW.
    parameter: Cell<u32>,
    /// One in how many spurious wake-ups or faults happens in this execution; 0 if that is not decided yet.
    rarity: Cell<u64>,
    /// Whether what is done is kept for executions that begin later than this one; see [`follow`].
    follows: Cell<bool>,
}

static P: Guarded<Policy> = Guarded::new(Policy {
    kind: Cell::new(policy::DEFAULT),
    parameter: Cell::new(0),
    rarity: Cell::new(0),
    follows: Cell::new(false),
});

/// What the policies keep of a thread. All zeros is a thread that nothing is known of.
#[derive(Debug)]
#[repr(C)]
pub struct Mark {
    /// PCT and POS: the priority, higher runs first. 0 under POS: there is none yet.
    priority: Cell<u64>,
    /// POS: the step at which the priority was drawn.
    drawn_at: Cell<u32>,
    /// SURW: its place in the table of what is expected, plus 1; 0 if it has none.
    place: Cell<u16>,
    /// SURW: events that it, and threads that it has yet to create, are expected to have from here on.
    weight: Cell<u64>,
    /// SURW: events that it came to.
    events: Cell<u32>,
    /// SURW: events that it came to before the first choice, if they counted for this part of the objects.
    early: [Cell<u32>; 1 + PARTS as usize],
}

impl Mark {
    /// That of a thread that nothing is known of.
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

/// Spurious wake-ups and faults happen each time, or once in 2, 4, ... 512 times.
const RARITIES: u64 = 10;

/// Sets the policy of the execution that begins; `expected` is what SURW knows of its threads,
/// and `holds` where it is steered to.
pub fn begin(plan: &heisen_wire::Plan, expected: &'static [Expected], holds: &[Hold]) {
    let kind = plan.policy.load(Relaxed);
    let parameter = plan.parameter.load(Relaxed);
    // For SURW it is the length of runs.
    let steps = plan.expected_steps.load(Relaxed).max(1);
    P.kind.set(kind);
    P.parameter.set(parameter);
    P.rarity.set(0);
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

/// Others may begin where the execution that runs comes to its first choice, whatever their policies: what those have to know
/// that see every step is kept from here on, or no longer.
pub fn follow(follows: bool) {
    P.follows.set(follows);
}

/// Whether all that was done before the first choice was kept, for the policy of a plan.
pub fn has_followed(plan: &heisen_wire::Plan) -> bool {
    plan.policy.load(Relaxed) != policy::DIRECTED || directed::has_followed()
}

/// Whether [`stepped`] has to be called at every step.
pub fn watches() -> bool {
    P.kind.get() == policy::SURW || P.follows.get()
}

/// The running thread has come to a scheduling point.
pub fn stepped(number: usize) {
    if P.follows.get() {
        surw::follow(number);
    }
    if P.kind.get() == policy::SURW {
        surw::stepped(number);
    }
}

/// A thread was created.
pub fn created(number: usize) {
    match P.kind.get() {
        policy::PCT | policy::FAIR_PCT => pct::created(get(number)),
        policy::POS => get(number).mark.priority.set(0),
        policy::SURW => surw::created(number),
        _ => {}
    }
}

/// The running thread touches something, as [`dependence`](crate::sched::dependence) tells it.
pub fn touched(op: u8, object: u64) {
    if P.follows.get() {
        directed::follow(op, object);
    }
    if P.kind.get() == policy::DIRECTED {
        directed::touched(me(), op, object);
    }
}

/// Who of the choices takes step `step`; `able` if the running thread could go on, which is choice 0 then.
#[inline]
pub fn thread(choices: Choices, step: u32, able: bool) -> usize {
    match P.kind.get() {
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
        policy::BURST => burst::choose(choices, able, P.parameter.get()),
        policy::POS => pos::choose(choices, step),
        policy::DELAY => delay::choose(choices, step),
        policy::DIRECTED => directed::choose(choices, able, P.parameter.get()),
        policy::SCRIPT => script_state::choose(choices),
        _ => 0,
    }
}

/// Which of `options` waiters is woken.
pub fn waiter(options: usize) -> usize {
    if is_default() { 0 } else { below(options as u64) as usize }
}

/// Whether all that is not steered is choice 0.
fn is_default() -> bool {
    let kind = P.kind.get();
    matches!(kind, policy::DEFAULT | policy::SCRIPT) || kind == policy::DIRECTED && P.parameter.get() == 0
}

/// Which of `options` values is taken. Of what the program asks for, each with the same chance. Spurious wake-ups and
/// faults are rare, and how rare differs between executions: so the budget is neither always used up by the first
/// hundred calls of a long program, nor hardly ever used by a short one.
pub fn value(kind: DecisionKind, options: usize) -> usize {
    if is_default() {
        return 0;
    }
    if kind == DecisionKind::Choose {
        return below(options as u64) as usize;
    }
    if P.rarity.get() == 0 {
        P.rarity.set(1 << below(RARITIES));
    }
    (below(P.rarity.get()) == 0) as usize
}

/// The running thread.
fn running() -> &'static Thread {
    get(me())
}
