//! The choice where the plan fixes none: the default, a random walk, or PCT.
//!
//! PCT (Burckhardt, Kothari, Musuvathi, Nagarakatte, ASPLOS'10): every thread gets a random priority above all change
//! points; the enabled thread of highest priority runs; at each of `depth - 1` randomly chosen steps the running
//! thread's priority falls below all others'.

use crate::sched::{S, Thread, me, thread as get};
use core::cell::Cell;
use heisen_trace::DecisionKind;
use heisen_wire::policy;

const MAX_CHANGES: usize = 31;

struct Policy {
    kind: Cell<u32>,
    /// State of the generator, and the number it gives next: made in advance, as the path of a scheduling point waits
    /// for it.
    random: Cell<u64>,
    ready: Cell<u64>,
    /// Steps at which PCT lowers the running thread, with the priorities it gets.
    changes: [Cell<u32>; MAX_CHANGES],
    change_count: Cell<usize>,
    /// The next lower priority for a thread that yields under PCT.
    bottom: Cell<u64>,
    /// One in how many spurious wake-ups or faults happens in this execution; 0 if that is not decided yet.
    rarity: Cell<u64>,
}

// SAFETY: as for `sched::S`.
unsafe impl Sync for Policy {}

static P: Policy = Policy {
    kind: Cell::new(policy::DEFAULT),
    random: Cell::new(0),
    ready: Cell::new(0),
    changes: [const { Cell::new(0) }; MAX_CHANGES],
    change_count: Cell::new(0),
    bottom: Cell::new(0),
    rarity: Cell::new(0),
};

/// Priorities of threads that were never lowered start here; below it lie the lowered ones.
const HIGH: u64 = 1 << 63;

/// Spurious wake-ups and faults happen once in 4, 8, ... 512 times.
const OFTEN: u64 = 4;
const STEPS_OF_RARITY: u64 = 8;

/// Sets the policy of the execution that begins.
pub fn begin(kind: u32, seed: u64, depth: u32, steps: u32) {
    P.kind.set(kind);
    P.random.set(seed);
    random();
    P.bottom.set(HIGH - 1);
    P.rarity.set(0);
    let changes = (depth.max(1) - 1).min(MAX_CHANGES as u32) as usize;
    P.change_count.set(changes);
    if kind == policy::PCT {
        for change in &P.changes[..changes] {
            change.set(1 + below(steps.max(1) as u64) as u32);
        }
        for number in 0..S.count.get() {
            created(get(number));
        }
    }
}

/// A thread was created.
pub fn created(t: &Thread) {
    if P.kind.get() == policy::PCT {
        t.priority.set(HIGH | random() >> 1);
    }
}

/// The next number of splitmix64.
#[inline]
fn random() -> u64 {
    let ready = P.ready.get();
    let state = P.random.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
    P.random.set(state);
    let mut z = state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    P.ready.set(z ^ (z >> 31));
    ready
}

/// A random number below `bound`, by multiplication; the bias is below 2^-32.
#[inline]
fn below(bound: u64) -> u64 {
    ((random() >> 32) * bound) >> 32
}

/// Which of `options` threads takes step `step`; `nth` gives the thread of each choice.
#[inline]
pub fn thread(options: usize, step: u32, nth: impl Fn(usize) -> usize) -> usize {
    match P.kind.get() {
        policy::RANDOM => below(options as u64) as usize,
        policy::PCT => pct(options, step, nth),
        _ => 0,
    }
}

/// Which of `options` waiters is woken.
pub fn waiter(options: usize) -> usize {
    if P.kind.get() == policy::DEFAULT { 0 } else { below(options as u64) as usize }
}

/// Which of `options` values is taken. Of what the program asks for, each with the same chance. Spurious wake-ups and
/// faults are rare, and how rare differs between executions: so the budget is neither always used up by the first
/// hundred calls of a long program, nor hardly ever used by a short one.
pub fn value(kind: DecisionKind, options: usize) -> usize {
    if P.kind.get() == policy::DEFAULT {
        return 0;
    }
    if kind == DecisionKind::Choose {
        return below(options as u64) as usize;
    }
    if P.rarity.get() == 0 {
        P.rarity.set(OFTEN << below(STEPS_OF_RARITY));
    }
    (below(P.rarity.get()) == 0) as usize
}

fn pct(options: usize, step: u32, nth: impl Fn(usize) -> usize) -> usize {
    let running = get(me());
    for (index, change) in P.changes[..P.change_count.get()].iter().enumerate() {
        if change.get() != 0 && change.get() <= step {
            // The change points have the lowest priorities, the later ones above the earlier.
            change.set(0);
            running.priority.set(index as u64 + 1);
        }
    }
    if running.yielded_at.get() == step - 1 && step > 1 {
        P.bottom.set(P.bottom.get() - 1);
        running.priority.set(P.bottom.get());
    }
    (0..options).max_by_key(|&index| get(nth(index)).priority.get()).unwrap_or(0)
}
