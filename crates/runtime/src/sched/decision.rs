//! Decisions: the order of the choices, the default among them, and the choice itself. Most decisions are
//! about the thread that takes the next step; others are about the waiter to wake, a fault or a value.

pub use crate::sched::faults::{fault, faults_are_left};
use crate::sched::{SCHED, candidates, is_candidate, me, next_step, thread, threads, waiters, words};
use crate::sched::{dependence, events, hooks, plan, policy, recurrence, scope, script_state};
use crate::wire_log;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use heisen_trace::decision::{Decision, DecisionKind, MAX_OPTIONS};
use heisen_trace::{Note, Op, hash};

/// Whether the snapshot may still be moved to a choice of this execution. It lies in the program's memory, so
/// snapshots restore it.
static MOVES_SNAPSHOT: AtomicBool = AtomicBool::new(false);

/// Sets whether the snapshot may be moved to a choice that is yet to come.
pub fn await_choice(awaits: bool) {
    MOVES_SNAPSHOT.store(awaits, Relaxed);
}

/// Whether the snapshot may be moved to a choice that is yet to come.
pub fn awaits_choice() -> bool {
    MOVES_SNAPSHOT.load(Relaxed)
}

/// The execution has reached a choice at this step. Neither the plan nor the policy has been asked about it
/// yet.
#[inline(always)]
fn at_choice(step: u32) {
    if MOVES_SNAPSHOT.load(Relaxed) {
        hooks::at_choice(step);
    }
}

/// The first candidate after `number` in cyclic order, `number` itself last.
pub fn after(number: usize) -> Option<usize> {
    search(number, |_| u64::MAX)
}

/// The first candidate after `number` in cyclic order that is also in a second set; `mask` returns the words
/// of that set.
fn search(number: usize, mask: impl Fn(usize) -> u64) -> Option<usize> {
    let words = words();
    if words == 1 {
        // The usual case has no loop: the set is rotated so that the thread after `number` is bit 0.
        let set = (candidates(0) & mask(0)).rotate_right(number as u32 + 1);
        return (set != 0).then(|| (number + 1 + set.trailing_zeros() as usize) % 64);
    }
    let set = |(base, set): (usize, u64)| (base, set & mask(base / 64));
    let mut sets = from(number + 1).map(set);
    sets.find(|(_, set)| *set != 0).map(|(base, set)| base + set.trailing_zeros() as usize)
}

/// The candidates in cyclic order from thread `first` on, word by word: the thread of bit 0, and the set. The
/// word of `first` comes twice: its upper part at the beginning, its lower part at the end.
fn from(first: usize) -> impl Iterator<Item = (usize, u64)> {
    let words = words();
    // `first` is at most `64 * words`. A division would take longer than everything else here.
    let first = if first == 64 * words { 0 } else { first };
    let up = u64::MAX << (first % 64);
    (0..=words).map(move |turn| {
        let word = (first / 64 + turn) % words;
        let part = match turn {
            0 => up,
            _ if turn == words => !up,
            _ => u64::MAX,
        };
        (64 * word, candidates(word) & part)
    })
}

/// The default choice: the running thread if it can continue. Otherwise it is the next enabled thread in
/// cyclic order. Waits that cannot be satisfied come last: first threads with a signal to take, then by
/// deadline.
fn default_choice(number: usize, able: bool) -> usize {
    if able {
        return number;
    }
    if let Some(next) = search(number, |word| !SCHED.late.word(word)) {
        return next;
    }
    let due = |t| if SCHED.signalled.has(t) { 0 } else { thread(t).deadline.get() };
    let by_deadline = |&t: &usize| (due(t), cyclic(number, t));
    (0..SCHED.count.get()).filter(|&t| is_candidate(t)).min_by_key(by_deadline).unwrap_or(number)
}

/// The distance from thread `from` to thread `to` in cyclic order.
fn cyclic(from: usize, to: usize) -> usize {
    let count = SCHED.count.get();
    (to + count - from - 1) % count
}

/// The `index`-th thread of a set, in cyclic order from `first` on. The set has `count` threads, all among
/// the first 64.
#[inline]
fn nth_of(set: u64, first: usize, count: usize, index: usize) -> usize {
    // The loop runs up to `count`, which rarely changes: a branch on a random index would be mispredicted.
    let mut set = set.rotate_right(first as u32);
    for passed in 1..count {
        set = if passed <= index { set & set.wrapping_sub(1) } else { set };
    }
    (first + set.trailing_zeros() as usize) % 64
}

