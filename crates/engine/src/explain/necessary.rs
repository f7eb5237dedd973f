//! Finds the necessary orderings of a failure: the smallest set of "this operation before that one" that no passing
//! execution has.
//!
//! The failing execution has many pairs of operations of two threads on one object. Each passing execution near it has
//! some of these pairs in another order. A set of pairs of which each passing execution breaks at least one is a *hitting
//! set*. The smallest such set explains the failure, and each of its pairs is necessary: since no smaller set will do,
//! there is a passing execution that has this pair in the opposite order, and no other. Pure: executions are lists of
//! operations.

use crate::explain::close_up::takes;
use crate::process::slots::Event;
use heisen_trace::Op;
use std::collections::{BTreeMap, HashMap, HashSet};

/// What an operation is, whatever the schedule: thread, operation, address, and its number among equal ones.
pub(crate) type Key = (u16, u8, u64, u32);

/// Thread, operation and address of an operation.
pub(crate) type Name = (u16, u8, u64);

/// Numbers the operations of an execution.
#[derive(Debug, Default)]
pub(crate) struct Numbering(HashMap<Name, u32>);

impl Numbering {
    /// The key of the next operation.
    pub(crate) fn key(&mut self, thread: u16, op: Op, address: u64) -> Key {
        let nth = self.0.entry((thread, op as u8, address)).or_default();
        *nth += 1;
        (thread, op as u8, address, *nth)
    }
}

/// Which events of a log are operations. Where accesses are logged, the scheduling point before an access is not one. That
/// a thread frees or unmaps memory is one if another thread uses that memory.
pub(crate) fn operations<T>(log: &[T], event: impl Fn(&T) -> &Event) -> impl Iterator<Item = &T> {
    let accesses = log.iter().any(|line| event(line).access.is_some());
    let shared = shared_blocks(log.iter().map(&event));
    log.iter().filter(move |line| {
        let event = event(line);
        match event.op {
            op if op.ends_memory() => shared.contains(&event.object),
            _ => !accesses || event.access.is_some() || !event.op.is_access(),
        }
    })
}

/// The memory that one thread frees or unmaps and another one uses, or ends as well, by its address.
fn shared_blocks<'a>(events: impl Iterator<Item = &'a Event> + Clone) -> HashSet<u64> {
    let mut blocks: BTreeMap<u64, (u64, HashSet<u16>)> = BTreeMap::new();
    for event in events.clone().filter(|event| event.op.ends_memory()) {
        let (bytes, threads) = blocks.entry(event.object).or_default();
        *bytes = event.ended.max(*bytes);
        threads.insert(event.thread.0);
    }
    for event in events {
        if let Some((start, (bytes, threads))) = blocks.range_mut(..=event.object).next_back()
            && event.object - start < *bytes
        {
            threads.insert(event.thread.0);
        }
    }
    blocks.into_iter().filter(|(_, (_, threads))| threads.len() > 1).map(|(start, _)| start).collect()
}

/// One operation.
#[derive(Clone, Copy, Debug)]
struct Operation {
    key: Key,
    /// Whether it is an access of memory rather than a call.
    access: bool,
    /// Whether two of them on one object conflict: it writes, or it is a call that changes the object.
    writes: bool,
    /// Whether it releases a lock (`Some(false)`), or tries in vain to acquire one (`Some(true)`). These two conflict
    /// with each other. Otherwise the acquisition of a lock stands for both, since its release comes after it anyway.
    lock: Option<bool>,
    /// If it frees or unmaps memory: the size of the memory.
    ended: u64,
}

impl Operation {
    /// Whether it ends the memory that another thread's operation uses.
    fn ends(&self, other: &Operation) -> bool {
        self.key.0 != other.key.0 && other.ended == 0 && other.key.2.wrapping_sub(self.key.2) < self.ended
    }
}

/// The operations of an execution.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    operations: Vec<Operation>,
    at: HashMap<Key, usize>,
}

