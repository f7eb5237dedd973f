//! Predictions: finds in one execution other orders of steps that are possible and may fail, and targets to
//! steer to.
//!
//! The input is an execution with its touches, the output are targets. Each family has its own file:
//! [`locks`], [`wakeups`], [`order`] and [`atomicity`]. All use [`history`], the list of operations with
//! locks held and orders that are forced. A target is a guess: only an execution that is steered to it
//! confirms it.

pub mod atomicity;
pub mod history;
pub mod locks;
pub mod order;
pub mod wakeups;

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

use heisen_trace::{Execution, Target};
use history::History;

/// How many targets of each family are taken from one execution at most.
const MOST: usize = 64;

/// How many operations a family may compare in one execution. The work grows with a power of the length of
/// the execution. The search has no clock, so the work is counted.
const WORK: usize = 200_000;

/// The work that a family may still do.
#[derive(Debug)]
pub struct WorkBudget(usize);

impl Default for WorkBudget {
    /// The budget of one family for one execution.
    fn default() -> WorkBudget {
        WorkBudget(WORK)
    }
}

impl WorkBudget {
    /// Takes one unit of work; false if none is left.
    pub fn spend(&mut self) -> bool {
        self.0 = self.0.saturating_sub(1);
        self.0 > 0
    }

    /// Whether no work is left.
    pub fn is_spent(&self) -> bool {
        self.0 == 0
    }
}

/// All targets that an execution shows, taken from the families in turn.
pub fn targets(execution: &Execution) -> Vec<Target> {
    let history = History::read(execution);
    let mut families: Vec<std::vec::IntoIter<Target>> = [
        locks::targets(&history, MOST),
        wakeups::targets(&history, MOST),
        order::targets(&history, MOST),
        atomicity::targets(&history, MOST),
    ]
    .into_iter()
    .map(Vec::into_iter)
    .collect();
    let mut all = Vec::new();
    loop {
        let before = all.len();
        all.extend(families.iter_mut().filter_map(Iterator::next));
        if all.len() == before {
            return all;
        }
    }
}
