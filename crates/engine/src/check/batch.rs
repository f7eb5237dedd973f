//! Runs the batch loop: takes plans from the search in batches, gives them to the workers, and passes the
//! results on in the order of the plans.
//!
//! The size of a batch does not depend on the number of workers, and results after the first one that ends
//! the search are discarded. So the same program, strategy and seed give the same result on any number of
//! cores.

use super::notice::{Notice, Notify, Progress};
use super::outcome::Ended;
use super::plan_result::PlanResult;
use super::results::{self, Done};
use super::saved::Autosave;
use super::state::State;
use super::worker::Shared;
use crate::error::{Error, Result};
use crate::process::slots::Detail;
use heisen_search::{Status, Strategy, Touches};
use heisen_trace::Plan;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// The size of the first batch, and the largest sizes. Plans of a sampler do not depend on each other, so
/// each of its batches is twice as large as the one before. A systematic search explores in the order of its
/// results, so its batches remain small compared to the executions already done.
const BATCH: usize = 64;
const LARGEST_BATCH: usize = 4096;
const LARGEST_SYSTEMATIC: usize = 1024;
/// How often progress is reported.
const REPORT: Duration = Duration::from_millis(100);

/// The loop over the batches of a search.
pub(super) struct BatchLoop<'s, 'a> {
    state: &'s mut State<'a>,
    shared: &'s Shared,
    autosave: Option<Autosave>,
    /// The number of batches so far.
    batches: u32,
    /// When progress was last reported.
    reported: Instant,
}

impl<'s, 'a> BatchLoop<'s, 'a> {
    pub(super) fn new(
        state: &'s mut State<'a>,
        shared: &'s Shared,
        autosave: Option<Autosave>,
    ) -> BatchLoop<'s, 'a> {
        BatchLoop { state, shared, autosave, batches: 0, reported: Instant::now() }
    }

    /// Runs batches until the search ends. A search that cannot go on is saved first.
    pub(super) fn run(&mut self, notify: &mut Notify<'_>) -> Result<Ended> {
        let ended = self.run_batches(notify);
        if ended.is_err() {
            self.save(notify);
        }
        ended
    }

    fn run_batches(&mut self, notify: &mut Notify<'_>) -> Result<Ended> {
        // The results of the last batch, if the next plans do not depend on them. The next plans are drawn
        // before these results are taken, on any number of workers. If there are several, they run meanwhile.
        let mut done: Option<Done> = None;
        // The plans of the next batch, if they are already drawn, so that no worker waits for them.
        let mut drawn: Vec<Plan> = Vec::new();
        loop {
            let status = self.state.search.status();
            if let Some(trouble) = &status.trouble {
                return Err(Error::Input(format!(
                    "the plans that wait take more memory than --memory allows, and {trouble}; raise --memory, or make \
                     room on the disk"
                )));
            }
            let over = self.state.case.config.over();
            let uncounted = done.as_ref().map_or(0, |(plans, _)| plans.len());
            let mut plans = std::mem::take(&mut drawn);
            if over.is_some() {
                plans.drain(..).for_each(|plan| self.state.search.give_back_unrun(&plan));
            } else if plans.is_empty() {
                plans = self.draw(&status, uncounted);
            }
            if plans.is_empty() {
                // The next plans may depend on results that are not taken yet.
                match done.take() {
                    Some(done) => match results::take_batch(self.state, done)? {
                        Some(ended) => return Ok(ended),
                        None => continue,
                    },
                    None if over == Some(Error::Interrupted) => return Ok(Ended::Interrupted),
                    None if over.is_some() || self.state.executions_left(0) == Some(0) => {
                        return Ok(Ended::Limit);
                    }
                    // It has no plan because it was halted.
                    None if self.state.case.config.over().is_some() => continue,
                    None if self.state.search.status().trouble.is_some() => continue,
                    None => return Ok(Ended::Exhausted),
                }
            }
            let several = self.state.case.options.jobs > 1;
            // With one worker, results are taken before the next batch starts: taking them meanwhile would
            // need a second processor.
            if !several && let Some(ended) = self.take_if_any(done.take())? {
                plans.iter().for_each(|plan| self.state.search.give_back_unrun(plan));
                return Ok(ended);
            }
            let (draws_early, running) = (self.draws_early(), plans.len());
            self.start(plans);
            if let Some(ended) = self.take_if_any(done.take())? {
                self.call_off();
                return Ok(ended);
            }
            if several && draws_early {
                let status = self.state.search.status();
                drawn = self.draw(&status, running);
            }
            let results = self.wait(&status, notify);
            if draws_early {
                done = Some(results);
            } else if let Some(ended) = results::take_batch(self.state, results)? {
                return Ok(ended);
            }
        }
    }

    /// Whether plans are drawn before the results of the last batch are taken. Not in short searches, where
    /// each result should count soon, and not where coverage needs all results in one order.
    fn draws_early(&self) -> bool {
        let largest = BATCH << self.batches >= LARGEST_BATCH;
        let State { search, tally, .. } = &*self.state;
        largest && search.samples() && !search.counts_steps() && tally.coverage.is_none()
    }

