//! Partial order sampling: a random priority for each event rather than for each thread.
//!
//! Yuan, Yang, Gu: Partial order aware concurrency sampling, CAV'18. The pending event of highest priority is next; those
//! that race with it get a fresh priority, as having lost against it says nothing of what they shall come before.
//!
//! The paper draws again for every pending event that races. Here only those do that were candidates: the others were
//! not compared, so that their priorities are as random as fresh ones. And a priority is drawn when it is first needed.

use super::next_operation::{object, race};
use super::random::random;
use crate::sched::decision::Choices;
use crate::sched::{Thread, me, thread as get};

pub fn choose(choices: Choices, step: u32) -> usize {
    let (mut best, mut winner, mut highest) = (0, me(), 0);
    for (index, number) in choices.iter().enumerate() {
        let t = get(number);
        if t.mark.priority.get() == 0 || has_moved(t) {
            t.mark.priority.set(random() | 1);
            t.mark.drawn_at.set(step);
        }
        if t.mark.priority.get() > highest {
            (best, winner, highest) = (index, number, t.mark.priority.get());
        }
    }
    let event = get(winner);
    event.mark.priority.set(0);
    let object = object(event);
    for number in choices.iter().filter(|&number| number != winner) {
        let other = get(number);
        if object != 0 && race(event, object, other) {
            other.mark.priority.set(0);
        }
    }
    best
}

/// Whether the thread was switched to since its priority was drawn, without a decision that it won, and so is about to do
/// something else.
fn has_moved(t: &Thread) -> bool {
    t.scheduled_at.get() >= t.mark.drawn_at.get()
}
