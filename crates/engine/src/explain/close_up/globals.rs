//! Reads the global variables of a program that is not instrumented at each pause. Nothing else shows there what the
//! threads wrote, and the condition for which a thread waits is often a global variable.

use heisen_inspect::View;
use heisen_inspect::names::Scalar;
use heisen_trace::finding::GlobalValues;

/// The largest number of switches at which they are read.
const MOST_SWITCHES: usize = 200;
/// The largest number of variables that are reported.
const MOST: usize = 8;

/// The values of the global variables.
#[derive(Debug, Default)]
pub(super) struct Globals {
    wanted: bool,
    variables: Option<Vec<Scalar>>,
    at_switches: Vec<Vec<String>>,
    at_end: Vec<String>,
}

impl Globals {
    pub(super) fn new(wanted: bool) -> Globals {
        Globals { wanted, ..Globals::default() }
    }

    fn read(&mut self, view: &View<'_>) -> Vec<String> {
        let variables = self.variables.get_or_insert_with(|| view.scalars());
        variables.iter().map(|variable| view.value_of(variable).unwrap_or_default()).collect()
    }

    pub(super) fn at_switch(&mut self, view: &View<'_>) {
        if self.wanted && self.at_switches.len() < MOST_SWITCHES {
            let values = self.read(view);
            self.at_switches.push(values);
        }
    }

    pub(super) fn at_end(&mut self, view: &View<'_>) {
        if self.wanted && !self.at_switches.is_empty() {
            self.at_end = self.read(view);
        }
    }

    /// The variables that did not have the same value all the time.
    pub(super) fn changed(self) -> Vec<GlobalValues> {
        let names = self.variables.unwrap_or_default().into_iter().map(|variable| variable.name);
        let all = names.zip(self.at_end).enumerate().map(|(index, (name, at_end))| {
            let at_switches = self.at_switches.iter().map(|values| values[index].clone()).collect();
            GlobalValues { name, at_switches, at_end }
        });
        let changes = |values: &GlobalValues| values.at_switches.iter().any(|at| *at != values.at_end);
        all.filter(changes).take(MOST).collect()
    }
}
