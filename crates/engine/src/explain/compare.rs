//! Compares a failing execution with a passing one: the differential projection of Cortex (PPoPP'16, section 3.4).
//!
//! The common beginning is left out. Of the rest, what matters are the operations that only one execution has, and the
//! data flows that differ: reads that see another write. Pure: the executions are lists of operations.

use crate::explain::necessary::{Key, Numbering};
use heisen_trace::explanation::{Compared, Comparison, Moment, Reduction};
use heisen_trace::vector_clock::Clock;
use std::collections::HashMap;

/// One operation of a recorded execution.
#[derive(Clone, Debug)]
pub(crate) struct Observed {
    pub(crate) moment: Moment,
    /// The address of its object.
    pub(crate) address: u64,
    /// The address of the code.
    pub(crate) pc: u64,
    /// Whether its place is in the program's own code.
    pub(crate) own: bool,
    /// Whether it takes (`true`) or releases (`false`) a lock.
    pub(crate) lock: Option<bool>,
    /// Whether another thread was preempted just before it.
    pub(crate) preempts: bool,
    /// The function.
    pub(crate) function: String,
    /// The functions and places of the stack, if it was taken.
    pub(crate) stack: Vec<String>,
    /// The vector clock.
    pub(crate) clock: Clock,
}

/// An execution with the identity of its operations and the write that each read saw.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) observed: Vec<Observed>,
    pub(crate) keys: Vec<Key>,
    /// By index: for an access that reads, the index of the write that it saw. `None` for the initial value.
    pub(crate) from: Vec<Option<usize>>,
    at: HashMap<Key, usize>,
}

impl Flow {
    pub(crate) fn new(observed: Vec<Observed>) -> Flow {
        let mut numbering = Numbering::default();
        let mut written: HashMap<u64, usize> = HashMap::new();
        let (mut keys, mut from) = (Vec::new(), Vec::new());
        for (index, event) in observed.iter().enumerate() {
            keys.push(numbering.key(event.moment.thread.0, event.moment.op, event.address));
            from.push(if event.moment.is_access() { written.get(&event.address).copied() } else { None });
            if event.moment.writes() {
                written.insert(event.address, index);
            }
        }
        let at = keys.iter().enumerate().map(|(index, key)| (*key, index)).collect();
        Flow { observed, keys, from, at }
    }

    /// The addresses that some thread accesses in a library of the language: they belong to the library.
    pub(crate) fn foreign(&self) -> Vec<u64> {
        let accesses = self.observed.iter().filter(|event| event.moment.is_access() && !event.own);
        accesses.map(|event| event.address).collect()
    }

    /// The index of the operation with this key.
    pub(crate) fn find(&self, key: &Key) -> Option<usize> {
        self.at.get(key).copied()
    }

    pub(crate) fn moment(&self, index: usize) -> &Moment {
        &self.observed[index].moment
    }

    /// Whether the operation is an access that reads.
    pub(crate) fn reads(&self, index: usize) -> bool {
        use heisen_trace::Op;
        let moment = self.moment(index);
        moment.is_access() && !matches!(moment.op, Op::MemWrite | Op::AtomicStore)
    }

    /// The key of the write that a read saw. `None` if it saw the initial value.
    fn seen(&self, index: usize) -> Option<Key> {
        self.from[index].map(|write| self.keys[write])
    }

    /// Whether a read sees another write than the same read of the other execution, or the other has no such read.
    pub(crate) fn flow_differs(&self, index: usize, other: &Flow) -> bool {
        self.reads(index)
            && other.find(&self.keys[index]).is_none_or(|there| other.seen(there) != self.seen(index))
    }

    /// The operations from `start` on, compared with the other execution.
    pub(crate) fn compared(&self, other: &Flow, start: usize) -> Vec<Compared> {
        let locks = self.locks();
        let rest = (start..self.observed.len()).zip(locks.into_iter().skip(start));
        rest.map(|(index, locks)| {
            let there = other.find(&self.keys[index]);
            let Observed { preempts, function, stack, clock, .. } = &self.observed[index];
            Compared {
                moment: self.moment(index).clone(),
                only_here: there.is_none(),
                from: self.from[index]
                    .filter(|_| self.reads(index))
                    .and_then(|write| write.checked_sub(start)),
                flow_differs: self.flow_differs(index, other),
                partner: there.and_then(|there| there.checked_sub(start)),
                preempts: *preempts,
                function: function.clone(),
                stack: stack.clone(),
                locks,
                clock: clock.clone(),
            }
        })
        .collect()
    }

    /// By index: the names of the locks that the thread holds just before the operation.
    fn locks(&self) -> Vec<Vec<String>> {
        let mut held: HashMap<u16, Vec<(u64, &str)>> = HashMap::new();
        let mut all = Vec::with_capacity(self.observed.len());
        for event in &self.observed {
            let mine = held.entry(event.moment.thread.0).or_default();
            all.push(mine.iter().map(|(_, name)| (*name).to_owned()).collect());
            match event.lock {
                Some(true) => mine.push((event.address, &event.moment.object)),
                Some(false) => {
                    if let Some(at) = mine.iter().rposition(|(address, _)| *address == event.address) {
                        mine.remove(at);
                    }
                }
                None => {}
            }
        }
        all
    }
}

