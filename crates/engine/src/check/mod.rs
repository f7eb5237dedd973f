//! The search at work: plans in batches, spread over workers, each with a zygote of its own.
//!
//! | module | what it is |
//! | --- | --- |
//! | `options` | what is asked for |
//! | `driver` | batches: plans out, results in, in the order of the plans |
//! | `opening` | how dpor begins |
//! | `worker` | runs the plans of a batch |
//! | `executed` | what came of a plan, on its way from the worker to the driver |
//! | `stuck` | an execution that does not move |
//! | `found` | an execution that went wrong |
//! | `races` | data races |
//! | `predicted` | what an execution was steered to, and hints |
//! | `outcome`, `conclude` | what was done; the verdict of the whole |

pub mod access_point_file;
pub mod access_points;
pub mod changed;
pub mod coverage;
mod dpor_opening;
mod driver;
mod failure;
mod options;
mod outcome;
mod plan_result;
mod plan_spill;
mod predicted;
mod races;
pub mod saved;
pub mod scope;
pub mod sentences;
pub(crate) mod shared_prefix;
mod stuck;
mod verdict;
mod worker;

pub use options::{Kind, Options, Races};
pub use outcome::{Empty, Ended, Outcome, Progress, Reach, Tally};

use crate::check::access_points::Points;
use crate::check::plan_spill::Disk;
use crate::check::saved::Keeper;
use crate::error::Result;
use crate::explain::close_up::Camera;
use crate::explain::judge;
use crate::explain::judge::Verdict;
use crate::inspect::Symbols;
use crate::process::deadline::Deadline;
use crate::process::slots::{Detail, Job, Run};
use crate::process::sys;
use crate::process::zygote::{Limits, Output, Zygote};
use crate::program::Program;
use crate::program::test_program;
use driver::Driver;
use heisen_search::{Room, Search, Strategy};
use heisen_trace::{CodePlace, End, Plan, Policy};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use stuck::Stuck;
use worker::Shared;

/// Failures that did not come back, after which no further one is looked at.
const MAX_UNCONFIRMED: u64 = 20;
/// Distinct findings after which even `--keep-going` stops.
const MAX_FINDINGS: usize = 100;

/// One check: a program and how to search it.
#[derive(Debug)]
pub struct Check<'a> {
    /// The runtime's file.
    pub runtime: PathBuf,
    /// The program.
    pub program: &'a Program,
    /// What to do.
    pub options: &'a Options,
    /// Limits of executions; its step limit and hang time are those of the options.
    pub limits: Limits,
    /// Where an execution was that took long to compute, and went on.
    computed: OnceLock<Stuck>,
}

impl<'a> Check<'a> {
    /// A check of a program.
    pub fn new(runtime: PathBuf, program: &'a Program, options: &'a Options, limits: Limits) -> Check<'a> {
        Check { runtime, program, options, limits, computed: OnceLock::new() }
    }
}

impl Check<'_> {
    /// Runs the search until it ends. `tell` is called now and then. What has no room in memory goes to files in the
    /// directory `aside`.
    pub fn run(
        &self,
        search: Search,
        mut tally: Tally,
        aside: &Path,
        mut keeper: Option<Keeper>,
        tell: &mut dyn FnMut(&Progress<'_>),
    ) -> Result<Outcome> {
        if self.opens(&tally) {
            Arc::make_mut(&mut tally.points).all = true;
        }
        if let Some(keeper) = &mut keeper {
            // A search that cannot be saved is not begun.
            keeper.save(&tally, &search)?;
        }
        tally.forget_deadline();
        self.warm_up()?;
        let shared = Shared::default();
        std::thread::scope(|scope| {
            for number in 0..self.options.jobs.max(1) {
                let shared = &shared;
                match std::thread::Builder::new().spawn_scoped(scope, move || self.work(shared, number)) {
                    Ok(_) => {}
                    Err(error) if number == 0 => return Err(sys::no_thread(error)),
                    // The result is the same with fewer.
                    Err(_) => break,
                }
            }
            let room = Room { bytes: self.options.memory, spill: Arc::new(Disk::new(aside)) };
            let began = Instant::now();
            let mut driver = Driver {
                check: self,
                shared: &shared,
                search,
                tally,
                room,
                keeper,
                began,
                batches: 0,
                told: began,
            };
            let ended = driver.drive(tell);
            shared.lock().closed = true;
            shared.work.notify_all();
            let error = match ended {
                Ok(ended) => return driver.conclude(ended),
                Err(error) => error,
            };
            driver.save();
            // What was found is not lost.
            let found = !driver.tally.findings.is_empty() || !driver.tally.races.reports().is_empty();
            if !found && driver.search.status().trouble.is_none() {
                return Err(error);
            }
            Ok(Outcome { error: Some(error), ..driver.conclude(Ended::Failed)? })
        })
    }

    /// Runs the default schedule as often as asked for, without counting it.
    fn warm_up(&self) -> Result<()> {
        if self.options.warm_up == 0 {
            return Ok(());
        }
        let plan = Plan::new(Policy::Default);
        let mut zygote = Zygote::start(&self.runtime, self.program, &self.limits, Output::Dropped)?;
        for _ in 0..self.options.warm_up {
            match zygote.run(Job::Plan(&plan), Detail::End, None) {
                Ok(run) if run.execution.end == End::Stuck => return Ok(()),
                // The search will notice that, too.
                Err(error) if error.is_cut() => return Ok(()),
                other => drop(other?),
            }
        }
        Ok(())
    }

    /// Whether the program is a test program that says it ran no test. What cannot be run says nothing.
    fn ran_no_test(&self) -> bool {
        let plan = Plan::new(Policy::Default);
        let look = || self.camera(&self.limits).shoot(Job::Plan(&plan));
        self.program.test_program && look().is_ok_and(|closeup| test_program::ran_none(&closeup.output))
    }

    fn judge(&self, run: &Run) -> Option<Verdict> {
        judge::judge(run, self.options.expect_exit)
    }

    /// The accesses at these places, as the program has them.
    pub fn points_at(&self, places: &[CodePlace]) -> Result<Points> {
        let zygote = Zygote::start(&self.runtime, self.program, &self.limits, Output::Dropped)?;
        Ok(Points::resolve(places, zygote.pid()))
    }

    /// The places of accesses, as they are written down.
    pub fn places_of(&self, points: &Arc<Points>) -> Result<Vec<CodePlace>> {
        let deadline = self.limits.deadline.map(Deadline::extended);
        let limits = Limits { points: points.clone(), deadline, ..self.limits.clone() };
        let mut symbols = Symbols::new();
        Ok(Zygote::start(&self.runtime, self.program, &limits, Output::Dropped)?.points(&mut symbols))
    }

    /// The camera for a close look.
    pub fn camera<'a>(&'a self, limits: &'a Limits) -> Camera<'a> {
        Camera {
            runtime: &self.runtime,
            program: self.program,
            limits,
            expect_exit: self.options.expect_exit,
            output: Output::Kept,
            trace: false,
        }
    }
}
