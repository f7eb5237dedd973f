//! A worker: takes plans off the batch, has its zygote run them, and puts the results where they belong.
//!
//! Workers share nothing but the batch. One that fails, or whose zygote is stuck, only cuts the batch short: what comes of
//! that is decided by who takes the results, in the order of the plans.

use super::Check;
use super::plan_result::{Executed, Told};
use super::stuck::{Stuck, StuckWatcher};
use crate::check::access_points::Points;
use crate::error::Result;
use crate::process::slots::{Detail, Job, Run};
use crate::process::zygote::{Output, RunConfig, Zygote};
use heisen_trace::{End, Plan};
use heisen_wire::MAX_SLOTS;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Fewer plans than these are not handed to a worker, where there are more, nor such as take less time: to pass the turn costs as
/// much as some executions.
const FEWEST: usize = 8;
const SHORTEST: Duration = Duration::from_micros(250);
/// How often a parked program may be gone before what it has to run is given up.
const MOST_LOST: u64 = 2;

/// A batch at work.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) plans: Arc<[Plan]>,
    /// The next plan to be taken.
    pub(super) next: usize,
    /// Plans from here on need not be run: one before has failed, or time is over.
    pub(super) cut: usize,
    pub(super) results: Vec<Option<Executed>>,
    pub(super) running: usize,
    pub(super) closed: bool,
    /// How often a parked program was gone.
    pub(super) lost: u64,
    /// Whether the first plan is run alone, before all others: it may show that there is nothing to explore.
    pub(super) first_alone: bool,
    /// What they are to log.
    pub(super) detail: Detail,
    /// Accesses that are scheduling points in these executions.
    pub(super) points: Arc<Points>,
}

/// What the workers and the driver share.
#[derive(Default)]
pub(super) struct Shared {
    batch: Mutex<Batch>,
    /// There is work, or no more.
    pub(super) work: Condvar,
    /// A plan is done.
    pub(super) done: Condvar,
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, Batch> {
        self.batch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Check<'_> {
    /// What one worker does.
    pub(super) fn work(&self, shared: &Shared, number: usize) {
        let mut config = RunConfig { worker: number, ..self.config.clone() };
        let mut zygote: Option<Zygote> = None;
        let mut fewest = FEWEST;
        let mut batch = shared.lock();
        loop {
            if batch.closed {
                return;
            }
            if batch.next >= batch.cut || batch.first_alone && batch.next > 0 {
                batch = shared.work.wait(batch).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            // A share of what is left, so that the workers end at about the same time.
            let left = batch.cut - batch.next;
            let share = match self.options.jobs {
                _ if batch.first_alone => 1,
                0 | 1 => left,
                jobs => left.div_ceil(2 * jobs).max(fewest.min(left)),
            };
            let share = share.min(MAX_SLOTS);
            let first = batch.next;
            batch.next += share;
            batch.running += 1;
            let plans = batch.plans.clone();
            config.points = batch.points.clone();
            let detail = batch.detail;
            drop(batch);
            let began = Instant::now();
            let (results, lost) =
                self.execute(&mut config, &mut zygote, &plans[first..first + share], detail);
            let in_time = SHORTEST.as_nanos() * share as u128 / began.elapsed().as_nanos().max(1);
            fewest = (in_time as usize).clamp(FEWEST, MAX_SLOTS);
            if results.iter().any(Executed::has_failed) {
                zygote = None;
            }
            batch = shared.lock();
            batch.lost += lost;
            for (index, result) in (first..).zip(results) {
                if result.ends_search(self.options.keep_going) {
                    batch.cut = batch.cut.min(index + 1);
                }
                batch.results[index] = Some(result);
            }
            batch.running -= 1;
            if std::mem::take(&mut batch.first_alone) {
                shared.work.notify_all();
            }
            if batch.running == 0 && batch.next >= batch.cut {
                shared.done.notify_all();
            }
        }
    }

    /// Runs plans in order. Ends early, with fewer results than plans, after an error or a stuck execution. If the parked
    /// program is gone, it is started again: someone may have killed it. If that is not all, an execution may have, by
    /// writing to where others begin; so those that follow have processes of their own. Tells how often it was gone.
    fn execute(
        &self,
        config: &mut RunConfig,
        slot: &mut Option<Zygote>,
        plans: &[Plan],
        detail: Detail,
    ) -> (Vec<Executed>, u64) {
        let mut results = Vec::new();
        let mut lost = 0;
        while results.len() < plans.len() {
            let more = self.execute_some(config, slot, &plans[results.len()..], detail, &mut results);
            if let Err(error) = more {
                if slot.as_ref().is_some_and(Zygote::is_gone) && lost < MOST_LOST {
                    *slot = None;
                    lost += 1;
                    config.in_process &= lost < MOST_LOST;
                    continue;
                }
                results.push(Executed::Failed(error));
                break;
            }
            if results.iter().any(|result| result.is_stuck() || result.has_failed()) {
                break;
            }
        }
        (results, lost)
    }

    fn execute_some(
        &self,
        config: &RunConfig,
        zygote: &mut Option<Zygote>,
        plans: &[Plan],
        detail: Detail,
        out: &mut Vec<Executed>,
    ) -> Result<()> {
        let zygote = match zygote {
            Some(zygote) => {
                zygote.set_points(&config.points);
                zygote
            }
            None => zygote.insert(Zygote::start(&self.runtime, self.program, config, Output::Dropped)?),
        };
        let jobs: Vec<Job<'_>> = plans.iter().map(Job::Plan).collect();
        let mut watcher = StuckWatcher { check: self, seen: None };
        let mut turn = zygote.take_turn(&jobs, detail, Some(&mut watcher))?;
        let cut = turn.cut.take();
        let first = out.len();
        let mut again = Vec::new();
        for (number, plan) in plans.iter().enumerate().take(turn.ran) {
            if let Some(quiet) = zygote.read_quiet(&turn, number, self.options.expect_exit) {
                out.push(Executed::Quiet(quiet));
                continue;
            }
            let run = zygote.read(&turn, number)?;
            // Once more, as that may pass (CHESS, OSDI'08, section 4.2); and someone may have killed it.
            if run.execution.diverged.is_some() || run.execution.end == End::Signal(libc::SIGKILL) {
                again.push((number, plan));
            }
            out.push(self.executed(run, zygote, &mut watcher));
        }
        for (number, plan) in again {
            match zygote.run(Job::Plan(plan), detail, Some(&mut watcher)) {
                Ok(run) => out[first + number] = self.executed(run, zygote, &mut watcher),
                Err(error) => {
                    // Results after the first missing one are discarded.
                    out.truncate(first + number);
                    return Err(error);
                }
            }
        }
        out.extend(cut.map(Executed::Cut));
        // It went on.
        if let Some(computed) = watcher.seen.take() {
            self.computed.set(computed).ok();
        }
        Ok(())
    }

    fn executed(&self, run: Run, zygote: &Zygote, watcher: &mut StuckWatcher<'_>) -> Executed {
        let stuck = (run.execution.end == End::Stuck)
            .then(|| Stuck { spins: zygote.was_spinning(), ..watcher.seen.take().unwrap_or_default() });
        let verdict = self.judge(&run);
        Executed::Told(Box::new(Told { run, stuck, verdict }))
    }
}
