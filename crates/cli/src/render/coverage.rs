//! One recorded search among those that `heisen coverage` compares.

use crate::render::paint::{count, number};
use heisen_engine::check::coverage::Record;

/// A record, and what it is called among the others.
#[derive(Debug)]
pub struct Run {
    /// What the search has covered.
    pub record: Record,
    /// Its label.
    pub label: String,
}

impl Run {
    /// What is to be known of it besides the lines: `work_stealing_fixed: 52 classes in 80 executions; all schedules explored`.
    pub fn sentence(&self) -> String {
        let total = self.record.total();
        let classes = match total.counts.classes {
            1 => "1 class".to_owned(),
            many => format!("{} classes", number(many)),
        };
        let how_far = match (self.record.whole, self.record.bound) {
            (true, _) => "all schedules explored".to_owned(),
            (_, Some(bound)) => {
                format!("all schedules with at most {} explored", count(bound.into(), "preemption"))
            }
            _ => "not all schedules explored".to_owned(),
        };
        format!("{}: {classes} in {}; {how_far}", self.label, count(total.executions, "execution"))
    }

    /// The share of its classes, in percent.
    pub fn share(&self, classes: u64) -> f64 {
        100.0 * classes as f64 / self.record.total().counts.classes.max(1) as f64
    }
}