impl Log {
    pub(crate) fn of(events: &[Event]) -> Log {
        let mut numbering = Numbering::default();
        let operation = |event: &Event| {
            let key = numbering.key(event.thread.0, event.op, event.object);
            let access = event.access.is_some();
            let ordered =
                event.object != 0 && !matches!(event.op, Op::Create | Op::Join | Op::Start | Op::End);
            let writes = if access {
                !matches!(event.op, Op::MemRead | Op::AtomicLoad)
            } else {
                ordered && takes(event) != Some(false)
            };
            let lock = match takes(event) {
                Some(false) => Some(false),
                Some(true) if !event.ok => Some(true),
                _ => None,
            };
            Operation { key, access, writes, lock, ended: event.ended }
        };
        Log::new(operations(events, |event| event).map(operation).collect())
    }

    fn new(operations: Vec<Operation>) -> Log {
        let at = operations.iter().enumerate().map(|(index, operation)| (operation.key, index)).collect();
        Log { operations, at }
    }

    /// Whether the execution has this operation.
    pub(crate) fn has(&self, key: &Key) -> bool {
        self.at.contains_key(key)
    }

    fn conflict(&self, one: usize, other: usize) -> bool {
        let (one, other) = (&self.operations[one], &self.operations[other]);
        one.key.0 != other.key.0
            && one.key.2 == other.key.2
            && one.access == other.access
            && match (one.lock, other.lock) {
                (Some(one), Some(other)) => one != other,
                (Some(false), None) | (None, Some(false)) => false,
                _ if one.access => one.writes || other.writes,
                _ => one.writes && other.writes,
            }
    }

    /// The pairs of conflicting operations with no other write of the object in between. A read that a thread does before
    /// it writes itself also counts with the next write: the thread may write only because of what it read.
    fn pairs(&self) -> Vec<(usize, usize)> {
        // The operations since the last write, and the reads of its thread before it.
        let mut recent: HashMap<u64, (Vec<usize>, Vec<usize>)> = HashMap::new();
        let mut pairs = Vec::new();
        for (index, operation) in self.operations.iter().enumerate() {
            let (before, earlier) = recent.entry(operation.key.2).or_default();
            let both = earlier.iter().chain(before.iter());
            pairs.extend(both.filter(|&&other| self.conflict(other, index)).map(|&other| (other, index)));
            if operation.writes && operation.lock.is_none() {
                before.retain(|&other| {
                    let other = &self.operations[other];
                    other.key.0 == operation.key.0 && !other.writes
                });
                *earlier = std::mem::take(before);
            }
            before.push(index);
        }
        pairs.extend(self.uses_after_end());
        pairs
    }

    /// Each operation that ends memory, with the later operations of other threads on that memory.
    fn uses_after_end(&self) -> impl Iterator<Item = (usize, usize)> {
        let ends = self.operations.iter().enumerate().filter(|(_, operation)| operation.ended > 0);
        ends.flat_map(|(index, end)| {
            let later = index + 1..self.operations.len();
            later.filter(|&other| end.ends(&self.operations[other])).map(move |other| (index, other))
        })
    }
}

impl Log {
    /// The last operation, each time with the last one of another thread before it. What the other thread did may matter
    /// although it left no trace on an object: it closed a pipe, say.
    fn last_pairs(&self) -> Vec<(usize, usize)> {
        let Some((last, before)) = self.operations.split_last() else { return Vec::new() };
        let mut pairs: Vec<(usize, usize)> = Vec::new();
        for (index, operation) in before.iter().enumerate().rev() {
            let known = |&(other, _): &(usize, usize)| self.operations[other].key.0 == operation.key.0;
            if operation.key.0 != last.key.0 && !pairs.iter().any(known) {
                pairs.push((index, before.len()));
            }
        }
        pairs
    }
}

/// An order of two operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) first: Key,
    pub(crate) second: Key,
    /// Whether the failing execution ended before the second operation.
    pub(crate) pending: bool,
}

impl Order {
    fn holds(&self, log: &Log) -> bool {
        match (log.at.get(&self.first), log.at.get(&self.second)) {
            (Some(first), Some(second)) => first < second,
            (Some(_), None) => self.pending,
            _ => false,
        }
    }

    /// Whether an execution that passed has both operations in this order. It came to its end, so an operation that it did
    /// not reach is one that it does not have.
    fn held(&self, log: &Log) -> bool {
        log.has(&self.second) && self.holds(log)
    }

