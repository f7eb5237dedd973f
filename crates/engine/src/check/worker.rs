//! Runs a worker: takes plans from the batch, runs them in its zygote, and stores the results in the batch.
//!
//! Workers share only the batch. A worker that fails, or whose zygote is stuck, only cuts the batch short.
//! The result taker decides what follows from that, in the order of the plans.

use super::case::Case;
use super::hang::{Hang, HangWatcher};
use super::plan_result::{FullResult, PlanResult};
use crate::error::Result;
use crate::platform::sys;
use crate::process::access_points::Points;
use crate::process::run_config::{Output, RunConfig};
use crate::process::slots::{Detail, Job, Run};
use crate::process::zygote::Zygote;
use heisen_trace::{End, Plan};
use heisen_wire::MAX_SLOTS;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Scope;
use std::time::{Duration, Instant};

/// A worker takes at least this many plans at once, if there are as many, and enough for at least this time.
/// A turn of the zygote costs as much as some executions.
const FEWEST: usize = 8;
const SHORTEST: Duration = Duration::from_micros(250);
/// How often a zygote may be gone before the worker gives up on its plans.
const MOST_LOST: u64 = 2;

/// The current batch.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) plans: Arc<[Plan]>,
    /// The next plan to be taken.
    pub(super) next: usize,
    /// Plans from here on need not be run: an earlier one has failed, or the time is over.
    pub(super) cut: usize,
    pub(super) results: Vec<Option<PlanResult>>,
    pub(super) running: usize,
    pub(super) closed: bool,
    /// How often a zygote was gone.
    pub(super) lost: u64,
    /// Whether the first plan is run alone, before all others: it may show that there is nothing to explore.
    pub(super) first_alone: bool,
    /// What the executions log.
    pub(super) detail: Detail,
    /// The access points of these executions.
    pub(super) points: Arc<Points>,
}

/// The data that the workers and the batch loop share.
#[derive(Default)]
pub(super) struct Shared {
    batch: Mutex<Batch>,
    /// Signalled when there is work, or when there will be no more.
    pub(super) work: Condvar,
    /// Signalled when a plan is done.
    pub(super) done: Condvar,
}

impl Shared {
    /// Ends the workers.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.work.notify_all();
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Batch> {
        self.batch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts the workers of a check, as many as `--jobs` says.
pub(super) fn start_all<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    case: &'env Case<'env>,
    shared: &'env Shared,
) -> Result<()> {
    for number in 0..case.options.jobs.max(1) {
        let work = move || Worker::new(case, number).work(shared);
        match std::thread::Builder::new().spawn_scoped(scope, work) {
            Ok(_) => {}
            Err(error) if number == 0 => return Err(sys::no_thread(error)),
            // The result is the same with fewer workers.
            Err(_) => break,
        }
    }
    Ok(())
}

/// One worker.
struct Worker<'a> {
    case: &'a Case<'a>,
    config: RunConfig,
    /// Its zygote, once it is started.
    zygote: Option<Zygote>,
}

