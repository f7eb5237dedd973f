//! What one execution shows of others: where an order of steps that did not happen could, and what to steer to for that.
//!
//! Pure: an execution with its touches in, targets out. One file a family: [`locks`], [`wakeups`], [`order`] and
//! [`atomicity`] stand on [`history`], which tells who did what, with which locks held, and what had to come before. A
//! target is a guess. Whether it leads anywhere is for the execution to show that is steered to it.

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

/// Targets of each family that are taken from one execution at most.
const MOST: usize = 64;

/// How many deeds a family may compare in one execution. The work grows by a power of the execution's length, and there is
/// no clock here: so it is counted.
const LOOKS: usize = 200_000;

/// What is left of the work that a family may do.
#[derive(Debug)]
pub struct Patience(usize);

impl Default for Patience {
    /// That of one family and execution.
    fn default() -> Patience {
        Patience(LOOKS)
    }
}

impl Patience {
    /// Looks at one more; false if that is too much.
    pub fn look(&mut self) -> bool {
        self.0 = self.0.saturating_sub(1);
        self.0 > 0
    }

    /// Whether there is none left.
    pub fn is_over(&self) -> bool {
        self.0 == 0
    }
}

/// All targets that an execution shows, the families in turn.
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
