//! Small artificial programs for tests: run under one schedule, steered as by the runtime, or under all
//! schedules.

use crate::analysis::seeds;
use heisen_trace::{Deed, End, Execution, Hold, Op, Touch, TouchKind};
use std::collections::{BTreeSet, HashMap};

/// One instruction. Locks, variables and the condition variable are numbered from 0 each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Does {
    Lock(u64),
    Unlock(u64),
    Read(u64),
    Write(u64),
    /// Waits unless the variable was written. The thread holds the lock.
    WaitUnless(u64, u64),
    Wait(u64),
    Signal,
}

/// Threads from 1 on, which thread 0 creates and joins, group by group.
#[derive(Clone, Debug)]
pub struct Program {
    pub groups: Vec<Vec<Vec<Does>>>,
}

const LOCKS: u64 = 0x1000;
const CONDITION: u64 = 0x2000;
const VARIABLES: u64 = 0x3000;
const HANDLES: u64 = 0x4000;

/// A state: the position of each thread, the waiting threads, those about to relock, lock owners, written
/// variables.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct State {
    at: Vec<usize>,
    waits: BTreeSet<(usize, u64)>,
    relocks: BTreeSet<(usize, u64)>,
    owners: BTreeSet<(u64, usize)>,
    written: BTreeSet<u64>,
}

/// The result of a run: the touches, whether it hung, and its accesses in order.
#[derive(Clone, Debug)]
pub struct Ran {
    pub execution: Execution,
    pub hung: bool,
    pub accesses: Vec<Access>,
}

/// For each thread its next operation and object.
type Next<'a> = dyn Fn(usize) -> Option<(u8, u64)> + 'a;
/// An access: thread, index of the instruction, variable, and whether it writes.
pub type Access = (usize, usize, u64, bool);

impl Program {
    pub fn of(threads: Vec<Vec<Does>>) -> Program {
        Program { groups: vec![threads] }
    }

    fn thread(&self, number: usize) -> (usize, &[Does]) {
        let all = self.groups.iter().enumerate().flat_map(|(group, ts)| ts.iter().map(move |t| (group, t)));
        let (group, thread) = all.into_iter().nth(number - 1).expect("a thread");
        (group, thread)
    }

    fn count(&self) -> usize {
        self.groups.iter().map(Vec::len).sum()
    }

    fn start(&self) -> State {
        State { at: vec![0; self.count() + 1], ..State::default() }
    }

    /// The group that runs: the first that has not ended.
    fn group(&self, state: &State) -> usize {
        let left = |number: &usize| state.at[*number] < self.thread(*number).1.len();
        let busy = |number: &usize| left(number) || state.relocks.iter().any(|(t, _)| t == number);
        let waits = |number: &usize| state.waits.iter().any(|(t, _)| t == number);
        let first = (1..=self.count()).filter(|n| busy(n) || waits(n)).map(|n| self.thread(n).0).min();
        first.unwrap_or(self.groups.len())
    }

    fn enabled(&self, state: &State) -> Vec<usize> {
        let group = self.group(state);
        let free = |lock: u64| !state.owners.iter().any(|(l, _)| *l == lock);
        (1..=self.count())
            .filter(|&number| {
                let (of, code) = self.thread(number);
                if of != group || state.waits.iter().any(|(t, _)| *t == number) {
                    return false;
                }
                if let Some((_, lock)) = state.relocks.iter().find(|(t, _)| *t == number) {
                    return free(*lock);
                }
                match code.get(state.at[number]) {
                    None => false,
                    Some(Does::Lock(lock)) => free(*lock),
                    Some(_) => true,
                }
            })
            .collect()
    }

    /// The next operation of a thread and its object, for holds.
    fn next(&self, state: &State, number: usize) -> Option<(u8, u64)> {
        if state.relocks.iter().any(|(t, _)| *t == number) || self.thread(number).0 != self.group(state) {
            return None;
        }
        Some(match self.thread(number).1.get(state.at[number])? {
            Does::Lock(lock) => (Op::Lock as u8, LOCKS + 8 * lock),
            Does::Unlock(lock) => (Op::Unlock as u8, LOCKS + 8 * lock),
            Does::Read(v) | Does::Write(v) => (0, VARIABLES + 8 * v),
            Does::WaitUnless(v, _) if state.written.contains(v) => return None,
            Does::WaitUnless(..) | Does::Wait(_) => (Op::CondWait as u8, CONDITION),
            Does::Signal => (Op::CondSignal as u8, CONDITION),
        })
    }