/// The thread of choice `index`: `first` is choice 0, and the other candidates follow in cyclic order.
fn nth(first: usize, options: usize, index: usize) -> usize {
    if words() == 1 {
        return nth_of(candidates(0), first, options, index);
    }
    let mut left = index;
    for (base, mut set) in from(first) {
        match left.checked_sub(set.count_ones() as usize) {
            Some(more) => left = more,
            None => {
                for _ in 0..left {
                    set &= set - 1;
                }
                return base + set.trailing_zeros() as usize;
            }
        }
    }
    unreachable!()
}

/// The threads among which a decision chooses.
#[derive(Clone, Copy, Debug)]
pub struct Choices {
    /// The thread of choice 0.
    pub first: usize,
    /// The number of choices.
    pub options: usize,
}

impl Choices {
    /// The thread of a choice.
    #[inline]
    pub fn nth(self, index: usize) -> usize {
        nth(self.first, self.options, index)
    }

    /// The index of a thread among the choices.
    pub fn index_of(self, thread: usize) -> Option<usize> {
        self.iter().position(|choice| choice == thread)
    }

    /// Picks one of the choices that are also in a second set; `mask` returns the words of that set, and
    /// there is at least one such choice. `pick` gets their number and returns the index.
    #[inline]
    pub fn pick(self, mask: impl Fn(usize) -> u64, pick: impl Fn(u64) -> u64) -> usize {
        if words() == 1 {
            let set = candidates(0) & mask(0);
            let count = set.count_ones();
            return nth_of(set, self.first, count as usize, pick(count.into()) as usize);
        }
        let may = |&number: &usize| mask(number / 64) >> (number % 64) & 1 != 0;
        let index = pick(self.iter().filter(may).count() as u64);
        self.iter().filter(may).nth(index as usize).unwrap_or(self.first)
    }

    /// The thread of each choice, in order.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        let one_word = words() == 1;
        let mut set = if one_word { candidates(0).rotate_right(self.first as u32) } else { 0 };
        let (mut base, mut sets) = (self.first, from(self.first));
        (0..self.options).map(move |_| {
            while set == 0
                && let Some(next) = sets.next()
            {
                (base, set) = next;
            }
            let next = base + set.trailing_zeros() as usize;
            set &= set.wrapping_sub(1);
            if one_word { next % 64 } else { next }
        })
    }
}

/// The thread that runs at a step in the first half of a fair tail: a random one. With strict turns, a loop
/// may hold a lock each time the thread that waits for it has its turn; random turns break such a rhythm. The
/// number depends on the step alone, so every replay draws the same.
fn at_random(step: u32) -> Option<usize> {
    if step >= recurrence::turns() {
        return None;
    }
    let drawn = hash::scatter(u64::from(step).wrapping_mul(hash::EMPTY));
    // In one of eight draws, threads whose waits would time out take part.
    let hurried = drawn >> 61 == 0;
    let may = |word: usize| candidates(word) & if hurried { u64::MAX } else { !SCHED.late.word(word) };
    let count: u32 = (0..words()).map(|word| may(word).count_ones()).sum();
    if count == 0 {
        return None;
    }
    let mut left = (((drawn & u64::from(u32::MAX)) * u64::from(count)) >> 32) as u32;
    for word in 0..words() {
        let mut set = may(word);
        if left < set.count_ones() {
            for _ in 0..left {
                set &= set - 1;
            }
            return Some(64 * word + set.trailing_zeros() as usize);
        }
        left -= set.count_ones();
    }
    None
}

/// The thread that takes the step where a rule leaves no choice. The log records nothing, because the rule
/// alone repeats it.
#[cold]
fn without_choice(number: usize, step: u32, able: bool) -> Option<usize> {
    if step >= SCHED.tail.get() {
        if let Some(next) = at_random(step) {
            return Some(next);
        }
        // In the second half of the fair tail, threads take turns.
        let next = search(number, |word| !SCHED.late.word(word)).or_else(|| after(number));
        return Some(next.unwrap_or(number));
    }
    (able && scope::holds(number)).then_some(number)
}

