//! One of the recorded searches that `heisen coverage` compares.

use crate::render::paint::{count, number};
use heisen_engine::check::coverage::Record;

/// A recorded search with its label.
#[derive(Debug)]
pub struct Run {
    /// The coverage of the search.
    pub record: Record,
    /// The name of the search in tables and figures.
    pub label: String,
}

impl Run {
    /// A summary for headings and the legend, such as `work_stealing_fixed: 52 classes in 80 executions; all
    /// schedules explored`.
    pub fn sentence(&self) -> String {
        let total = self.record.total();
        let classes = match total.counts.classes {
            1 => "1 class".to_owned(),
            many => format!("{} classes", number(many)),
        };
        let how_far = match (self.record.exhaustive, self.record.bound) {
            (true, _) => "all schedules explored".to_owned(),
            (_, Some(bound)) => {
                format!("all schedules with at most {} explored", count(bound.into(), "preemption"))
            }
            _ => "not all schedules explored".to_owned(),
        };
        format!("{}: {classes} in {}; {how_far}", self.label, count(total.executions, "execution"))
    }

    /// This number of classes as a percentage of all classes of the search.
    pub fn share(&self, classes: u64) -> f64 {
        100.0 * classes as f64 / self.record.total().counts.classes.max(1) as f64
    }
}