    /// Takes a step. Returns its touches.
    fn step(&self, state: &mut State, number: usize) -> Vec<(TouchKind, u8, u64)> {
        let write = |op: Op, object| (TouchKind::Write, op as u8, object);
        if let Some(&(t, lock)) = state.relocks.iter().find(|(t, _)| *t == number) {
            state.relocks.remove(&(t, lock));
            state.owners.insert((lock, number));
            return vec![write(Op::Relock, LOCKS + 8 * lock)];
        }
        let does = self.thread(number).1[state.at[number]];
        state.at[number] += 1;
        match does {
            Does::Lock(lock) => {
                state.owners.insert((lock, number));
                vec![write(Op::Lock, LOCKS + 8 * lock)]
            }
            Does::Unlock(lock) => {
                state.owners.remove(&(lock, number));
                vec![write(Op::Unlock, LOCKS + 8 * lock), (TouchKind::Write, 0, LOCKS + 8 * lock)]
            }
            Does::Read(v) => vec![(TouchKind::Read, 0, VARIABLES + 8 * v)],
            Does::Write(v) => {
                state.written.insert(v);
                vec![(TouchKind::Write, 0, VARIABLES + 8 * v)]
            }
            Does::WaitUnless(v, _) if state.written.contains(&v) => vec![],
            Does::WaitUnless(_, lock) | Does::Wait(lock) => {
                state.owners.remove(&(lock, number));
                state.waits.insert((number, lock));
                vec![write(Op::CondWait, CONDITION), (TouchKind::Write, 0, LOCKS + 8 * lock)]
            }
            Does::Signal => {
                let mut touches = vec![write(Op::CondSignal, CONDITION)];
                if let Some(woken) = state.waits.pop_first() {
                    touches.push((TouchKind::Enables, 0, woken.0 as u64));
                    state.relocks.insert(woken);
                }
                touches
            }
        }
    }

