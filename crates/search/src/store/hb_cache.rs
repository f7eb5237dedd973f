//! Happens-before caching: a branch is dropped if an equivalent one was taken.
//!
//! CHESS (Musuvathi et al., OSDI 2008), section 4.4.2. Two prefixes with the same happens-before graph lead to the same
//! state, so the hash of the graph stands for the state. An *edge* is a state and the thread that takes the next step there.
//! What follows an edge depends on it alone, so of two plans that lead over the same edge the second finds nothing new. Also
//! an execution that comes, on its way, to an edge that was taken is left alone from there on.
//!
//! Preserves every state, and so every deadlock, failure and end, of a search without bounds. *And within a preemption
//! bound*: after an edge its thread is the running one, so how many preemptions a continuation of it costs depends on the edge
//! alone, too. Iterative context bounding explores all with c preemptions before any with c + 1, and an edge is noted
//! when it is taken, not when it is found, so it was noted by a prefix with c' ≤ c preemptions if a prefix with c meets it.
//! A continuation with k preemptions more that is within the bound of the second, c + k, is therefore within that of the
//! first, c' + k. It was explored from there, or is going to be, or meets, deeper in the graph, another edge that was noted
//! before, for which the same holds. As executions end, that comes to an end.
//!
//! All of it up to collisions of 64-bit hashes, and where who can run depends on the state alone: fairness, which looks at
//! the past, may leave out what a different past would have led to.

use crate::analysis::relation::{in_order, mix};
use heisen_trace::{Execution, TouchKind};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::HashMap;

/// A set of edges, 8 bytes each and at most half as many again unused: open addressing, linear probing, 0 for none. Where
/// memory is bounded it stops growing at some time: an edge that finds no room counts as new each time, so what follows it
/// is explored again, and nothing is missed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Edges {
    /// Their number is a power of two, or 0.
    slots: Vec<u64>,
    len: usize,
    /// How many bytes they may take.
    room: Option<usize>,
    /// Edges that had no room, each as often as it was taken.
    unnoted: u64,
}

impl Edges {
    /// Bounds what it takes of memory.
    pub fn set_room(&mut self, bytes: usize) {
        self.room = Some(bytes);
    }

    /// How often an edge had no room.
    pub fn unnoted(&self) -> u64 {
        self.unnoted
    }

    /// Makes room for one more, if it may.
    fn grow(&mut self) -> bool {
        // Never more than three of four slots are used, or searching takes long.
        if self.len * 4 < self.slots.len() * 3 {
            return true;
        }
        let wanted = (self.slots.len() * 2).max(64);
        // While it grows, the smaller one is there, too.
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

    /// Adds an edge; tells whether it is new.
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

/// What is recorded at a decision: the hash of the state, choice 0, and the words of the set of candidates.
type Recorded = (u64, u16, Vec<(usize, u64)>);

/// The edges that lead from the decisions of an execution: by the step, in the order of the choices.
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
        // Neighbours are kept apart.
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
        // Those that had room are known, the others count as new each time.
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
