//! Steered executions: a thread is held before an operation until another thread has reached an operation of
//! its own.
//!
//! As in CalFuzzer (Joshi, Naik, Park, Sen, CAV'09). An operation is identified by its thread, the object
//! that it touches, and its number among equal operations of the thread. The search counts them in the same
//! way in the execution that it predicts from. A hold is a preference: where every candidate is held, one of
//! them runs.

use super::random::below;
use crate::platform::baton::Guarded;
use crate::sched::decision::Choices;
use crate::sched::dependence::WORD;
use crate::sched::{SCHED, me, thread as get};
use core::cell::Cell;
use core::sync::atomic::Ordering::Relaxed;
use heisen_trace::Op;
use heisen_wire::{Hold, MAX_HOLDS};

/// An operation of a thread, and how often the thread has done it.
struct Deed {
    thread: Cell<usize>,
    op: Cell<u8>,
    object: Cell<u64>,
    nth: Cell<u32>,
    done: Cell<u32>,
}

struct Held {
    at: Deed,
    until: Deed,
    past: Cell<bool>,
}

/// The touches before the first choice, and their threads.
struct Early {
    touches: [Cell<(u16, u8, u64)>; MOST_EARLY],
    /// Their number; more than there is room for, if some did not fit.
    count: Cell<usize>,
}

/// The largest number of recorded touches. Before the first choice few touches are of objects that other
/// threads use.
const MOST_EARLY: usize = 1 << 10;

struct Directed {
    holds: [Held; MAX_HOLDS],
    count: Cell<usize>,
    early: Early,
}

impl Deed {
    const fn none() -> Deed {
        Deed {
            thread: Cell::new(0),
            op: Cell::new(0),
            object: Cell::new(0),
            nth: Cell::new(0),
            done: Cell::new(0),
        }
    }

    fn set(&self, from: &heisen_wire::Deed) {
        let who = from.who.load(Relaxed);
        self.thread.set((who & 0xffff) as usize);
        self.op.set((who >> 16) as u8);
        self.object.set(from.object.load(Relaxed));
        self.nth.set(from.nth.load(Relaxed));
        self.done.set(0);
    }

    fn touched(&self, number: usize, op: u8, object: u64) {
        if self.thread.get() == number && self.op.get() == op && self.object.get() == object {
            self.done.set(self.done.get() + 1);
        }
    }

    fn is_done(&self) -> bool {
        self.done.get() >= self.nth.get()
    }

    /// Whether the thread is about to do this operation.
    fn is_next(&self) -> bool {
        if self.done.get() + 1 != self.nth.get() || self.thread.get() >= SCHED.count.get() {
            return false;
        }
        let t = get(self.thread.get());
        let memory = matches!(
            t.op(),
            Op::MemRead | Op::MemWrite | Op::AtomicLoad | Op::AtomicStore | Op::AtomicRmw | Op::AtomicCas
        );
        match self.op.get() {
            0 => memory && (t.object.get() & !(WORD - 1)) as u64 == self.object.get(),
            op => t.op() as u8 == op && t.object.get() as u64 == self.object.get(),
        }
    }

    /// Whether the thread has ended, and so can no longer do this operation.
    fn is_over(&self) -> bool {
        self.thread.get() < SCHED.count.get() && get(self.thread.get()).ended.get()
    }
}

impl Held {
    fn holds(&self, number: usize) -> bool {
        let until = &self.until;
        self.at.thread.get() == number
            && self.at.is_next()
            && !until.is_done()
            && !until.is_over()
            && (self.past.get() || !until.is_next())
    }
}

static DIRECTED: Guarded<Directed> = Guarded::new(Directed {
    holds: [const { Held { at: Deed::none(), until: Deed::none(), past: Cell::new(false) } }; MAX_HOLDS],
    count: Cell::new(0),
    early: Early { touches: [const { Cell::new((0, 0, 0)) }; MOST_EARLY], count: Cell::new(0) },
});

fn holds() -> &'static [Held] {
    &DIRECTED.holds[..DIRECTED.count.get()]
}

pub fn begin(wanted: &[Hold]) {
    DIRECTED.count.set(wanted.len().min(MAX_HOLDS));
    for (held, wanted) in holds().iter().zip(wanted) {
        held.at.set(&wanted.at);
        held.until.set(&wanted.until);
        held.past.set(wanted.past.load(Relaxed) != 0);
    }
    for (number, op, object) in DIRECTED.early.touches.iter().take(DIRECTED.early.count.get()).map(Cell::get)
    {
        touched(number.into(), op, object);
    }
}

/// The running thread touches something before the first choice.
pub fn follow(op: u8, object: u64) {
    let count = DIRECTED.early.count.get();
    if let Some(early) = DIRECTED.early.touches.get(count) {
        early.set((me() as u16, op, object));
    }
    DIRECTED.early.count.set((count + 1).min(MOST_EARLY + 1));
}

/// Whether all touches before the first choice are recorded.
pub fn has_followed() -> bool {
    DIRECTED.early.count.get() <= MOST_EARLY
}

/// A thread touches something.
pub fn touched(number: usize, op: u8, object: u64) {
    for held in holds() {
        held.at.touched(number, op, object);
        held.until.touched(number, op, object);
    }
}

/// Chooses among the threads that are not held: the running thread; else a thread of the target; else the
/// next one. Threads whose wait would have to time out come last. If `length` is not 0, it chooses any of
/// them once in `length` times.
pub fn choose(choices: Choices, able: bool, length: u32) -> usize {
    let free = |&(_, number): &(usize, usize)| !holds().iter().any(|held| held.holds(number));
    let all = || choices.iter().enumerate().filter(free);
    let options = all().count();
    if options == 0 {
        return if length == 0 { 0 } else { below(choices.options as u64) as usize };
    }
    if length == 0 || able && below(u64::from(length)) != 0 {
        let rank = |&(index, number): &(usize, usize)| {
            let takes_part = holds().iter().any(|held| held.at.thread.get() == number);
            (SCHED.late.has(number), !(able && index == 0), !takes_part)
        };
        return all().min_by_key(rank).map_or(0, |(index, _)| index);
    }
    all().nth(below(options as u64) as usize).map_or(0, |(index, _)| index)
}