    /// Runs the program. `choose` gets the enabled threads, the last one to run first, and the next operation
    /// of each.
    fn run(&self, mut choose: impl FnMut(&[usize], &Next<'_>, &[Touch]) -> usize) -> Ran {
        let mut state = self.start();
        let mut touches: Vec<Touch> = Vec::new();
        let (mut accesses, mut group, mut last, mut step) = (Vec::new(), None, 1, 0);
        let mut enter = |touches: &mut Vec<Touch>, now: usize, step: u32| {
            let from = group.map_or(0, |g: usize| g + 1);
            for done in group.into_iter().chain(from..now) {
                for number in (1..=self.count()).filter(|n| self.thread(*n).0 == done) {
                    let object = HANDLES + 8 * number as u64;
                    let (kind, op) = (TouchKind::Write, Op::Join as u8);
                    touches.push(Touch { step, thread: number as u16, kind, op: 0, word: object });
                    touches.push(Touch { step, thread: 0, kind, op, word: object });
                }
            }
            for number in (1..=self.count()).filter(|n| self.thread(*n).0 == now) {
                let kind = TouchKind::Enables;
                touches.push(Touch { step, thread: 0, kind, op: 0, word: number as u64 });
            }
            group = Some(now);
        };
        let mut entered = None;
        loop {
            let now = self.group(&state);
            if entered != Some(now) && now < self.groups.len() {
                enter(&mut touches, now, step);
                entered = Some(now);
            }
            let mut enabled = self.enabled(&state);
            if enabled.is_empty() {
                let hung = now < self.groups.len();
                let end = if hung { End::Deadlock } else { End::Exit(0) };
                let execution = Execution {
                    steps: step,
                    threads: self.count() as u32 + 1,
                    decisions: vec![],
                    touches,
                    end,
                    notes: vec![],
                    diverged: None,
                    fingerprint: None,
                    counted: vec![],
                    symbolic: None,
                };
                return Ran { execution, hung, accesses };
            }
            // The default policy: the running thread continues, otherwise the next in cyclic order.
            enabled.sort_by_key(|&t| (t + self.count() + 1 - last) % (self.count() + 1));
            last = choose(&enabled, &|number| self.next(&state, number), &touches);
            step += 1;
            let index = state.at[last];
            for (kind, op, word) in self.step(&mut state, last) {
                touches.push(Touch { step, thread: last as u16, kind, op, word });
                if word & VARIABLES == VARIABLES && op == 0 {
                    accesses.push((last, index, word, kind == TouchKind::Write));
                }
            }
        }
    }

    /// Runs one thread after the other, as far as possible.
    pub fn default_run(&self) -> Ran {
        self.run(|enabled, _, _| enabled[0])
    }

    /// Runs the program under a random schedule.
    pub fn random_run(&self, seed: u64) -> Ran {
        let mut number = 0;
        self.run(|enabled, _, _| {
            number += 1;
            enabled[seeds::nth(seed, number) as usize % enabled.len()]
        })
    }

    /// Runs the program with these holds, steered as by the runtime.
    pub fn steered(&self, holds: &[Hold]) -> Ran {
        let mut last = 0;
        self.run(|enabled, next, touches| {
            let done = |deed: &Deed| {
                let same = |t: &&Touch| {
                    (t.thread, t.op, t.word) == (deed.thread, deed.op, deed.object)
                        && t.kind != TouchKind::Enables
                };
                touches.iter().filter(same).count() as u32
            };
            let is_next = |deed: &Deed| {
                done(deed) + 1 == deed.nth && next(deed.thread.into()) == Some((deed.op, deed.object))
            };
            let held = |number: usize| {
                holds.iter().any(|hold| {
                    usize::from(hold.at.thread) == number
                        && is_next(&hold.at)
                        && done(&hold.until) < hold.until.nth
                        && (hold.past || !is_next(&hold.until))
                })
            };
            let takes_part = |number: usize| holds.iter().any(|hold| usize::from(hold.at.thread) == number);
            let free: Vec<usize> = enabled.iter().copied().filter(|&number| !held(number)).collect();
            let goes_on = free.first().copied().filter(|&first| first == last && first == enabled[0]);
            last = goes_on
                .or_else(|| free.iter().copied().find(|&number| takes_part(number)))
                .or_else(|| free.first().copied())
                .unwrap_or(enabled[0]);
            last
        })
    }

    /// Whether some schedule hangs.
    pub fn can_hang(&self) -> bool {
        let mut seen = BTreeSet::new();
        let mut left = vec![self.start()];
        while let Some(state) = left.pop() {
            let enabled = self.enabled(&state);
            if enabled.is_empty() && self.group(&state) < self.groups.len() {
                return true;
            }
            for number in enabled {
                let mut next = state.clone();
                self.step(&mut next, number);
                if seen.insert(next.clone()) {
                    left.push(next);
                }
            }
        }
        false
    }

    /// The accesses of all executions, each in its order.
    pub fn all_orders(&self) -> Vec<Vec<Access>> {
        let mut all = Vec::new();
        // Prefixes as lists of choices. Each is run again from the start: the programs are small.
        let mut left: Vec<Vec<usize>> = vec![vec![]];
        while let Some(prefix) = left.pop() {
            let (mut at, mut more) = (0, Vec::new());
            let ran = self.run(|enabled, _, _| {
                at += 1;
                if at > prefix.len() {
                    more.push(enabled.to_vec());
                    return enabled[0];
                }
                prefix[at - 1]
            });
            all.push(ran.accesses);
            let mut path = prefix.clone();
            for enabled in more {
                for &other in &enabled[1..] {
                    left.push(path.iter().copied().chain([other]).collect());
                }
                path.push(enabled[0]);
            }
        }
        all
    }
}

/// Random numbers.
pub struct Chance {
    seed: u64,
    drawn: u64,
}

impl Chance {
    pub fn new(seed: u64) -> Chance {
        Chance { seed, drawn: 0 }
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.drawn += 1;
        (seeds::nth(self.seed, self.drawn) >> 16) % bound
    }
}

/// By the index of an instruction: the number of its operation among equal ones of the thread, its `nth`.
pub fn nth(code: &[Does]) -> HashMap<usize, u32> {
    let mut counts: HashMap<Does, u32> = HashMap::new();
    let object = |does: Does| match does {
        // A hold does not distinguish reads from writes.
        Does::Write(v) => Does::Read(v),
        other => other,
    };
    let count = |(index, &does): (usize, &Does)| {
        let count = counts.entry(object(does)).or_default();
        *count += 1;
        (index, *count)
    };
    code.iter().enumerate().map(count).collect()
}
