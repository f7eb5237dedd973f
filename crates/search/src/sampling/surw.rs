//! Selectively uniform random walk: every interleaving of the selected events has the same chance.
//!
//! Zhao, Wolff, Mathur, Roychoudhury: Selectively Uniform Concurrency Testing, ASPLOS 2025. The runtime does
//! the walk. This module gives it the expected number of events of each thread, which every execution counts.
//!
//! The selection differs between executions. In every second one all events are selected. In the others only
//! the events on a part of the objects are, so that other events do not drown their interleavings. The first
//! execution of each part has no counts yet and is a plain random walk. A part without events is not used
//! again.
//!
//! The portfolio has a second form of this sampler, with runs: all events are selected, and a thread takes
//! two or four of them in a row on average. Schedules with few switches are a small part of all
//! interleavings, and this form looks there.

use crate::sampling::common::{Sampler, Sampling};
use crate::sampling::thread_tree::Tree;
use heisen_trace::hash::PARTS;
use heisen_trace::{Execution, Expected, Policy};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The mean lengths of runs, as powers of two: the smallest exponent, and how many there are.
const SHORTEST: u64 = 1;
const LENGTHS: u64 = 2;

/// Selectively uniform random walk; see the head of this file.
pub type Surw = Sampling<Uniform>;

/// Makes the plans of [`Surw`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Uniform {
    /// By part of the objects. The first part is all objects; with runs, it is the only one.
    parts: Vec<Part>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Part {
    tree: Tree,
    /// The event counts that plans of this batch expect.
    expected: Arc<[Expected]>,
    /// Whether plans of this batch use this part.
    used: bool,
    /// Whether an execution has counted its events.
    counted: bool,
}

impl Uniform {
    pub(crate) fn new() -> Uniform {
        Uniform::of(1 + PARTS as usize)
    }

    /// The form whose threads have runs.
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

    /// The part of plan `number`: all objects in every second plan, the other parts in turn in the rest.
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
    /// The search of this seed.
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
        // The form with runs also learns from executions without runs, so that it has counts early. The form
        // without runs does not learn from runs, which count differently.
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
            // A single event has no order.
            part.used = !part.counted || part.tree.events() > 1;
        }
    }
}
