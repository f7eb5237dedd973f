//! Delay bounding, sampled: the default schedule with a few random delays.
//!
//! Emmi, Qadeer, Rakamarić: Delay-bounded scheduling, POPL'11. The scheduler is deterministic: a thread
//! continues while it can, then the next one in cyclic order runs. A delay skips the thread whose turn it is.
//! The paper enumerates the delays; here they lie at random steps.

use super::random::below;
use crate::platform::baton::Guarded;
use crate::sched::decision::Choices;
use core::cell::Cell;

const MAX_DELAYS: usize = 64;

struct Delay {
    /// The steps of the remaining delays; 0 for those that are done.
    at: [Cell<u32>; MAX_DELAYS],
    count: Cell<usize>,
}

static DELAY: Guarded<Delay> =
    Guarded::new(Delay { at: [const { Cell::new(0) }; MAX_DELAYS], count: Cell::new(0) });

pub fn begin(delays: u32, steps: u32) {
    let count = (delays as usize).min(MAX_DELAYS);
    DELAY.count.set(count);
    for at in &DELAY.at[..count] {
        at.set(1 + below(u64::from(steps)) as u32);
    }
}

pub fn choose(choices: Choices, step: u32) -> usize {
    let due = DELAY.at[..DELAY.count.get()].iter().filter(|at| at.get() != 0 && at.get() <= step);
    let delays = due.inspect(|at| at.set(0)).count();
    delays % choices.options
}