    /// The plans of the next batch, if there are any yet. `uncounted` executions have begun but are not in
    /// the tally.
    fn draw(&mut self, status: &Status, uncounted: usize) -> Vec<Plan> {
        let State { search, tally, case, .. } = &mut *self.state;
        let batch = match status.returned {
            0 if search.samples() => (BATCH << self.batches).min(LARGEST_BATCH),
            0 => (tally.executions as usize / BATCH).clamp(BATCH, LARGEST_SYSTEMATIC),
            // The rest of a batch that was cut short comes first and alone, so that the search continues as
            // if it had not been cut.
            returned => returned,
        };
        let config = &case.config;
        let room =
            self.state.executions_left(uncounted).map_or(batch, |left| left.min(batch as u64) as usize);
        let search = &mut self.state.search;
        // Making a plan may take long. The first plan is always made: drawing no plan would mean the end of
        // the search.
        let mut first = true;
        let mut draw = || {
            let draws = std::mem::take(&mut first) || config.over().is_none();
            draws.then(|| search.next()).flatten()
        };
        let plans: Vec<Plan> = std::iter::from_fn(&mut draw).take(room).collect();
        if !plans.is_empty() {
            self.batches = (self.batches + 1).min(LARGEST_BATCH.ilog2());
        }
        plans
    }

    fn take_if_any(&mut self, done: Option<Done>) -> Result<Option<Ended>> {
        done.map_or(Ok(None), |done| results::take_batch(self.state, done))
    }

    /// Gives plans to the workers.
    fn start(&mut self, plans: Vec<Plan>) {
        let State { search, tally, .. } = &*self.state;
        let mut batch = self.shared.lock();
        batch.next = 0;
        batch.cut = plans.len();
        batch.first_alone = tally.executions == 0;
        batch.results = plans.iter().map(|_| None).collect();
        batch.plans = plans.into();
        batch.points = tally.points.clone();
        batch.detail = match search.needs_touches() {
            _ if search.needs_symbolic() => Detail::Symbolic,
            _ if tally.coverage.is_some() || tally.points.all => Detail::Places,
            Touches::Places => Detail::Places,
            Touches::All => Detail::Touches,
            Touches::States => Detail::States,
            Touches::None if search.needs_decisions() => Detail::Decisions,
            Touches::None => Detail::End,
        };
        self.shared.work.notify_all();
    }

    /// Waits for the workers to end the batch.
    fn wait(&mut self, status: &Status, notify: &mut Notify<'_>) -> Done {
        if self.autosave.as_ref().is_some_and(Autosave::is_due) {
            // This thread has nothing else to do while the workers run. Plans that the workers have are saved
            // as not run.
            self.save(notify);
        }
        let mut batch = self.shared.lock();
        while batch.running > 0 || batch.next < batch.cut {
            let wait = self.shared.done.wait_timeout(batch, REPORT);
            batch = wait.unwrap_or_else(PoisonError::into_inner).0;
            if self.state.case.config.over().is_some() {
                batch.cut = batch.cut.min(batch.next);
            }
            report_progress(self.state, &mut self.reported, &batch.results, status, notify);
        }
        report_progress(self.state, &mut self.reported, &batch.results, status, notify);
        self.state.tally.lost += std::mem::take(&mut batch.lost);
        (std::mem::take(&mut batch.plans), std::mem::take(&mut batch.results))
    }

    /// Discards the batch that the workers are running.
    fn call_off(&mut self) {
        let mut batch = self.shared.lock();
        batch.cut = batch.cut.min(batch.next);
        while batch.running > 0 {
            batch = self.shared.done.wait(batch).unwrap_or_else(PoisonError::into_inner);
        }
        for plan in std::mem::take(&mut batch.plans).iter() {
            self.state.search.give_back_unrun(plan);
        }
    }

    /// Saves the search, if the user asked for it.
    fn save(&mut self, notify: &mut Notify<'_>) {
        if let Some(autosave) = &mut self.autosave {
            self.state.count_time();
            if let Some(error) = autosave.try_to_save(&self.state.tally, &self.state.search) {
                notify(Notice::NotSaved(&error));
            }
        }
    }
}

/// Reports progress if the last report is old enough: most batches take less time.
fn report_progress(
    state: &State<'_>,
    reported: &mut Instant,
    results: &[Option<PlanResult>],
    status: &Status,
    notify: &mut Notify<'_>,
) {
    if reported.elapsed() < REPORT {
        return;
    }
    *reported = Instant::now();
    let tally = &state.tally;
    notify(Notice::Progress(&Progress {
        executions: tally.executions + results.iter().flatten().count() as u64,
        limit: state.case.options.executions,
        time: state.time(),
        status,
        findings: tally.findings.len() + tally.races.reports().len(),
    }));
}
