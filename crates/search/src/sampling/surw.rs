//! Selectively uniform random walk: every interleaving of the events that count has the same chance.
//!
//! Zhao, Wolff, Mathur, Roychoudhury: Selectively Uniform Concurrency Testing, ASPLOS 2025. The walk itself is the
//! runtime's; here lies what it has to know: how many events to expect of each thread, which every execution counts.
//!
//! What counts differs by execution: in every other one all events do, in the others those on a part of the objects,
//! so that their interleavings are not drowned by what happens beside them. Of each part the first execution knows
//! nothing and is a plain random walk. A part that has no events is not taken again.
//!
//! The portfolio has a second form of it, in runs: all events count, and a thread has two of them in a row, on average, or four.
//! What takes few switches is a small part of all interleavings, and that is where this looks.

use crate::sampling::common::{Sampler, Sampling};
use crate::sampling::thread_tree::Tree;
use heisen_trace::hash::PARTS;
use heisen_trace::{Execution, Expected, Policy};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The mean lengths of runs that take turns, as powers of two, and how many they are.
const SHORTEST: u64 = 1;
const LENGTHS: u64 = 2;

/// Selectively uniform random walk.
pub type Surw = Sampling<Uniform>;

/// What makes its plans.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Uniform {
    /// By part of the objects; the first is for all of them, and alone if threads have runs.
    parts: Vec<Part>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Part {
    tree: Tree,
    /// What plans of this batch expect.
    expected: Arc<[Expected]>,
    /// Whether plans of this batch take it.
    used: bool,
    /// Whether any execution has counted it.
    counted: bool,
}

impl Uniform {
    pub(crate) fn new() -> Uniform {
        Uniform::of(1 + PARTS as usize)
    }

    /// The one whose threads have runs.
    pub(crate) fn in_runs() -> Uniform {
        Uniform::of(1)
    }

    fn of(parts: usize) -> Uniform {
        let part = Part { tree: Tree::default(), expected: [].into(), used: true, counted: false };
        Uniform { parts: vec![part; parts] }
    }

    fn has_runs(&self) -> bool {
        self.parts.len() == 1
    }

    /// Whether it makes policies with runs of this length.
    pub(crate) fn makes(&self, length: u32) -> bool {
        self.has_runs() == (length > 1)
    }

    /// The part of plan `number`: all objects in every other one, else the others in turn.
    fn part(&self, number: u64) -> u32 {
        let used: Vec<u32> =
            (1..self.parts.len() as u32).filter(|&part| self.parts[part as usize].used).collect();
        if number.is_multiple_of(2) || used.is_empty() {
            return 0;
        }
        used[(number / 2 % used.len() as u64) as usize]
    }
}

impl Surw {
    /// The search that this seed stands for.
    pub fn new(seed: u64) -> Surw {
        Sampling::of(seed, Uniform::new())
    }
}

impl Sampler for Uniform {
    const LONGEST_BATCH: u64 = 1024;

    fn policy(&mut self, number: u64, seed: u64) -> Policy {
        let part = self.part(number);
        let length = if self.has_runs() { 1 << (SHORTEST + number % LENGTHS) } else { 1 };
        Policy::Surw { seed, part, length, expected: self.parts[part as usize].expected.clone() }
    }

    fn learn(&mut self, policy: &Policy, execution: &Execution, usable: bool, _new: Option<bool>) {
        // Runs are to know at once what is known without them; what comes of runs is not what others are to expect.
        if let Policy::Surw { part, length, .. } = *policy
            && usable
            && (length == 1 || self.has_runs())
            && let Some(part) = self.parts.get_mut(part as usize)
        {
            part.tree.add(&execution.counted);
            part.counted = true;
        }
    }

    fn settle(&mut self) {
        for part in &mut self.parts {
            part.expected = part.tree.expected();
            // A single event has nothing to come before or after.
            part.used = !part.counted || part.tree.events() > 1;
        }
    }
}