/// Decides which thread takes the step, if there is more than one choice.
#[inline(never)]
pub fn decide(number: usize, step: u32, able: bool, options: usize) -> usize {
    at_choice(step);
    if step >= SCHED.plain_until.get()
        && let Some(next) = without_choice(number, step, able)
    {
        return next;
    }
    let first = default_choice(number, able);
    let options = if options > MAX_OPTIONS {
        wire_log::note(Note::TooManyChoices);
        MAX_OPTIONS
    } else {
        options
    };
    let choices = Choices { first, options };
    let planned = plan::planned(step, DecisionKind::Thread, options, |thread| choices.index_of(thread));
    let next = match planned {
        Some(choice) => choices.nth(choice),
        None => policy::thread(choices, step, able),
    };
    if plan::logs_decisions() || planned.is_some() {
        let chosen = planned.or_else(|| choices.index_of(next)).unwrap_or(0);
        let decision = Decision {
            step,
            kind: DecisionKind::Thread,
            options: options as u16,
            chosen: chosen as u16,
            preemptive: able,
            hash: SCHED.hash.get(),
        };
        if dependence::wanted() && plan::logs_decisions() {
            dependence::choices(first);
        }
        events::decision(&decision, next as u16);
    }
    next
}

/// The waiter at position `index` in the order of arrival.
fn waiter(queue: usize, mask: u32, index: usize) -> usize {
    let (mut found, mut after) = (0, 0);
    for _ in 0..=index {
        let waiting = threads().filter(|(_, t)| t.waits_in(queue) && t.mask.get() & mask != 0);
        let next = waiting.filter(|(_, t)| t.ticket.get() > after).min_by_key(|(_, t)| t.ticket.get());
        if let Some((number, t)) = next {
            (found, after) = (number, t.ticket.get());
        }
    }
    found
}

/// Chooses the waiter of `queue` to wake; there is at least one. With two or more waiters this is a decision
/// of its own.
pub fn choose_waiter(queue: usize, mask: u32) -> usize {
    choose_woken(waiters(queue, mask), |index| waiter(queue, mask, index))
}

/// Chooses one of `count` threads to wake; there is at least one. `nth` returns them in order, the default
/// first.
pub fn choose_woken(count: usize, nth: impl Fn(usize) -> usize) -> usize {
    let options = count.min(MAX_OPTIONS);
    if options < 2 {
        return nth(0);
    }
    at_choice(SCHED.step.get() + 1);
    wire_log::note(Note::OtherChoice);
    let step = next_step();
    let find = |thread| (0..options).find(|&index| nth(index) == thread);
    let planned = plan::planned(step, DecisionKind::Waiter, options, find)
        .or_else(|| script_state::promised(DecisionKind::Waiter, find));
    let chosen = match planned {
        Some(choice) => choice,
        None => policy::waiter(options),
    };
    let decision = Decision {
        step,
        kind: DecisionKind::Waiter,
        options: options as u16,
        chosen: chosen as u16,
        preemptive: false,
        hash: SCHED.hash.get(),
    };
    SCHED.hash.set(hash::fold(SCHED.hash.get(), me() as u16, Op::Wake as u8, options as u16));
    dependence::outcome(1 + chosen as u64);
    let woken = nth(chosen);
    events::decision(&decision, woken as u16);
    woken
}

/// A decision that is not about threads, with at least two choices. It is a step of its own, at which no
/// other thread can run. Schedules refer to a choice by a name: `find` returns the index of a name, and
/// `name` returns the name of an index.
pub fn choose_value(
    kind: DecisionKind,
    options: usize,
    find: impl Fn(usize) -> Option<usize>,
    name: impl Fn(usize) -> usize,
) -> usize {
    at_choice(SCHED.step.get() + 1);
    wire_log::note(Note::OtherChoice);
    let step = next_step();
    if step >= SCHED.tail.get() {
        // As in `decide`, the fair tail leaves no choice: it takes the default.
        return 0;
    }
    let planned = plan::planned(step, kind, options, &find).or_else(|| script_state::promised(kind, &find));
    let chosen = match planned {
        Some(choice) => choice,
        None => policy::value(kind, options),
    };
    let decision = Decision {
        step,
        kind,
        options: options as u16,
        chosen: chosen as u16,
        preemptive: false,
        hash: SCHED.hash.get(),
    };
    // The mark lies above the codes of operations. The hash includes the chosen value, because no later step
    // has to reveal it.
    let mark = 0x80 | kind as u8;
    SCHED.hash.set(hash::fold(SCHED.hash.get(), chosen as u16, mark, options as u16));
    dependence::outcome(1 + chosen as u64);
    events::decision(&decision, name(chosen) as u16);
    chosen
}
