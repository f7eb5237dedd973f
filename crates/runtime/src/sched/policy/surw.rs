//! Selectively uniform random walk: every interleaving of the events that count has the same chance.
//!
//! Zhao, Wolff, Mathur, Roychoudhury: Selectively uniform concurrency testing, ASPLOS'25. If a thread is
//! chosen with a probability proportional to its number of remaining events, all interleavings are equally
//! likely. The events of threads that it will create belong to a thread, too. Earlier executions give the
//! expected numbers, by the thread's place in the tree of creation; each execution counts again. The policy
//! draws the thread that has the next event that counts. The other threads run at any time, as far as they
//! can without such an event.
//!
//! The events that count are the operations on one part of the objects, or all operations except creation,
//! start, join and end of threads. The order of those exceptions matters only through the operations that
//! follow them.
//!
//! Most interleavings have many switches, while a bug often needs few. So a plan may ask for runs: the drawn
//! thread then has not one event that counts but a random number of them, distributed geometrically.

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
    /// The part of the objects that counts, from 1; 0 if all objects count.
    part: Cell<u32>,
    expected: Cell<&'static [Expected]>,
    /// The mean number of consecutive events that count of a thread; 1 if each is drawn anew.
    length: Cell<u32>,
    /// The thread that has the next event that counts.
    intended: Cell<u16>,
    /// Threads whose pending operation counts.
    counting: Bits,
}

static SURW: Guarded<Surw> = Guarded::new(Surw {
    part: Cell::new(0),
    expected: Cell::new(&[]),
    length: Cell::new(1),
    intended: Cell::new(NONE),
    counting: Bits::new(),
});

pub fn begin(part: u32, length: u32, expected: &'static [Expected]) {
    SURW.part.set(part);
    SURW.length.set(length);
    SURW.expected.set(expected);
    SURW.intended.set(NONE);
}

pub fn created(number: usize) {
    let t = get(number);
    let parent = (t.parent.get() != NONE).then(|| get(t.parent.get() as usize));
    let place = place(t, parent);
    let weight = place.map_or(0, |place| SURW.expected.get()[place].events.load(Relaxed));
    t.mark.place.set(place.map_or(0, |place| place as u16 + 1));
    t.mark.weight.set(weight);
    t.mark.events.set(0);
    SURW.counting.remove(number);
    wire_log::counted(number, t.parent.get(), t.child.get(), 0);
    if let Some(parent) = parent {
        let before = parent.mark.weight.get();
        parent.mark.weight.set(before.saturating_sub(weight));
        // The next event belongs to the parent or to a thread that it creates; this draws which.
        if SURW.intended.get() == t.parent.get() && before != 0 && below_any(before) < weight {
            SURW.intended.set(number as u16);
        }
    }
}

/// The index of a thread in the table of expected events.
fn place(t: &Thread, parent: Option<&Thread>) -> Option<usize> {
    let expected = SURW.expected.get();
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

/// A thread reaches its next operation.
fn arrive(number: usize, t: &Thread) {
    if !counts(t) {
        SURW.counting.remove(number);
    } else {
        SURW.counting.add(number);
        t.mark.events.set(t.mark.events.get() + 1);
        wire_log::counted(number, t.parent.get(), t.child.get(), t.mark.events.get());
    }
}

/// Whether the pending operation of a thread counts.
fn counts(t: &Thread) -> bool {
    match SURW.part.get() {
        0 => is_event(t),
        part => part_of(t) == Some(part),
    }
}

/// Whether the pending operation counts if all objects count.
fn is_event(t: &Thread) -> bool {
    !matches!(t.op(), Op::Start | Op::Create | Op::Join | Op::End)
}

/// The part of the objects to which the pending operation belongs.
fn part_of(t: &Thread) -> Option<u32> {
    match object(t) {
        0 => None,
        object => Some(hash::part(object as u64)),
    }
}

/// A thread reaches its next operation before the first choice: counts it for all parts.
pub fn follow(number: usize) {
    let t = get(number);
    let all = is_event(t).then_some(0);
    for part in [all, part_of(t)].into_iter().flatten() {
        let early = &t.mark.early[part as usize];
        early.set(early.get() + 1);
    }
}

/// An execution begins: the events that another execution has counted before the first choice are taken as
/// its own. No thread was drawn for them.
pub fn catch_up() {
    for (number, t) in threads() {
        let events = t.mark.early[SURW.part.get() as usize].get();
        if events == 0 {
            continue;
        }
        // The last of them is the pending operation, if that counts.
        let is_next = counts(t);
        t.mark.events.set(events);
        t.mark.weight.set(t.mark.weight.get().saturating_sub(u64::from(events - u32::from(is_next))));
        if is_next {
            SURW.counting.add(number);
        }
        wire_log::counted(number, t.parent.get(), t.child.get(), events);
    }
}

/// The running thread has done its operation and has reached the next one.
pub fn stepped(number: usize) {
    let t = get(number);
    if SURW.counting.has(number) {
        t.mark.weight.set(t.mark.weight.get().saturating_sub(1));
        if SURW.intended.get() as usize == number && run_ends() {
            SURW.intended.set(NONE);
        }
    }
    arrive(number, t);
}

/// Whether the run ends: the thread of the last event that counts need not have the next one.
fn run_ends() -> bool {
    SURW.length.get() == 1 || below(u64::from(SURW.length.get())) == 0
}

/// Not inlined: the random walk, which is fast, must not have to save registers for it.
#[inline(never)]
pub fn choose(choices: Choices) -> usize {
    let mut intended = SURW.intended.get();
    if intended == NONE || !is_candidate(intended.into()) {
        intended = intend(choices) as u16;
        SURW.intended.set(intended);
    }
    let may = |word| {
        !SURW.counting.word(word) | if word == usize::from(intended) / 64 { 1 << (intended % 64) } else { 0 }
    };
    choices.pick(may, below)
}

/// Draws the thread that has the next event that counts, each by its number of remaining events.
fn intend(choices: Choices) -> usize {
    // A thread with more events than expected has at least its pending one.
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
