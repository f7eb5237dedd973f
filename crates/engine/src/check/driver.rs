//! The driver: takes plans from the search in batches, gives them to the workers, and takes their results in the order of
//! the plans.
//!
//! Batches have the same size whatever the number of workers, and what comes after the first result that ends the search
//! is as if it had not been run: so the same program, strategy and seed give the same result on any number of cores.

use super::dpor_opening;
use super::failure::Look;
use super::plan_result::{Executed, Told};
use super::worker::Shared;
use super::{Check, Ended, MAX_FINDINGS, Notice, Notify, Progress, Races, Tally};
use crate::check::saved::Keeper;
use crate::error::{Error, Result};
use crate::process::deadline::Deadline;
use crate::process::slots::{Detail, Run};
use crate::process::zygote::RunConfig;
use heisen_search::{Halt, Room, Search, Status, Strategy, Touches};
use heisen_trace::{Note, Plan};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// Plans that are out at a time: so many, and of samplers, whose plans do not depend on each other, twice as many in each batch,
/// up to the other. A systematic search explores in the order of its results, so its batches stay small beside what it has done.
const BATCH: usize = 64;
const LARGEST_BATCH: usize = 4096;
const LARGEST_SYSTEMATIC: usize = 1024;
/// How long results that are there may be taken when time is over. Of most programs, many are taken in that time.
const LAST_RESULTS: Duration = Duration::from_millis(500);
/// How often progress is reported.
const REPORT: Duration = Duration::from_millis(100);

/// A batch that was run: its plans, and what came of each, if it was run.
type Done = (Arc<[Plan]>, Vec<Option<Executed>>);

/// The search, what it has done so far, and those who do the work.
pub(super) struct Driver<'a> {
    pub(super) check: &'a Check<'a>,
    pub(super) shared: &'a Shared,
    pub(super) search: Search,
    pub(super) tally: Tally,
    /// How much memory the search may take.
    pub(super) room: Room,
    /// Who saves the search while it runs.
    pub(super) keeper: Option<Keeper>,
    pub(super) began: Instant,
    /// How many batches there were.
    pub(super) batches: u32,
    /// When progress was reported last.
    pub(super) reported: Instant,
}

