//! Wake-up trees: the sequences of steps that are still to be explored from a state, in order.
//!
//! Abdulla, Aronis, Jonsson, Sagonas: Optimal Dynamic Partial Order Reduction, POPL 2014, section 6; Source
//! Sets: A Foundation for Optimal Dynamic Partial Order Reduction, JACM 2017.
//!
//! Each path from the root to a leaf is one sequence. A sequence is added only if no leaf covers it, which
//! means that no leaf leads to everything that the sequence leads to. To decide this, it is enough to follow,
//! at each state, the first child that is a *weak initial* of the sequence: a step with which an equivalent
//! sequence begins. The step is either in the sequence, with no step before it that it depends on, or it is
//! independent of the entire sequence.

use crate::analysis::relation::Footprint;
use crate::systematic::dpor::sequence::Sequence;
use serde::{Deserialize, Serialize};

/// One step of a sequence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Step {
    pub foot: Footprint,
    /// Whether the thread will take exactly this step. The last step of a sequence is moved before an event
    /// that it depended on, so the thread may take another step there.
    pub sure: bool,
    /// Whether the thread may turn out to be blocked.
    pub perhaps: bool,
}

/// A step and the branches that may follow it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Vec<Saved>", try_from = "Vec<Saved>")]
pub(crate) struct Branch {
    pub step: Step,
    pub children: Vec<Branch>,
    /// Whether the plan that leads to its first leaf was handed out.
    pub out: bool,
}

/// A branch in a saved search, followed by its children. A tree is saved as a flat list, because formats
/// limit the nesting of values and a sequence may have thousands of steps.
#[derive(Debug, Serialize, Deserialize)]
struct Saved {
    step: Step,
    children: usize,
    out: bool,
}

impl From<Branch> for Vec<Saved> {
    fn from(branch: Branch) -> Vec<Saved> {
        let (mut saved, mut open) = (Vec::new(), vec![branch]);
        while let Some(Branch { step, children, out }) = open.pop() {
            saved.push(Saved { step, children: children.len(), out });
            open.extend(children.into_iter().rev());
        }
        saved
    }
}

impl TryFrom<Vec<Saved>> for Branch {
    type Error = &'static str;

    fn try_from(saved: Vec<Saved>) -> Result<Branch, &'static str> {
        const BROKEN: &str = "a tree of steps that is not whole";
        // Branches whose parent comes later in this loop, the first child last.
        let mut open: Vec<Branch> = Vec::new();
        for Saved { step, children, out } in saved.into_iter().rev() {
            let first = open.len().checked_sub(children).ok_or(BROKEN)?;
            let children = open.split_off(first).into_iter().rev().collect();
            open.push(Branch { step, children, out });
        }
        match (open.pop(), open.is_empty()) {
            (Some(root), true) => Ok(root),
            _ => Err(BROKEN),
        }
    }
}

impl Branch {
    /// A step of a thread whose next operation is not known.
    pub fn unknown(thread: u16) -> Branch {
        let foot = Footprint::unknown(thread);
        let step = Step { foot, sure: false, perhaps: false };
        Branch { step, children: vec![], out: false }
    }

    fn chain(steps: impl DoubleEndedIterator<Item = Step>) -> Option<Branch> {
        steps
            .rev()
            .fold(None, |rest, step| Some(Branch { step, children: rest.into_iter().collect(), out: false }))
    }

    /// Splits off the first sequence: each of its steps, with the other branches of the state after it.
    pub fn into_first(self) -> Vec<(Step, Vec<Branch>)> {
        let mut path = Vec::new();
        let mut next = Some(self);
        while let Some(mut branch) = next {
            next = (!branch.children.is_empty()).then(|| branch.children.remove(0));
            path.push((branch.step, branch.children));
        }
        path
    }

    /// The steps of the first sequence.
    pub fn first(&self) -> impl Iterator<Item = &Step> {
        std::iter::successors(Some(self), |branch| branch.children.first()).map(|branch| &branch.step)
    }

    /// How many sequences there are.
    pub fn leaves(&self) -> usize {
        self.children.iter().map(Branch::leaves).sum::<usize>().max(1)
    }
}

/// Adds a sequence to the branches of a state, unless one of them covers it.
pub(crate) fn insert(mut branches: &mut Vec<Branch>, mut sequence: Sequence<'_>) {
    loop {
        let found = branches
            .iter()
            .enumerate()
            .find_map(|(at, b)| sequence.weak_initial(&b.step.foot).map(|place| (at, place)));
        let Some((at, place)) = found else {
            branches.extend(Branch::chain(sequence.into_steps()));
            return;
        };
        if let Some(place) = place {
            sequence.remove(place);
        }
        if sequence.is_empty() || branches[at].children.is_empty() {
            return;
        }
        branches = &mut branches[at].children;
    }
}

#[cfg(test)]
mod saving {
    use super::*;

    #[test]
    fn a_tree_is_read_back_however_deep_it_is() {
        let step = |thread| Branch::unknown(thread).step;
        let deep = Branch::chain((0..1000).map(step)).expect("steps");
        let mut wide = Branch::chain((0..3).map(step)).expect("steps");
        wide.children.push(Branch { out: true, ..Branch::chain((7..9).map(step)).expect("steps") });
        for tree in [deep, wide] {
            let text = serde_json::to_string(&tree).expect("a text");
            assert_eq!(serde_json::from_str::<Branch>(&text).expect("a tree"), tree);
        }
    }

    #[test]
    fn a_tree_that_is_not_whole_is_refused() {
        let saved = |children| Saved { step: Branch::unknown(0).step, children, out: false };
        for broken in [vec![], vec![saved(1)], vec![saved(0), saved(0)], vec![saved(2), saved(0)]] {
            assert!(Branch::try_from(broken).is_err());
        }
    }
}
