//! Generates small random toy programs, each from a seed.

use crate::toy::oracle::{Outcome, schedules};
use crate::toy::program::Do::{self, *};
use crate::toy::program::{OBJECTS, Program};

/// A random number generator: SplitMix64.
pub struct Numbers(pub u64);

impl Numbers {
    /// The next number, below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n as u64) as usize
    }
}

/// The kinds of operations in a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationSet {
    /// Variables, locks, condition variables, threads that are created and joined, choices that touch
    /// nothing, and ends of the process.
    Exact,
    /// Also semaphores that may already be above 0 when posted, choices that touch different objects, and
    /// failures that another thread may prevent. There a reduction cannot always know what to explore, so
    /// some executions may be blocked.
    Any,
    /// As `Exact`, plus operations that may fail, as a third of all: attempts at locks and semaphores, and
    /// compare-exchanges. In some programs as many threads as the barrier needs meet there.
    Attempts,
    /// As `Attempts`, but more threads than the barrier needs may come, and a thread may ask whether it was
    /// the last.
    Crowds,
}

/// The program of a seed with all its schedules. It is the first program drawn that has at most `most`
/// schedules.
pub fn program(seed: u64, taste: OperationSet, most: usize) -> (Program, Vec<Outcome>) {
    let mut numbers = Numbers(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
    loop {
        let program = draw(&mut numbers, taste);
        if let Some(all) = schedules(&program, most) {
            return (program, all);
        }
    }
}

fn draw(numbers: &mut Numbers, taste: OperationSet) -> Program {
    // Some programs consist mostly of waits.
    let waits = numbers.below(4) == 0;
    let threads = 2 + numbers.below(3);
    let length = 1 + numbers.below(6);
    let objects = 1 + numbers.below(OBJECTS);
    let attempts = matches!(taste, OperationSet::Attempts | OperationSet::Crowds);
    // The number of threads that the barrier needs, and how often they meet.
    let meets = if attempts { (1 + numbers.below(threads), numbers.below(3)) } else { (0, 0) };
    let mut program = Vec::new();
    for thread in 0..threads {
        let mut list: Vec<Do> = Vec::new();
        let mut held: Vec<usize> = Vec::new();
        for _ in 0..1 + numbers.below(length) {
            let object = numbers.below(objects);
            let kinds = if taste == OperationSet::Any { 23 } else { 18 };
            let kind = match numbers.below(kinds + 9 * usize::from(attempts)) {
                1..9 if waits => 9 + numbers.below(6),
                kind => kind,
            };
            let next = match kind {
                18..21 if attempts => Cas(object, numbers.below(3) as u64, 1 + numbers.below(2) as u64),
                21..23 if attempts => Attempt(object),
                23..25 if attempts => TryWait(object),
                25.. if attempts => Post(object),
                0 => Step,
                1..4 => Load(object),
                4..6 => Store(object),
                6 => Add(object),
                7 => Put(object, numbers.below(3) as u64),
                8 if taste == OperationSet::Any => Fail(object, 1 + numbers.below(2) as u64),
                8 => Put(object, 1),
                9 | 10 if !held.contains(&object) => {
                    held.push(object);
                    Lock(object)
                }
                9..12 => held.pop().map_or(Step, Unlock),
                12 if held.contains(&object) => CondWait(numbers.below(objects), object),
                12 | 13 => Signal(object),
                14 => Broadcast(object),
                15 if numbers.below(3) == 0 => Exit,
                15 => Choose(2),
                // Only the first thread creates threads. Any thread may join another at any place.
                16 if thread == 0 => Spawn(1 + numbers.below(threads - 1)),
                16 | 17 => match numbers.below(threads) {
                    other if other != thread => Join(other),
                    _ => Step,
                },
                18 | 19 => Post(object),
                20 => Wait(object),
                21 => Try(object),
                _ => Doze,
            };
            list.push(next);
        }
        // Most programs release their locks.
        if numbers.below(4) > 0 {
            list.extend(held.into_iter().rev().map(Unlock));
        }
        if thread < meets.0 || taste == OperationSet::Crowds {
            for _ in 0..meets.1 {
                let at = numbers.below(list.len() + 1);
                let uses = taste == OperationSet::Crowds && numbers.below(4) == 0;
                list.insert(at, if uses { Serial(0, meets.0) } else { Meet(0, meets.0) });
            }
        }
        program.push(list);
    }
    program
}