impl Driver<'_> {
    /// Runs batches until the search ends.
    pub(super) fn drive(&mut self, notify: &mut Notify<'_>) -> Result<Ended> {
        self.set_up();
        // Of the batch before, if the next plans do not depend on it. So they are drawn before its results are taken, on any
        // number of workers; with more than one, these have something to do meanwhile.
        let mut done: Option<Done> = None;
        // The plans of the next batch, if they are drawn already: workers that are done with one do not wait for the next.
        let mut drawn: Vec<Plan> = Vec::new();
        loop {
            let status = self.search.status();
            if let Some(trouble) = &status.trouble {
                return Err(Error::Input(format!(
                    "the plans that wait take more memory than --memory allows, and {trouble}; raise --memory, or make \
                     room on the disk"
                )));
            }
            let over = self.check.config.over();
            let uncounted = done.as_ref().map_or(0, |(plans, _)| plans.len());
            let mut plans = std::mem::take(&mut drawn);
            if over.is_some() {
                plans.drain(..).for_each(|plan| self.search.give_back_unrun(&plan));
            } else if plans.is_empty() {
                plans = self.draw(&status, uncounted);
            }
            if plans.is_empty() {
                // What comes next may depend on what is not taken yet.
                match done.take() {
                    Some(done) => match self.take(done)? {
                        Some(ended) => return Ok(ended),
                        None => continue,
                    },
                    None if over == Some(Error::Interrupted) => return Ok(Ended::Interrupted),
                    None if over.is_some() || self.left(0) == Some(0) => return Ok(Ended::Limit),
                    // It has no plan as it was halted.
                    None if self.check.config.over().is_some() => continue,
                    None if self.search.status().trouble.is_some() => continue,
                    None => return Ok(Ended::Exhausted),
                }
            }
            let several = self.check.options.jobs > 1;
            // One worker is one processor: it waits.
            if !several && let Some(ended) = self.take_if_any(done.take())? {
                plans.iter().for_each(|plan| self.search.give_back_unrun(plan));
                return Ok(ended);
            }
            let (ahead, running) = (self.runs_ahead(), plans.len());
            self.start(plans);
            if let Some(ended) = self.take_if_any(done.take())? {
                self.call_off();
                return Ok(ended);
            }
            if several && ahead {
                let status = self.search.status();
                drawn = self.draw(&status, running);
            }
            let results = self.wait(&status, notify);
            if ahead {
                done = Some(results);
            } else if let Some(ended) = self.take(results)? {
                return Ok(ended);
            }
        }
    }

    /// Tells a search that was just made or read what it may use.
    fn set_up(&mut self) {
        self.search.bound_memory(self.room.clone());
        let config = self.check.config.clone();
        self.search.heed(Halt::when(move || config.over().is_some()));
    }

    /// Whether plans are drawn before the results of the batch before are taken. Not in short searches, in which what an
    /// execution shows should count soon, nor where all of them are to be told in one order.
    fn runs_ahead(&self) -> bool {
        let largest = BATCH << self.batches >= LARGEST_BATCH;
        largest && self.search.samples() && !self.search.counts_steps() && self.tally.coverage.is_none()
    }

    /// How many executions may still be begun, if so many are done and not counted yet.
    pub(super) fn left(&self, uncounted: usize) -> Option<u64> {
        let executions = self.tally.executions + uncounted as u64;
        self.check.options.executions.map(|most| most.saturating_sub(executions))
    }

    /// The plans of the next batch, if there are any yet; so many executions are begun and not counted.
    fn draw(&mut self, status: &Status, uncounted: usize) -> Vec<Plan> {
        let batch = match status.returned {
            0 if self.search.samples() => (BATCH << self.batches).min(LARGEST_BATCH),
            0 => (self.tally.executions as usize / BATCH).clamp(BATCH, LARGEST_SYSTEMATIC),
            // What is left of a batch that was cut short comes first, and alone: then all is as if it had not been.
            returned => returned,
        };
        let room = self.left(uncounted).map_or(batch, |left| left.min(batch as u64) as usize);
        // To make a plan may take long, too. The first is made anyway: no plan at all would be the end of the search.
        let config = &self.check.config;
        let mut first = true;
        let mut draw = || {
            let draws = std::mem::take(&mut first) || config.over().is_none();
            draws.then(|| self.search.next()).flatten()
        };
        let plans: Vec<Plan> = std::iter::from_fn(&mut draw).take(room).collect();
        if !plans.is_empty() {
            self.batches = (self.batches + 1).min(LARGEST_BATCH.ilog2());
        }
        plans
    }

    fn take_if_any(&mut self, done: Option<Done>) -> Result<Option<Ended>> {
        done.map_or(Ok(None), |done| self.take(done))
    }

    /// Takes the results of a batch, and what follows from accesses that became scheduling points by them.
    fn take(&mut self, (plans, results): Done) -> Result<Option<Ended>> {
        let before = self.tally.points.clone();
        if let Some(ended) = self.take_results(&plans, results)? {
            return Ok(Some(ended));
        }
        if self.tally.points.all && self.has_opened() {
            Arc::make_mut(&mut self.tally.points).all = false;
        }
        let points = &self.tally.points;
        let anew = if before.all { !points.all } else { points.len() != before.len() };
        if anew && let Some(coverage) = &mut self.tally.coverage {
            coverage.start_over();
        }
        if anew && self.search.counts_steps() {
            // Steps are counted anew.
            self.search = self.check.options.search(self.check.program);
            self.set_up();
            self.tally.restarts += 1;
            self.tally.classes.clear();
        }
        Ok(None)
    }

    pub(super) fn time(&self) -> Duration {
        self.tally.time + self.began.elapsed()
    }

    /// Saves the search, if anyone wants that.
    pub(super) fn save(&mut self, notify: &mut Notify<'_>) {
        if let Some(keeper) = &mut self.keeper {
            self.tally.time += self.began.elapsed();
            self.began = Instant::now();
            if let Some(error) = keeper.try_to_save(&self.tally, &self.search) {
                notify(Notice::NotSaved(&error));
            }
        }
    }

    /// Gives plans to the workers.
    fn start(&mut self, plans: Vec<Plan>) {
        let mut batch = self.shared.lock();
        batch.next = 0;
        batch.cut = plans.len();
        batch.first_alone = self.tally.executions == 0;
        batch.results = plans.iter().map(|_| None).collect();
        batch.plans = plans.into();
        batch.points = self.tally.points.clone();
        batch.detail = match self.search.needs_touches() {
            _ if self.tally.coverage.is_some() || self.tally.points.all => Detail::Places,
            Touches::Places => Detail::Places,
            Touches::All => Detail::Touches,
            Touches::States => Detail::States,
            Touches::None if self.search.needs_decisions() => Detail::Decisions,
            Touches::None => Detail::End,
        };
        self.shared.work.notify_all();
    }

    /// Waits for the workers to be done.
    fn wait(&mut self, status: &Status, notify: &mut Notify<'_>) -> Done {
        if self.keeper.as_ref().is_some_and(Keeper::is_due) {
            // There is nothing else to do here while the workers run. Plans that are out are saved as not run.
            self.save(notify);
        }
        let mut batch = self.shared.lock();
        while batch.running > 0 || batch.next < batch.cut {
            let wait = self.shared.done.wait_timeout(batch, REPORT);
            batch = wait.unwrap_or_else(PoisonError::into_inner).0;
            if self.check.config.over().is_some() {
                batch.cut = batch.cut.min(batch.next);
            }
            self.report_progress(&batch.results, status, notify);
        }
        self.report_progress(&batch.results, status, notify);
        self.tally.lost += std::mem::take(&mut batch.lost);
        (std::mem::take(&mut batch.plans), std::mem::take(&mut batch.results))
    }

    /// Reports progress if the last report is old enough: most batches take less time.
    fn report_progress(&mut self, results: &[Option<Executed>], status: &Status, notify: &mut Notify<'_>) {
        if self.reported.elapsed() < REPORT {
            return;
        }
        self.reported = Instant::now();
        notify(Notice::Progress(&Progress {
            executions: self.tally.executions + results.iter().flatten().count() as u64,
            limit: self.check.options.executions,
            time: self.time(),
            status,
            findings: self.tally.findings.len() + self.tally.races.reports().len(),
        }));
    }

    /// The batch that the workers have is as if it had not been.
    fn call_off(&mut self) {
        let mut batch = self.shared.lock();
        batch.cut = batch.cut.min(batch.next);
        while batch.running > 0 {
            batch = self.shared.done.wait(batch).unwrap_or_else(PoisonError::into_inner);
        }
        for plan in std::mem::take(&mut batch.plans).iter() {
            self.search.give_back_unrun(plan);
        }
    }

    /// Takes the results in order; those after the first that ends the search are as if they had not been run.
    fn take_results(&mut self, plans: &[Plan], results: Vec<Option<Executed>>) -> Result<Option<Ended>> {
        let mut ended = None;
        let mut points = (*self.tally.points).clone();
        let (mut unrun, mut outgrown) = (false, false);
        let began = Instant::now();
        for (plan, result) in plans.iter().zip(results) {
            let over = self.check.config.over().is_some();
            let late = over && began.elapsed() > LAST_RESULTS;
            // The order in which results come in decides what a systematic search does next: it shall not depend on when
            // one was interrupted.
            let missing = unrun && !self.search.samples();
            if let Some(cut) = result.as_ref().and_then(Executed::cut_by_time) {
                self.tally.cut += 1;
                self.tally.awaited = self.tally.awaited.take().or_else(|| cut.awaited());
            }
            let Told { mut run, stuck, verdict } = match result.map(Executed::open) {
                _ if ended.is_some() || outgrown => {
                    self.search.give_back_unrun(plan);
                    continue;
                }
                Some(Ok(told)) if !late && !missing => told,
                Some(Err(error)) if !missing && !error.is_cut() => return Err(error),
                result => {
                    self.search.give_back_unrun(plan);
                    unrun = true;
                    // What went wrong is told also if there was no time for all that came before it.
                    if let Some(Ok(Told { verdict: Some(verdict), .. })) = result
                        && over
                        && self.found(plan, verdict)? == Look::Confirmed
                        && self.is_enough()
                    {
                        ended = Some(Ended::Found);
                    }
                    continue;
                }
            };
            self.tally.executions += 1;
            self.tally.steps += u64::from(run.execution.steps);
            self.tally.threads = self.tally.threads.max(run.execution.threads);
            for conflict in &run.conflicts {
                points.learn(conflict);
            }
            if points.all && dpor_opening::outgrows(&run) {
                // It has shown what conflicts, and no more comes of it.
                points.all = false;
                self.search.give_back_unrun(plan);
                outgrown = true;
                continue;
            }
            if points.all {
                self.tally.needless += dpor_opening::needless(&run, &points);
            }
            // One that was asked for all it touches need not have room for that.
            let told = |note: &&Note| !(plan.touches && **note == Note::LogFull);
            for &note in run.execution.notes.iter().filter(told) {
                self.tally.notes |= 1 << (note as u8);
            }
            let failed = verdict.is_some() && stuck.is_none();
            if let Some(verdict) = verdict.filter(|_| failed) {
                match self.found(plan, verdict)? {
                    Look::Confirmed if self.is_enough() => ended = Some(Ended::Found),
                    // With nobody outside, the others would wait for as long, too.
                    Look::Idle if self.tally.notes & 1 << (Note::Outside as u8) == 0 => {
                        ended = Some(Ended::Idle);
                    }
                    Look::Confirmed | Look::Unconfirmed | Look::TooLong | Look::Idle => {}
                    Look::Cut => {
                        // A search that is resumed runs it again.
                        self.search.give_back_unrun(plan);
                        unrun = true;
                        continue;
                    }
                }
            }
            self.cover(plan, &mut run);
            self.search.done(plan, &run.execution);
            self.tally.ahead += u64::from(run.skipped.is_some());
            self.tally.skipped += u64::from(run.skipped.unwrap_or(0));
            match run.forked {
                None => self.tally.undone += 1,
                Some(why) => self.tally.forked = why,
            }
            // Samplers count theirs on their own, as they ask only some.
            self.tally.classes.extend(run.execution.fingerprint.filter(|_| !self.search.samples()));
            self.tally.instrumented |= run.instrumented;
            if points.is_full() {
                self.tally.notes |= 1 << (Note::TooManyPoints as u8);
            }
            if run.execution.diverged.is_some() {
                self.locate(plan, run.tail.diverged);
            }
            if let Some(stuck) = stuck {
                if self.tally.findings.is_empty() {
                    return Err(self.describe_stuck(&stuck));
                }
                ended = Some(Ended::Found);
            }
            self.tried(plan, failed);
            // What went wrong comes first; where the search stops at either, that is enough.
            let enough = failed && ended.is_some() && self.check.options.races == Races::Stop;
            if !enough && self.take_races(plan, &run)? {
                ended = Some(Ended::Found);
            }
            // All others would be the same; one that failed is looked at again where failures are not to be relied on.
            if ended.is_none() && self.tally.is_alone() && self.tally.unconfirmed == 0 {
                ended = Some(Ended::Exhausted);
            }
        }
        if points != *self.tally.points {
            self.tally.points = Arc::new(points);
        }
        Ok(ended)
    }

    /// Whether a finding ends the search.
    fn is_enough(&self) -> bool {
        !self.check.options.keep_going || self.tally.findings.len() >= MAX_FINDINGS
    }

    /// Counts what an execution has covered, if that is asked for.
    fn cover(&mut self, plan: &Plan, run: &mut Run) {
        let Some(coverage) = &mut self.tally.coverage else { return };
        coverage.take(run, self.tally.time + self.began.elapsed());
        if self.search.samples() && !plan.tells_class() {
            // A sampler must not learn more than without: it would choose otherwise.
            run.execution.fingerprint = None;
        }
        if self.search.samples() && !plan.touches {
            run.execution.touches.clear();
        }
    }

    /// How close-ups of executions of this batch run.
    pub(super) fn run_config(&self) -> RunConfig {
        let config = self.check.config.clone();
        let deadline = config.deadline.map(Deadline::extended);
        RunConfig { points: self.tally.points.clone(), deadline, ..config }
    }
}
