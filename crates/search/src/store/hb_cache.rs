//! Happens-before cache: drops a branch if an equivalent one was taken.
//!
//! CHESS (Musuvathi et al., OSDI 2008), section 4.4.2. Two prefixes with the same happens-before graph lead
//! to the same state, so the hash of the graph stands for the state. An *edge* is a state and the thread that
//! takes the next step there. What follows an edge depends on the edge alone. Of two plans that lead over the
//! same edge, the second therefore finds nothing new. An execution that itself takes an edge that was taken
//! before is not branched from after that edge.
//!
//! *Without a bound* the cache preserves every state, and so every deadlock, failure and end.
//!
//! *Within a preemption bound* it does so, too:
//!
//! 1. After an edge its thread is the running one. The number of preemptions of a continuation therefore also
//!    depends on the edge alone.
//! 2. Iterative context bounding explores all schedules with c preemptions before any with c + 1, and an edge
//!    is noted when it is taken, not when it is found. So if a prefix with c preemptions meets a noted edge,
//!    a prefix with c' ≤ c preemptions noted it.
//! 3. A continuation with k more preemptions that is within the bound for the second prefix, c + k, is
//!    therefore within the bound for the first, c' + k.
//! 4. That continuation was explored from the first prefix, or will be, or it meets, deeper in the graph,
//!    another edge that was noted before, to which the same argument applies. Executions end, so the argument
//!    ends.
//!
//! All this holds up to collisions of 64-bit hashes, and if the state alone decides which threads are
//! enabled. Fairness looks at the past, so it may leave out a schedule that a different past would have
//! allowed.

use crate::analysis::relation::{in_order, mix};
use heisen_trace::{Execution, TouchKind};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::HashMap;

/// A set of edges, by hash: open addressing, linear probing, 0 for an empty slot. An edge takes 8 bytes, and
/// at least a quarter of the slots is empty. If memory is bounded, the set stops growing at some point. An
/// edge without room counts as new each time: what follows it is explored again, and nothing is missed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Edges {
    /// Their number is a power of two, or 0.
    slots: Vec<u64>,
    len: usize,
    /// How many bytes they may take.
    room: Option<usize>,
    /// How many times an edge had no room.
    unnoted: u64,
}

impl Edges {
    /// Limits its memory.
    pub fn set_room(&mut self, bytes: usize) {
        self.room = Some(bytes);
    }

    /// How many times an edge had no room.
    pub fn unnoted(&self) -> u64 {
        self.unnoted
    }

    /// Makes room for one more edge. False if the memory is used up.
    fn grow(&mut self) -> bool {
        // At most three of four slots are used; otherwise lookups get slow.
        if self.len * 4 < self.slots.len() * 3 {
            return true;
        }
        let wanted = (self.slots.len() * 2).max(64);
        // While the set grows, the old slots still exist.
        if self.room.is_some_and(|room| (wanted + self.slots.len()) * size_of::<u64>() > room) {
            return false;
        }
        let mut larger = Edges { slots: vec![0; wanted], len: 0, room: None, unnoted: 0 };
        self.slots.iter().filter(|&&e| e != 0).for_each(|&e| {
            larger.insert(e);
        });
        self.slots = larger.slots;
        true
    }

    /// Adds an edge. Returns whether it is new.
    pub fn insert(&mut self, edge: u64) -> bool {
        let room = self.grow();
        if self.slots.is_empty() {
            self.unnoted += 1;
            return true;
        }
        let mask = self.slots.len() - 1;
        let mut at = edge as usize & mask;
        loop {
            match self.slots[at] {
                0 if !room => {
                    self.unnoted += 1;
                    return true;
                }
                0 => {
                    self.slots[at] = edge;
                    self.len += 1;
                    return true;
                }
                found if found == edge => return false,
                _ => at = (at + 1) & mask,
            }
        }
    }
}

impl Serialize for Edges {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.slots.iter().filter(|&&e| e != 0))
    }
}

impl<'de> Deserialize<'de> for Edges {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Edges, D::Error> {
        let mut edges = Edges::default();
        for edge in Vec::<u64>::deserialize(deserializer)? {
            if edge == 0 || !edges.insert(edge) {
                return Err(serde::de::Error::custom(
                    "the saved search holds states that no search has seen",
                ));
            }
        }
        Ok(edges)
    }
}

/// The record of a decision: the hash of the state, choice 0, and the set of candidates as words of bits.
type Recorded = (u64, u16, Vec<(usize, u64)>);

/// By step: the edges from the decision of an execution, in the order of the choices.
pub(crate) fn edges(execution: &Execution) -> HashMap<u32, Vec<u64>> {
    let mut states: HashMap<u32, Recorded> = HashMap::new();
    for touch in &execution.touches {
        match touch.kind {
            TouchKind::State => states.entry(touch.step).or_default().0 = touch.word,
            TouchKind::Choices => {
                let (_, first, set) = states.entry(touch.step).or_default();
                *first = touch.thread;
                set.push((usize::from(touch.op), touch.word));
            }
            _ => {}
        }
    }
    let edge = |hash: u64, thread: u16| mix(mix(hash) ^ u64::from(thread)).max(1);
    let of = |(step, (hash, first, set)): (u32, Recorded)| {
        (step, in_order(first, &set).into_iter().map(|t| edge(hash, t)).collect())
    };
    states.into_iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_many() {
        let mut edges = Edges::default();
        let all: Vec<u64> = (0..10_000).map(|n| mix(n).max(1)).collect();
        assert!(all.iter().all(|&e| edges.insert(e)));
        assert!(!all.iter().any(|&e| edges.insert(e)));
        assert_eq!(edges.len, 10_000);
        assert!(edges.slots.len() <= 16_384);
        // Hashes that fall into the same slot remain distinct.
        let mut edges = Edges::default();
        assert!(edges.insert(1) && edges.insert(65) && edges.insert(129) && !edges.insert(65));
    }

    #[test]
    fn a_set_that_may_not_grow() {
        let mut edges = Edges::default();
        edges.set_room((64 + 128) * 8);
        let all: Vec<u64> = (0..1000).map(|n| mix(n).max(1)).collect();
        assert!(all.iter().all(|&e| edges.insert(e)));
        assert_eq!((edges.len, edges.slots.len(), edges.unnoted()), (96, 128, 904));
        // Edges that had room are known; the others count as new each time.
        assert!(all[..96].iter().all(|&e| !edges.insert(e)) && all[96..].iter().all(|&e| edges.insert(e)));
        let mut none = Edges::default();
        none.set_room(100);
        assert!(none.insert(1) && none.insert(1) && none.unnoted() == 2);
    }

    #[test]
    fn saving_keeps_them() {
        let mut edges = Edges::default();
        (1..100).for_each(|n| {
            edges.insert(n * n);
        });
        let text = serde_json::to_string(&edges).unwrap();
        let mut read: Edges = serde_json::from_str(&text).unwrap();
        assert_eq!(read.len, 99);
        assert!((1..100).all(|n| !read.insert(n * n)));
        assert!(serde_json::from_str::<Edges>("[3,0]").is_err());
        assert!(serde_json::from_str::<Edges>("[3,3]").is_err());
    }
}