    fn is_reversed(&self, log: &Log) -> bool {
        let found = log.at.get(&self.first).zip(log.at.get(&self.second));
        found.is_some_and(|(first, second)| second < first)
    }
}

/// The smallest set of orders that explains a failure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Necessary {
    pub(crate) orders: Vec<Order>,
    /// For each of these orders: the index of an execution that passes in which only this one is reversed.
    pub(crate) reversed_in: Vec<usize>,
    /// The executions that have all these orders, the failing one included. All of them failed.
    pub(crate) failing: usize,
    /// The executions that passed.
    pub(crate) passing: usize,
}

/// The most orders and passing executions that are compared.
const MAX_ORDERS: usize = 96;
const MAX_PASSING: usize = 128;

/// What else is known of a failure.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hints<'a> {
    /// Orders that the class of the bug names. Of several smallest sets, one with these is taken.
    pub(crate) preferred: &'a [(Name, Name)],
    /// The threads that were alive at the end of the failing execution. Others would not have done anything else.
    pub(crate) alive: &'a [u16],
    /// Whether threads wait for each other. What they wait to do is then part of the failure.
    pub(crate) deadlock: bool,
    /// The addresses that the class of the bug is about.
    pub(crate) objects: &'a [u64],
    /// The addresses that belong to a library of the language. They say little about the program.
    pub(crate) foreign: &'a [u64],
}

/// The smallest set of orders of the failing execution that no passing execution has. Empty if there is none.
pub(crate) fn necessary(failing: &Log, failing_too: &[Log], passing: &[Log], hints: &Hints<'_>) -> Necessary {
    let passing = &passing[..passing.len().min(MAX_PASSING)];
    let all = if passing.len() == MAX_PASSING { u128::MAX } else { (1 << passing.len()) - 1 };
    let bits = |test: &dyn Fn(&Log) -> bool| {
        passing.iter().enumerate().filter(|(_, log)| test(log)).fold(0u128, |bits, (i, _)| bits | 1 << i)
    };
    let candidates: Vec<(Order, u128)> = candidates(failing, passing, hints.alive)
        .into_iter()
        .map(|order| (order, bits(&|log| order.is_reversed(log))))
        // An order that is never reversed, only absent, says little: the executions took other ways before.
        .filter(|(_, reversed)| *reversed != 0)
        .collect();
    let solve = |counts: u128, holds: fn(&Order, &Log) -> bool, witnessed: &Witnessed| {
        let mut best: HashMap<u128, (Rank, Order)> = HashMap::new();
        for (order, reversed) in &candidates {
            let broken = reversed | counts & bits(&|log| !holds(order, log));
            let rank = rank(failing, order, hints);
            match best.get_mut(&broken) {
                Some(known) if known.0 <= rank => {}
                _ => drop(best.insert(broken, (rank, *order))),
            }
        }
        let mut ranked: Vec<(Rank, u128, Order)> =
            best.into_iter().map(|(broken, (rank, order))| (rank, broken, order)).collect();
        ranked.sort_by_key(|&(rank, broken, order)| (rank, broken, order.first, order.second));
        ranked.truncate(MAX_ORDERS);
        smallest(&ranked, all, &|orders| {
            orders.iter().all(|order| passing.iter().any(|log| witnessed(order, orders, log)))
        })
    };
    // An operation that is absent is mostly so because another order is reversed. So that an order does not hold counts
    // only where none is reversed. The other sets are better if they have fewer operations that the failure prevented:
    // some of them the failing execution would not have done anyway.
    let unexplained = all & !candidates.iter().fold(0, |bits, (_, reversed)| bits | reversed);
    let prevented = |orders: &Vec<Order>| orders.iter().filter(|order| order.pending).count();
    let best = |witnessed: &Witnessed| {
        let found = |orders: Vec<Order>| (!orders.is_empty()).then_some(orders);
        let sets =
            [unexplained, all].into_iter().filter_map(|counts| found(solve(counts, Order::holds, witnessed)));
        let set = sets.min_by_key(prevented);
        match set.as_ref().map(prevented) {
            Some(prevented) if prevented <= 1 || hints.deadlock => set,
            _ => found(solve(all, Order::held, witnessed)).or(set),
        }
    };
    let orders = best(&makes_it_pass).or_else(|| best(&is_reversed_alone)).unwrap_or_default();
    debug_assert!(orders.is_empty() || !passing.iter().any(|log| orders.iter().all(|order| order.held(log))));
    let holds_all = |log: &&Log| orders.iter().all(|order| order.holds(log));
    let reversed_alone = |order| passing.iter().position(|log| is_reversed_alone(order, &orders, log));
    let reversed_in = orders.iter().filter_map(reversed_alone).collect();
    Necessary {
        reversed_in,
        failing: 1 + failing_too.iter().filter(holds_all).count(),
        passing: passing.len(),
        orders,
    }
}

