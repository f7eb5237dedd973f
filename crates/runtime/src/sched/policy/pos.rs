//! Partial order sampling: a random priority for each event instead of each thread.
//!
//! Yuan, Yang, Gu: Partial order aware concurrency sampling, CAV'18. The pending event of highest priority is
//! next. Events that race with it get a new priority: that they lost against it says nothing about their
//! order with later events.
//!
//! The paper draws again for every pending event that races. Here only candidates draw again. The other
//! events were not compared, so their priorities are as random as new ones. A priority is drawn when it is
//! first needed.

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

/// Whether the thread was switched to since its priority was drawn, without winning a decision. Its pending
/// event is another one then.
fn has_moved(t: &Thread) -> bool {
    t.scheduled_at.get() >= t.mark.drawn_at.get()
}