impl<'a> Worker<'a> {
    fn new(case: &'a Case<'a>, number: usize) -> Worker<'a> {
        Worker { case, config: RunConfig { worker: number, ..case.config.clone() }, zygote: None }
    }

    /// Runs plans until there are no more.
    fn work(&mut self, shared: &Shared) {
        let mut fewest = FEWEST;
        let mut batch = shared.lock();
        loop {
            if batch.closed {
                return;
            }
            // What memory is shared is known to the zygote that has found it out, so one zygote makes all traces.
            let is_for_another = batch.detail == Detail::Symbolic && self.config.worker > 0;
            if batch.next >= batch.cut || batch.first_alone && batch.next > 0 || is_for_another {
                batch = shared.work.wait(batch).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            // Take a share of the remaining plans, so that the workers end at about the same time.
            let left = batch.cut - batch.next;
            let share = match self.case.options.jobs {
                _ if batch.first_alone => 1,
                0 | 1 => left,
                jobs => left.div_ceil(2 * jobs).max(fewest.min(left)),
            };
            let share = share.min(MAX_SLOTS);
            let first = batch.next;
            batch.next += share;
            batch.running += 1;
            let plans = batch.plans.clone();
            self.config.points = batch.points.clone();
            let detail = batch.detail;
            drop(batch);
            let began = Instant::now();
            let (results, lost) = self.execute(&plans[first..first + share], detail);
            let in_time = SHORTEST.as_nanos() * share as u128 / began.elapsed().as_nanos().max(1);
            fewest = (in_time as usize).clamp(FEWEST, MAX_SLOTS);
            if results.iter().any(PlanResult::has_failed) {
                self.zygote = None;
            }
            batch = shared.lock();
            batch.lost += lost;
            for (index, result) in (first..).zip(results) {
                if result.ends_search(self.case.options.keep_going) {
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

    /// Runs plans in order. Returns the results, fewer than plans after an error or a hanging execution, and
    /// how often the zygote was gone. Someone may have killed the zygote, so it is started again. If it is
    /// gone once more, an execution may have damaged it: all further executions then get processes of their
    /// own.
    fn execute(&mut self, plans: &[Plan], detail: Detail) -> (Vec<PlanResult>, u64) {
        let mut results = Vec::new();
        let mut lost = 0;
        while results.len() < plans.len() {
            if let Err(error) = self.execute_some(&plans[results.len()..], detail, &mut results) {
                if self.zygote.as_ref().is_some_and(Zygote::is_gone) && lost < MOST_LOST {
                    self.zygote = None;
                    lost += 1;
                    self.config.in_process &= lost < MOST_LOST;
                    continue;
                }
                results.push(PlanResult::Failed(error));
                break;
            }
            if results.iter().any(|result| result.hangs() || result.has_failed()) {
                break;
            }
        }
        (results, lost)
    }

    fn execute_some(&mut self, plans: &[Plan], detail: Detail, out: &mut Vec<PlanResult>) -> Result<()> {
        let Worker { case, config, zygote } = self;
        let zygote = match zygote {
            Some(zygote) => {
                zygote.set_points(&config.points);
                zygote
            }
            None => zygote.insert(Zygote::start(&case.runtime, case.program, config, Output::Dropped)?),
        };
        let jobs: Vec<Job<'_>> = plans.iter().map(Job::Plan).collect();
        let mut watcher = HangWatcher { runtime: &case.runtime, patches: &case.config.patches, seen: None };
        let mut turn = zygote.take_turn(&jobs, detail, Some(&mut watcher))?;
        let cut = turn.cut.take();
        let first = out.len();
        let mut again = Vec::new();
        for (number, plan) in plans.iter().enumerate().take(turn.ran) {
            if let Some(brief) = zygote.read_brief(&turn, number, case.options.expect_exit) {
                out.push(PlanResult::Brief(brief));
                continue;
            }
            let run = zygote.read(&turn, number)?;
            // Run it once more: a divergence may not recur (CHESS, OSDI'08, section 4.2), and someone may
            // have killed the process.
            if run.execution.diverged.is_some() || run.execution.end == End::Signal(libc::SIGKILL) {
                again.push((number, plan));
            }
            out.push(full_result(case, run, zygote, &mut watcher));
        }
        for (number, plan) in again {
            match zygote.run(Job::Plan(plan), detail, Some(&mut watcher)) {
                Ok(run) => out[first + number] = full_result(case, run, zygote, &mut watcher),
                Err(error) => {
                    // Results after the first missing one are discarded.
                    out.truncate(first + number);
                    return Err(error);
                }
            }
        }
        out.extend(cut.map(PlanResult::Cut));
        // The execution computed for long, but went on.
        if let Some(computed) = watcher.seen.take() {
            case.computed.set(computed).ok();
        }
        Ok(())
    }
}

fn full_result(case: &Case<'_>, run: Run, zygote: &Zygote, watcher: &mut HangWatcher<'_>) -> PlanResult {
    let hang = (run.execution.end == End::Stuck)
        .then(|| Hang { spins: zygote.was_spinning(), ..watcher.seen.take().unwrap_or_default() });
    let verdict = case.judge(&run);
    PlanResult::Full(Box::new(FullResult { run, hang, verdict }))
}
