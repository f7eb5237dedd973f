//! Probabilistic concurrency testing, plain and fair.
//!
//! PCT (Burckhardt, Kothari, Musuvathi, Nagarakatte, ASPLOS'10): every thread gets a random priority above
//! all change points. The enabled thread of highest priority runs. At each of `depth - 1` randomly chosen
//! steps the running thread's priority falls below all initial ones. The priority of a thread that yields or
//! spins falls, too; otherwise it would run for ever.
//!
//! Fair PCT, as in Coyote, does the same for the expected number of steps, and then continues as a random
//! walk. So a loop that waits for a thread of low priority without yielding ends.

use super::random::{below, random};
use super::running;
use crate::platform::baton::Guarded;
use crate::sched::decision::Choices;
use crate::sched::{SCHED, Thread, candidates, thread as get, words};
use core::cell::Cell;

const MAX_CHANGES: usize = 31;

struct Pct {
    /// Steps at which the running thread is lowered; 0 once that is done. Change point i lowers it to
    /// priority i + 1.
    changes: [Cell<u32>; MAX_CHANGES],
    count: Cell<usize>,
    /// No change is due before this step.
    next_change: Cell<u32>,
    /// The priority below which the next thread that yields falls.
    bottom: Cell<u64>,
    /// The last step at which priorities count.
    until: Cell<u32>,
}

static PCT: Guarded<Pct> = Guarded::new(Pct {
    changes: [const { Cell::new(0) }; MAX_CHANGES],
    count: Cell::new(0),
    next_change: Cell::new(0),
    bottom: Cell::new(0),
    until: Cell::new(0),
});

/// The lowest initial priority of a thread. Lowered threads have priorities below it.
const HIGH: u64 = 1 << 63;

pub fn begin(depth: u32, steps: u32, fair: bool) {
    PCT.bottom.set(HIGH - 1);
    PCT.until.set(if fair { steps } else { u32::MAX });
    let count = (depth.max(1) - 1).min(MAX_CHANGES as u32) as usize;
    PCT.count.set(count);
    for change in &PCT.changes[..count] {
        change.set(1 + below(u64::from(steps)) as u32);
    }
    find_next_change();
}

fn find_next_change() {
    let left = PCT.changes[..PCT.count.get()].iter().map(Cell::get).filter(|&change| change != 0);
    PCT.next_change.set(left.min().unwrap_or(u32::MAX));
}

pub fn created(t: &Thread) {
    set_priority(t, HIGH | random() >> 1);
}

fn set_priority(t: &Thread, priority: u64) {
    t.mark.priority.set(priority);
    SCHED.known.forget();
}

pub fn choose(choices: Choices, step: u32) -> usize {
    if step > PCT.until.get() {
        return choices.nth(below(choices.options as u64) as usize);
    }
    if step >= PCT.next_change.get() {
        change(step);
    }
    let running = running();
    if running.yielded_at.get() == step - 1 && step > 1 {
        PCT.bottom.set(PCT.bottom.get() - 1);
        set_priority(running, PCT.bottom.get());
    }
    highest(choices)
}

/// Lowers the running thread, once for each change point that is due.
#[cold]
fn change(step: u32) {
    for (index, change) in PCT.changes[..PCT.count.get()].iter().enumerate() {
        if change.get() != 0 && change.get() <= step {
            // The priorities of change points are the lowest; they follow the order in the list, as in the
            // paper.
            change.set(0);
            set_priority(running(), index as u64 + 1);
        }
    }
    find_next_change();
}

/// The choice of highest priority. Usually it is the same as before, so only threads that were not compared
/// with it since are looked at.
fn highest(choices: Choices) -> usize {
    let priority = |number: usize| get(number).mark.priority.get();
    if words() > 1 {
        return choices.iter().max_by_key(|&number| priority(number)).unwrap_or(choices.first);
    }
    let set = candidates(0);
    let (mut top, mut known) = SCHED.known.known();
    if set & known & 1 << top == 0 {
        (top, known) = (choices.first, 0);
    }
    let mut left = set & !known;
    while left != 0 {
        let other = left.trailing_zeros() as usize;
        left &= left - 1;
        if priority(other) > priority(top) {
            top = other;
        }
    }
    SCHED.known.say(top, known | set, PCT.next_change.get().min(PCT.until.get()));
    top
}
