//! Holds the current search: the strategy, and its work so far.

use super::case::Case;
use super::options::{Kind, Options};
use super::outcome::Tally;
use heisen_search::{Halt, Room, Search, Strategy};
use std::time::{Duration, Instant};

/// The current search.
pub(super) struct State<'a> {
    pub(super) case: &'a Case<'a>,
    pub(super) search: Search,
    pub(super) tally: Tally,
    /// The memory that the search may use, and the spill file for the rest.
    memory: Room,
    /// The moment from which on time is not yet in the tally.
    began: Instant,
}

impl<'a> State<'a> {
    pub(super) fn new(case: &'a Case<'a>, search: Search, tally: Tally, memory: Room) -> State<'a> {
        let mut state = State { case, search, tally, memory, began: Instant::now() };
        state.connect();
        state
    }

    /// Gives the search its memory limit, and lets the end of the time interrupt it.
    fn connect(&mut self) {
        self.search.bound_memory(self.memory.clone());
        let config = self.case.config.clone();
        self.search.heed(Halt::when(move || config.over().is_some()));
    }

    /// Begins the search again: there are new scheduling points, so its plans refer to step numbers that no
    /// longer exist.
    pub(super) fn start_over(&mut self) {
        self.search = self.case.options.search(self.case.program);
        self.connect();
        self.tally.restarts += 1;
        self.tally.classes.clear();
    }

    /// How many executions may still begin, if `uncounted` are done or running but not in the tally.
    pub(super) fn executions_left(&self, uncounted: usize) -> Option<u64> {
        let executions = self.tally.executions + uncounted as u64;
        self.case.options.executions.map(|most| most.saturating_sub(executions))
    }

    /// Whether there is nothing to explore, because only one thread ran. A search that chooses inputs has more to explore.
    pub(super) fn is_alone(&self) -> bool {
        let Options { strategy, inputs, .. } = *self.case.options;
        self.tally.is_alone() && !inputs && strategy != Kind::Causal
    }

    pub(super) fn has_findings(&self) -> bool {
        !self.tally.findings.is_empty() || !self.tally.races.reports().is_empty()
    }

    /// The time of the search so far.
    pub(super) fn time(&self) -> Duration {
        self.tally.time + self.began.elapsed()
    }

    /// Adds the elapsed time to the tally.
    pub(super) fn count_time(&mut self) {
        self.tally.time += self.began.elapsed();
        self.began = Instant::now();
    }
}
