//! Probabilistic concurrency testing, plain and fair.
//!
//! PCT (Burckhardt, Kothari, Musuvathi, Nagarakatte, ASPLOS'10): every thread gets a random priority above all change
//! points; the enabled thread of highest priority runs; at each of `depth - 1` randomly chosen steps the running
//! thread's priority falls below all others'. One that yields or spins falls, too, or it would run for ever.
//!
//! Fair PCT, as Coyote has it, does so for as many steps as are expected, and then goes on as a random walk: whatever
//! waits for a thread of low priority without yielding gets there.

use super::random::{below, random};
use super::running;
use crate::choose::Choices;
use crate::sched::{Thread, thread as get};
use core::cell::Cell;

const MAX_CHANGES: usize = 31;

struct Pct {
    /// Steps at which the running thread is lowered, 0 once that is done; the later ones get the higher priorities.
    changes: [Cell<u32>; MAX_CHANGES],
    count: Cell<usize>,
    /// The next lower priority for a thread that yields.
    bottom: Cell<u64>,
    /// The last step that goes by priority.
    until: Cell<u32>,
}

// SAFETY: as for `sched::S`.
unsafe impl Sync for Pct {}

static PCT: Pct = Pct {
    changes: [const { Cell::new(0) }; MAX_CHANGES],
    count: Cell::new(0),
    bottom: Cell::new(0),
    until: Cell::new(0),
};

/// Priorities of threads that were never lowered start here; below it lie the lowered ones.
const HIGH: u64 = 1 << 63;

pub fn begin(depth: u32, steps: u32, fair: bool) {
    PCT.bottom.set(HIGH - 1);
    PCT.until.set(if fair { steps } else { u32::MAX });
    let count = (depth.max(1) - 1).min(MAX_CHANGES as u32) as usize;
    PCT.count.set(count);
    for change in &PCT.changes[..count] {
        change.set(1 + below(u64::from(steps)) as u32);
    }
}

pub fn created(t: &Thread) {
    t.mark.priority.set(HIGH | random() >> 1);
}

pub fn choose(choices: Choices, step: u32) -> usize {
    if step > PCT.until.get() {
        return below(choices.options as u64) as usize;
    }
    let running = running();
    for (index, change) in PCT.changes[..PCT.count.get()].iter().enumerate() {
        if change.get() != 0 && change.get() <= step {
            // The change points have the lowest priorities, the later ones above the earlier.
            change.set(0);
            running.mark.priority.set(index as u64 + 1);
        }
    }
    if running.yielded_at.get() == step - 1 && step > 1 {
        PCT.bottom.set(PCT.bottom.get() - 1);
        running.mark.priority.set(PCT.bottom.get());
    }
    let priority = |&(_, number): &(usize, usize)| get(number).mark.priority.get();
    choices.iter().enumerate().max_by_key(priority).map_or(0, |(index, _)| index)
}
