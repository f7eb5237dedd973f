//! Wake-up trees: the sequences of steps that are still to be tried from a state, in order.
//!
//! Abdulla, Aronis, Jonsson, Sagonas: Optimal Dynamic Partial Order Reduction, POPL 2014, section 6; Source Sets: A
//! Foundation for Optimal Dynamic Partial Order Reduction, JACM 2017. The first children of a state on the way to a leaf are
//! one sequence. A sequence is added only if no leaf leads to all it leads to; to tell that, it is enough to follow, at each
//! state, the first child that is a *weak initial* of the sequence: one with which an equivalent sequence begins, as the
//! step is in it with nothing before it that it depends on, or is independent of all of it.

use crate::relation::Footprint;
use serde::{Deserialize, Serialize};

/// One step of a sequence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Step {
    pub foot: Footprint,
    /// Whether it will be just so. The last step of a sequence is one that is moved to before what it depended on, so it
    /// may be another then.
    pub sure: bool,
    /// It may turn out that the thread cannot take it.
    pub perhaps: bool,
}

/// A step and what may follow it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Branch {
    pub step: Step,
    pub children: Vec<Branch>,
    /// The plan that leads to its first leaf was handed out.
    pub out: bool,
}

impl Branch {
    /// A step of a thread of which nothing else is known.
    pub fn unknown(thread: u16) -> Branch {
        let foot = Footprint::unknown(thread);
        let step = Step { foot, sure: false, perhaps: false };
        Branch { step, children: vec![], out: false }
    }

    fn chain(sequence: Vec<Step>) -> Option<Branch> {
        sequence
            .into_iter()
            .rev()
            .fold(None, |rest, step| Some(Branch { step, children: rest.into_iter().collect(), out: false }))
    }

    /// Splits off the first sequence: its steps, and of each state after them the other branches.
    pub fn into_first(self) -> Vec<(Step, Vec<Branch>)> {
        let mut path = Vec::new();
        let mut next = Some(self);
        while let Some(mut branch) = next {
            next = (!branch.children.is_empty()).then(|| branch.children.remove(0));
            path.push((branch.step, branch.children));
        }
        path
    }

    /// How many sequences there are.
    pub fn leaves(&self) -> usize {
        self.children.iter().map(Branch::leaves).sum::<usize>().max(1)
    }
}

/// Whether a step, the next of its thread, is a weak initial of a sequence: where it is in it, if it is.
pub(crate) fn weak_initial(step: &Footprint, sequence: &[Step]) -> Option<Option<usize>> {
    match sequence.iter().position(|s| s.foot.thread == step.thread) {
        Some(at) => initial(at, sequence).then_some(Some(at)),
        None => (!sequence.iter().any(|s| s.foot.rivals(step))).then_some(None),
    }
}

/// Whether a step that was explored, with all its outcomes, is a weak initial of a sequence. In the sequence it may be another
/// one, or one of the outcomes, so what counts is what it touched.
pub(crate) fn covers(explored: &Footprint, sequence: &[Step]) -> bool {
    let before = sequence.iter().take_while(|s| s.foot.thread != explored.thread);
    !before.into_iter().any(|s| s.foot.rivals(explored))
}

/// Whether nothing before a step of a sequence must come before it; it must be the first of its thread.
pub(crate) fn initial(at: usize, sequence: &[Step]) -> bool {
    !sequence[..at].iter().any(|s| s.foot.precedes(&sequence[at].foot))
}

/// Adds a sequence to the branches of a state, unless what it leads to is led to by one of them.
pub(crate) fn insert(mut branches: &mut Vec<Branch>, mut sequence: Vec<Step>) {
    loop {
        let found = branches
            .iter()
            .enumerate()
            .find_map(|(at, b)| weak_initial(&b.step.foot, &sequence).map(|place| (at, place)));
        let Some((at, place)) = found else {
            branches.extend(Branch::chain(sequence));
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
