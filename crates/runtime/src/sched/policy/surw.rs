//! Selectively uniform random walk: every interleaving of the events that count has the same chance.
//!
//! Zhao, Wolff, Mathur, Roychoudhury: Selectively uniform concurrency testing, ASPLOS'25. If a thread is chosen with a
//! probability proportional to the number of events it still has, all interleavings are equally likely; a thread has
//! those of the threads that it will create, too. How many there are is known from earlier executions, by the thread's
//! place in the tree of creation, and counted again in each. What does not count runs whenever it likes: a thread is
//! chosen that has the next event that counts, and the others go on as far as they can without one.
//!
//! What counts are the operations on a part of the objects, or all but those by which threads come and go: in which order
//! these are makes no difference but by what comes after them.
//!
//! Most interleavings have many switches, and those that a bug takes are often few. So an execution may be asked for runs: the
//! chosen thread has not only the next event that counts but a random number of them, distributed geometrically.

use super::next_operation::object;
use super::random::{below, below_any};
use crate::platform::baton::Guarded;
use crate::sched::decision::Choices;
use crate::sched::thread_set::Bits;
use crate::sched::{NONE, Thread, is_candidate, thread as get, threads};
use crate::wire_log;
use core::cell::Cell;
use core::sync::atomic::Ordering::Relaxed;
use heisen_trace::{Op, hash};
use heisen_wire::Expected;

struct Surw {
    /// Which part of the objects counts, from 1; 0 if all.
    part: Cell<u32>,
    expected: Cell<&'static [Expected]>,
    /// How many events that count a thread has in a row, on average; 1 if each is chosen anew.
    length: Cell<u32>,
    /// Whose event is the next that counts.
    intended: Cell<u16>,
    /// Threads for which what they are about to do counts.
    counting: Bits,
}

static W: Guarded<Surw> = Guarded::new(Surw {
    part: Cell::new(0),
    expected: Cell::new(&[]),
    length: Cell::new(1),
    intended: Cell::new(NONE),
    counting: Bits::new(),
});

pub fn begin(part: u32, length: u32, expected: &'static [Expected]) {
    W.part.set(part);
    W.length.set(length);
    W.expected.set(expected);
    W.intended.set(NONE);
}

pub fn created(number: usize) {
    let t = get(number);
    let parent = (t.parent.get() != NONE).then(|| get(t.parent.get() as usize));
    let place = place(t, parent);
    let weight = place.map_or(0, |place| W.expected.get()[place].events.load(Relaxed));
    t.mark.place.set(place.map_or(0, |place| place as u16 + 1));
    t.mark.weight.set(weight);
    t.mark.events.set(0);
    W.counting.remove(number);
    wire_log::counted(number, t.parent.get(), t.child.get(), 0);
    if let Some(parent) = parent {
        let before = parent.mark.weight.get();
        parent.mark.weight.set(before.saturating_sub(weight));
        // The next event is one of the parent's, or of those it creates: which, is settled now.
        if W.intended.get() == t.parent.get() && before != 0 && below_any(before) < weight {
            W.intended.set(number as u16);
        }
    }
}

/// Where in the table a thread is.
fn place(t: &Thread, parent: Option<&Thread>) -> Option<usize> {
    let expected = W.expected.get();
    let place = match parent {
        None => 0,
        Some(parent) => {
            let above = expected.get((parent.mark.place.get() as usize).checked_sub(1)?)?;
            let child = u32::from(t.child.get()).checked_sub(1)?;
            if child >= above.children.load(Relaxed) {
                return None;
            }
            (above.first_child.load(Relaxed) + child) as usize
        }
    };
    (place < expected.len()).then_some(place)
}

/// A thread comes to what it is about to do.
fn arrive(number: usize, t: &Thread) {
    if !counts(t) {
        W.counting.remove(number);
    } else {
        W.counting.add(number);
        t.mark.events.set(t.mark.events.get() + 1);
        wire_log::counted(number, t.parent.get(), t.child.get(), t.mark.events.get());
    }
}

/// Whether what a thread is about to do counts.
fn counts(t: &Thread) -> bool {
    match W.part.get() {
        0 => is_event(t),
        part => part_of(t) == Some(part),
    }
}

/// Whether it counts where all objects do.
fn is_event(t: &Thread) -> bool {
    !matches!(t.op(), Op::Start | Op::Create | Op::Join | Op::End)
}

/// The part of the objects for which it counts.
fn part_of(t: &Thread) -> Option<u32> {
    match object(t) {
        0 => None,
        object => Some(hash::part(object as u64)),
    }
}

/// A thread comes to what it is about to do, before the first choice: it is counted for all parts.
pub fn follow(number: usize) {
    let t = get(number);
    let all = is_event(t).then_some(0);
    for part in [all, part_of(t)].into_iter().flatten() {
        let early = &t.mark.early[part as usize];
        early.set(early.get() + 1);
    }
}

/// An execution begins: what was done before, in another one, is as if it had been done in this. Nobody was chosen then.
pub fn catch_up() {
    for (number, t) in threads() {
        let events = t.mark.early[W.part.get() as usize].get();
        if events == 0 {
            continue;
        }
        // The last is what it is about to do, if that counts.
        let is_next = counts(t);
        t.mark.events.set(events);
        t.mark.weight.set(t.mark.weight.get().saturating_sub(u64::from(events - u32::from(is_next))));
        if is_next {
            W.counting.add(number);
        }
        wire_log::counted(number, t.parent.get(), t.child.get(), events);
    }
}

/// The running thread has done what it was about to do, and is about to do something else.
pub fn stepped(number: usize) {
    let t = get(number);
    if W.counting.has(number) {
        t.mark.weight.set(t.mark.weight.get().saturating_sub(1));
        if W.intended.get() as usize == number && run_ends() {
            W.intended.set(NONE);
        }
    }
    arrive(number, t);
}

/// Whether the thread that had the last event that counts need not have the next.
fn run_ends() -> bool {
    W.length.get() == 1 || below(u64::from(W.length.get())) == 0
}

/// Not inlined, as what is quick to choose at random shall not have to save registers for it.
#[inline(never)]
pub fn choose(choices: Choices) -> usize {
    let mut intended = W.intended.get();
    if intended == NONE || !is_candidate(intended.into()) {
        intended = intend(choices) as u16;
        W.intended.set(intended);
    }
    let may = |word| {
        !W.counting.word(word) | if word == usize::from(intended) / 64 { 1 << (intended % 64) } else { 0 }
    };
    choices.pick(may, below)
}

/// Whose event is the next that counts: each thread by what it has left.
fn intend(choices: Choices) -> usize {
    // One that has more events than was expected has at least the one it is about to do.
    let weight = |number: usize| get(number).mark.weight.get().max(1);
    let mut at = below_any(choices.iter().map(weight).sum());
    for number in choices.iter() {
        match at.checked_sub(weight(number)) {
            Some(left) => at = left,
            None => return number,
        }
    }
    choices.first
}
