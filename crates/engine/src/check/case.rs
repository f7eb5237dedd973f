//! Holds the fixed part of a check: what is checked, and how its executions run. All other modules of a check
//! use it.

use super::hang::Hang;
use super::options::Options;
use crate::error::Result;
use crate::explain::close_up::Recorder;
use crate::explain::judge;
use crate::explain::judge::Verdict;
use crate::process::access_points::Points;
use crate::process::deadline::Deadline;
use crate::process::run_config::{Output, RunConfig};
use crate::process::slots::{Detail, Job, Run};
use crate::process::zygote::Zygote;
use crate::program::Program;
use crate::program::test_program;
use heisen_inspect::Symbols;
use heisen_trace::{CodePlace, End, Plan, Policy};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// A program, the user's options for its check, and how its executions run.
#[derive(Debug)]
pub(super) struct Case<'a> {
    /// The path of the runtime.
    pub(super) runtime: PathBuf,
    pub(super) program: &'a Program,
    pub(super) options: &'a Options,
    /// How executions run. Its step limit and hang time come from the options.
    pub(super) config: RunConfig,
    /// Where an execution computed for longer than `--hang` and went on.
    pub(super) computed: OnceLock<Hang>,
}

impl<'a> Case<'a> {
    pub(super) fn new(
        runtime: PathBuf,
        program: &'a Program,
        options: &'a Options,
        config: RunConfig,
    ) -> Case<'a> {
        Case { runtime, program, options, config, computed: OnceLock::new() }
    }
}

impl Case<'_> {
    /// Runs the default schedule as often as `--warm-up` says, without counting these executions.
    pub(super) fn warm_up(&self) -> Result<()> {
        if self.options.warm_up == 0 {
            return Ok(());
        }
        let plan = Plan::new(Policy::Default);
        let mut zygote = self.start(&self.config)?;
        for _ in 0..self.options.warm_up {
            match zygote.run(Job::Plan(&plan), Detail::End, None) {
                Ok(run) if run.execution.end == End::Stuck => return Ok(()),
                // The search will notice that as well.
                Err(error) if error.is_cut() => return Ok(()),
                other => drop(other?),
            }
        }
        Ok(())
    }

    /// The bug that the end of an execution shows, if any.
    pub(super) fn judge(&self, run: &Run) -> Option<Verdict> {
        judge::judge(run, self.options.expect_exit)
    }

    /// Whether the program is a test program whose output says that it ran no test; false if it cannot be
    /// run.
    pub(super) fn ran_no_test(&self) -> bool {
        let plan = Plan::new(Policy::Default);
        let run = || self.recorder(&self.config).record(Job::Plan(&plan));
        self.program.test_program && run().is_ok_and(|closeup| test_program::ran_none(&closeup.output))
    }

    /// The access points at these places of the program.
    pub(super) fn points_at(&self, places: &[CodePlace]) -> Result<Points> {
        let zygote = self.start(&self.config)?;
        Ok(Points::resolve(places, zygote.pid()))
    }

    /// The places of access points, in the form in which files record them.
    pub(super) fn places_of(&self, points: &Arc<Points>) -> Result<Vec<CodePlace>> {
        let mut symbols = Symbols::new();
        Ok(self.start(&self.close_up_config(points))?.points(&mut symbols))
    }

    /// How close-ups run with these access points. They may take longer than the search.
    pub(super) fn close_up_config(&self, points: &Arc<Points>) -> RunConfig {
        let config = self.config.clone();
        let deadline = config.deadline.map(Deadline::extended);
        RunConfig { points: points.clone(), deadline, ..config }
    }

    /// The settings for close-ups.
    pub(super) fn recorder<'c>(&'c self, config: &'c RunConfig) -> Recorder<'c> {
        Recorder {
            runtime: &self.runtime,
            program: self.program,
            config,
            expect_exit: self.options.expect_exit,
            output: Output::Captured,
            trace: false,
            accesses: false,
        }
    }

    fn start(&self, config: &RunConfig) -> Result<Zygote> {
        Zygote::start(&self.runtime, self.program, config, Output::Dropped)
    }
}