/// Whether an execution that passes shows that one of these orders is necessary.
type Witnessed = dyn Fn(&Order, &[Order], &Log) -> bool;

/// Whether this order is reversed in an execution, and no other of these.
fn is_reversed_alone(order: &Order, all: &[Order], log: &Log) -> bool {
    order.is_reversed(log) && !all.iter().any(|other| other != order && other.is_reversed(log))
}

/// Whether an execution that passes shows that it does so because of this order: the order is reversed, and the others
/// hold, unless a thread of this order takes another way after it and leaves out an operation.
fn makes_it_pass(order: &Order, all: &[Order], log: &Log) -> bool {
    let threads = [order.first.0, order.second.0];
    let left_out = |key: &Key| log.has(key) || threads.contains(&key.0);
    let fits = |other: &Order| {
        other.held(log) || !other.is_reversed(log) && left_out(&other.first) && left_out(&other.second)
    };
    order.is_reversed(log) && all.iter().all(|other| other == order || fits(other))
}

/// How little an order says to a person; smaller is better. Orders on objects of the program, then preferred orders, then
/// those on objects of the class, then those of operations on one object, then those of operations that the failing execution has, then accesses, then what
/// lies near the failure.
type Rank = (bool, bool, bool, bool, bool, bool, usize);

fn rank(failing: &Log, order: &Order, hints: &Hints<'_>) -> Rank {
    let first = failing.at[&order.first];
    let is_call = !failing.operations[first].access;
    let from_end = failing.operations.len() - failing.at.get(&order.second).copied().unwrap_or(first);
    let is_use = |&second: &usize| failing.operations[first].ends(&failing.operations[second]);
    let unrelated = order.first.2 != order.second.2 && !failing.at.get(&order.second).is_some_and(is_use);
    let foreign = hints.foreign.contains(&order.first.2) || hints.foreign.contains(&order.second.2);
    let name = |key: Key| (key.0, key.1, key.2);
    let preferred = hints.preferred.contains(&(name(order.first), name(order.second)));
    let of_class = hints.objects.contains(&order.first.2) && hints.objects.contains(&order.second.2);
    (foreign, !preferred, !of_class, unrelated, order.pending, is_call, from_end)
}

/// The orders of the failing execution, and those of its operations with some that it ended too early to do.
fn candidates(failing: &Log, passing: &[Log], alive: &[u16]) -> Vec<Order> {
    let key = |log: &Log, index: usize| log.operations[index].key;
    let present = failing.pairs().into_iter();
    let mut orders: Vec<Order> = present
        .chain(failing.last_pairs())
        .map(|(one, other)| Order { first: key(failing, one), second: key(failing, other), pending: false })
        .collect();
    for log in passing {
        // In the passing execution the missing operation comes first.
        for (missing, done) in log.pairs() {
            let order = Order { first: key(log, done), second: key(log, missing), pending: true };
            if alive.contains(&order.second.0)
                && failing.at.contains_key(&order.first)
                && !failing.at.contains_key(&order.second)
                && !orders.contains(&order)
            {
                orders.push(order);
            }
        }
    }
    orders
}

/// The largest set that says something to a person.
const MAX_SET: usize = 6;