/// Both executions from their first difference on, each with what differs from the other.
pub(crate) fn comparison(one: &Flow, other: &Flow) -> Comparison {
    let common = common_prefix(one, other);
    Comparison {
        executions: [one.compared(other, common), other.compared(one, common)],
        common,
        reductions: [reduction(one, other), reduction(other, one)],
    }
}

/// How many operations both executions have in common at their beginning.
pub(crate) fn common_prefix(one: &Flow, other: &Flow) -> usize {
    let value = |flow: &Flow, index: usize| flow.moment(index).value;
    let same =
        |&index: &usize| one.keys[index] == other.keys[index] && value(one, index) == value(other, index);
    (0..one.keys.len().min(other.keys.len())).take_while(same).count()
}

/// How much of the failing execution differs.
pub(crate) fn reduction(failing: &Flow, passing: &Flow) -> Reduction {
    let start = common_prefix(failing, passing);
    let all = 0..failing.observed.len();
    let flows = all.clone().filter(|&i| failing.reads(i) && failing.from[i].is_some()).count();
    let differing: Vec<usize> = (start..all.end).filter(|&i| failing.flow_differs(i, passing)).collect();
    let only_here = |index: usize| index >= start && passing.find(&failing.keys[index]).is_none();
    let mut shown: Vec<bool> = all.clone().map(only_here).collect();
    for &read in &differing {
        shown[read] = true;
        if let Some(write) = failing.from[read] {
            shown[write] = true;
        }
    }
    Reduction {
        events: all.end,
        events_shown: shown.iter().filter(|&&shown| shown).count(),
        flows,
        flows_shown: differing.iter().filter(|&&read| failing.from[read].is_some()).count(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use heisen_trace::{Op, ThreadId};

    /// An access of a variable, such as `(1, 'r', "x", 0)`; `l` and `u` lock and unlock, `c` waits on a condition
    /// variable, `a` locks again after that.
    pub(crate) fn execution(events: &[(u16, char, &str, u64)]) -> Flow {
        let observed = events.iter().zip(1..).map(|(&(thread, what, object, value), step)| {
            let op = match what {
                'r' => Op::MemRead,
                'w' => Op::MemWrite,
                'l' => Op::Lock,
                'c' => Op::CondWait,
                'a' => Op::Relock,
                _ => Op::Unlock,
            };
            let access = matches!(what, 'r' | 'w');
            let moment = Moment {
                step,
                thread: ThreadId(thread),
                op,
                object: object.to_owned(),
                value: access.then_some(value),
                text: if access { value.to_string() } else { String::new() },
                size: if access { 4 } else { 0 },
                place: format!("p.c:{step}"),
            };
            let address = object.bytes().fold(0, |hash, byte| hash * 256 + u64::from(byte));
            let lock = (!access && what != 'c').then_some(matches!(what, 'l' | 'a'));
            let (preempts, function, stack, clock) = (false, String::new(), Vec::new(), Vec::new());
            Observed { moment, address, pc: 0, own: true, lock, preempts, function, stack, clock }
        });
        Flow::new(observed.collect())
    }

    #[test]
    fn flows_that_differ_are_those_of_reads_that_see_another_write() {
        let failing = execution(&[(0, 'w', "x", 1), (1, 'r', "x", 1), (2, 'w', "x", 2), (0, 'r', "x", 2)]);
        let passing = execution(&[(0, 'w', "x", 1), (2, 'w', "x", 2), (1, 'r', "x", 2), (0, 'r', "x", 2)]);
        assert_eq!(common_prefix(&failing, &passing), 1);
        let differs: Vec<bool> = (0..4).map(|i| failing.flow_differs(i, &passing)).collect();
        assert_eq!(differs, [false, true, false, false]);
        let counted = reduction(&failing, &passing);
        assert_eq!((counted.events, counted.events_shown, counted.flows, counted.flows_shown), (4, 2, 2, 1));
    }

    #[test]
    fn operations_of_one_execution_only_are_marked() {
        let failing = execution(&[(1, 'r', "x", 0), (1, 'w', "y", 1)]);
        let passing = execution(&[(1, 'r', "x", 0)]);
        let compared = failing.compared(&passing, 0);
        assert_eq!(compared.iter().map(|c| c.only_here).collect::<Vec<_>>(), [false, true]);
        assert_eq!(common_prefix(&failing, &passing), 1);
    }

    #[test]
    fn locks_are_held_from_their_acquisition_to_their_release() {
        let one = execution(&[
            (1, 'l', "m", 0),
            (1, 'w', "x", 1),
            (2, 'w', "y", 1),
            (1, 'u', "m", 0),
            (1, 'r', "x", 1),
        ]);
        let locks: Vec<String> = one.locks().iter().map(|locks| locks.concat()).collect();
        assert_eq!(locks, ["", "m", "", "m", ""]);
    }

    #[test]
    fn both_executions_are_compared_from_the_first_difference_on() {
        let one = execution(&[(0, 'w', "x", 1), (1, 'r', "x", 1), (2, 'w', "x", 2)]);
        let other = execution(&[(0, 'w', "x", 1), (2, 'w', "x", 2), (1, 'r', "x", 2)]);
        let compared = comparison(&one, &other);
        assert_eq!(compared.common, 1);
        let partners = |events: &[Compared]| events.iter().map(|event| event.partner).collect::<Vec<_>>();
        assert_eq!(partners(&compared.executions[0]), [Some(1), Some(0)]);
        assert_eq!(compared.executions[1][1].from, Some(0));
    }
}