/// The smallest set whose orders together are broken in all passing executions, and that is accepted; empty if it would
/// be too large.
fn smallest(ranked: &[(Rank, u128, Order)], all: u128, accepted: &dyn Fn(&[Order]) -> bool) -> Vec<Order> {
    let mut search = Cover { ranked, accepted, steps: 200_000, chosen: Vec::new() };
    let found = (0..=MAX_SET).any(|size| search.run(all, size));
    if found { search.chosen } else { Vec::new() }
}

/// A search for a set of orders.
struct Cover<'a> {
    ranked: &'a [(Rank, u128, Order)],
    accepted: &'a dyn Fn(&[Order]) -> bool,
    steps: u32,
    chosen: Vec<Order>,
}

impl Cover<'_> {
    /// Adds orders, at most `size`, so that one of them is broken in each of these executions. Each time, one is added that
    /// is broken in the first of them. Returns whether an accepted set was found; it is then in `chosen`.
    fn run(&mut self, left: u128, size: usize) -> bool {
        if left == 0 {
            return (self.accepted)(&self.chosen);
        }
        self.steps = self.steps.saturating_sub(1);
        if size == 0 || self.steps == 0 {
            return false;
        }
        let first = left & left.wrapping_neg();
        for (_, broken, order) in self.ranked {
            if broken & first != 0 {
                self.chosen.push(*order);
                if self.run(left & !broken, size - 1) {
                    return true;
                }
                self.chosen.pop();
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::slots::MemoryAccess;
    use heisen_trace::ThreadId;
    use proptest::prelude::*;

    const HINTS: Hints<'_> =
        Hints { preferred: &[], alive: &[0, 1, 2, 3], deadlock: false, objects: &[], foreign: &[] };

    /// Accesses such as `"1rx 2wx 1wx"`.
    fn log(text: &str) -> Log {
        let mut numbering = Numbering::default();
        let operation = |word: &str| {
            let [thread, what, object] = word.as_bytes() else { panic!("{word}") };
            let writes = *what == b'w';
            let op = if writes { Op::MemWrite } else { Op::MemRead };
            let key = numbering.key(u16::from(thread - b'0'), op, u64::from(*object));
            Operation { key, access: true, writes, lock: None, ended: 0 }
        };
        Log::new(text.split(' ').map(operation).collect())
    }

    fn shown(found: &Necessary) -> Vec<String> {
        let word = |key: Key| {
            let what = if key.1 == Op::MemWrite as u8 { 'w' } else { 'r' };
            format!("{}{what}{}", key.0, key.2 as u8 as char)
        };
        found.orders.iter().map(|order| format!("{}<{}", word(order.first), word(order.second))).collect()
    }

    #[test]
    fn a_lost_update_takes_two_orders() {
        let failing = log("1rx 2rx 2wx 1wx 0rx");
        let passing = [log("1rx 1wx 2rx 2wx 0rx"), log("2rx 2wx 1rx 1wx 0rx")];
        let found = necessary(&failing, &[log("2rx 1rx 1wx 2wx 0rx")], &passing, &HINTS);
        let mut orders = shown(&found);
        orders.sort();
        assert_eq!(orders.len(), 2, "{orders:?}");
        assert!(orders.contains(&"1rx<2wx".to_owned()), "{orders:?}");
        assert_eq!(found.passing, 2);
    }

    #[test]
    fn one_order_is_enough_for_a_read_that_comes_too_early() {
        let found = necessary(&log("2rx 1wx"), &[], &[log("1wx 2rx")], &HINTS);
        assert_eq!((shown(&found), found.failing), (vec!["2rx<1wx".to_owned()], 1));
        assert!(!found.orders[0].pending);
    }

    #[test]
    fn an_operation_that_the_failure_prevents_may_come_too_late() {
        // The failing execution ends at the read.
        let found = necessary(&log("1wp 2rp 2rx"), &[], &[log("1wp 1wx 2rp 2rx")], &HINTS);
        assert_eq!(shown(&found), ["2rx<1wx"]);
        assert!(found.orders[0].pending);
        // Unless its thread has ended.
        let ended = Hints { alive: &[2], ..HINTS };
        assert!(necessary(&log("1wp 2rp 2rx"), &[], &[log("1wp 1wx 2rp 2rx")], &ended).orders.is_empty());
    }

    /// Thread 2 frees the block at `a`, of two bytes; thread 1 uses its second byte.
    #[test]
    fn a_block_is_freed_before_it_is_used() {
        let use_it = |thread: u16, step: u32| Event {
            step,
            thread: ThreadId(thread),
            op: Op::MemRead,
            ok: true,
            object: 0x101,
            pc: 1,
            access: Some(MemoryAccess { size: 1, value: 0 }),
            ended: 0,
        };
        let free_it = |thread: u16, step: u32| Event {
            op: Op::Free,
            object: 0x100,
            access: None,
            ended: 2,
            ..use_it(thread, step)
        };
        let found = necessary(
            &Log::of(&[free_it(2, 1), use_it(1, 2)]),
            &[],
            &[Log::of(&[use_it(1, 1), free_it(2, 2)])],
            &HINTS,
        );
        let orders: Vec<(u16, u16)> = found.orders.iter().map(|o| (o.first.0, o.second.0)).collect();
        assert_eq!((orders, found.orders[0].first.1), (vec![(2, 1)], Op::Free as u8));
        // Nobody else uses these blocks.
        assert!(!Log::of(&[use_it(1, 1), free_it(1, 2)]).operations.iter().any(|o| o.ended > 0));
        let beside = Event { object: 0x102, ..use_it(1, 2) };
        assert!(!Log::of(&[free_it(2, 1), beside]).operations.iter().any(|o| o.ended > 0));
    }

    #[test]
    fn nothing_is_necessary_if_nothing_passes_or_no_order_differs() {
        assert!(necessary(&log("1rx 2wx"), &[], &[], &HINTS).orders.is_empty());
        assert!(necessary(&log("1rx 2wx"), &[], &[log("1rx 2wx")], &HINTS).orders.is_empty());
    }

    proptest! {
        /// On random executions: no passing execution has all orders, each order is broken alone by one of them, and no
        /// smaller set would do (tried by brute force).
        #[test]
        fn the_set_hits_all_and_is_smallest(
            failing in prop::collection::vec((1..4u8, prop::bool::ANY, 0..2u8), 2..8),
            shuffles in prop::collection::vec(prop::collection::vec(0..100usize, 8), 1..6),
        ) {
            let word = |&(thread, writes, object): &(u8, bool, u8)| {
                format!("{thread}{}{}", if writes { 'w' } else { 'r' }, (b'x' + object) as char)
            };
            let text = |events: &[(u8, bool, u8)]| events.iter().map(word).collect::<Vec<_>>().join(" ");
            // Other interleavings of the same threads.
            let passing: Vec<Log> = shuffles.iter().map(|choices| {
                let mut left = failing.clone();
                let mut order = Vec::new();
                for choice in choices.iter().cycle().take(failing.len()) {
                    let firsts: Vec<usize> = (0..left.len())
                        .filter(|&i| left[..i].iter().all(|event| event.0 != left[i].0)).collect();
                    order.push(left.remove(firsts[choice % firsts.len()]));
                }
                log(&text(&order))
            }).collect();
            let failing = log(&text(&failing));
            let found = necessary(&failing, &[], &passing, &HINTS);
            // All have the same operations, so an order that does not hold is reversed.
            let hits = |orders: &[Order]| passing.iter().all(|log| orders.iter().any(|order| !order.holds(log)));
            let all = candidates(&failing, &passing, HINTS.alive);
            prop_assert!(found.orders.iter().all(|order| order.holds(&failing)));
            if found.orders.is_empty() {
                prop_assert!(!hits(&all));
            } else {
                prop_assert!(hits(&found.orders));
                for (index, order) in found.orders.iter().enumerate() {
                    let mut others = found.orders.clone();
                    others.remove(index);
                    let alone = |log: &Log| !order.holds(log) && others.iter().all(|other| other.holds(log));
                    prop_assert!(passing.iter().any(alone));
                }
                let smaller_hits = match found.orders.len() {
                    1 => false,
                    2 => all.iter().any(|one| hits(&[*one])),
                    _ => all.iter().any(|one| all.iter().any(|two| hits(&[*one, *two]))),
                };
                prop_assert!(!smaller_hits);
            }
        }
    }
}
