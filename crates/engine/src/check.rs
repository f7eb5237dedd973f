//! The search at work: plans in batches, spread over workers, each with a zygote of its own.
//!
//! Batches have the same size whatever the number of workers, and their results are taken in the order of the plans:
//! so the same program, strategy and seed give the same result on any number of cores.

mod races;

use crate::blind;
use crate::confirm::{Camera, registers};
use crate::diverge::{self, Parting, Place};
use crate::error::{Error, Result};
use crate::input;
use crate::judge::{self, Verdict};
use crate::look::{Symbols, View};
use crate::points::Points;
use crate::program::Program;
use crate::raced::Raced;
use crate::scope::Patterns;
use crate::slot::{Detail, Job, Run};
use crate::suppress::Suppressions;
use crate::sys;
use crate::zygote::{Carrier, Limits, Observer, Output, Zygote};
use heisen_search::{Dfs, Icb, Pct, Random, Search, Status, Strategy};
use heisen_trace::{CodePlace, End, Faults, Finding, Note, Op, Plan, Policy, Stack, World};
use heisen_wire::{MAX_SLOTS, Wire, state};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Plans that are out at a time.
const BATCH: usize = 64;
/// How often progress is told.
const TELL: Duration = Duration::from_millis(100);
/// Failures that did not come back, after which no further one is looked at.
const MAX_UNCONFIRMED: u64 = 20;
/// Further looks at a failure that depends on input from outside, until it comes back.
const MORE_LOOKS: usize = 9;
/// Distinct findings after which even `--keep-going` stops.
const MAX_FINDINGS: usize = 100;

/// Which strategy, as the user names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Iterative context bounding.
    Icb,
    /// Depth-first search.
    Dfs,
    /// Random walk.
    Random,
    /// Probabilistic concurrency testing.
    Pct,
}

/// What to do, as far as a search that is resumed keeps it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Options {
    /// The strategy.
    pub strategy: Kind,
    /// Largest preemption bound of icb.
    pub bound: u32,
    /// Depth of bugs that pct looks for.
    pub depth: u32,
    /// Seed of random and pct.
    pub seed: u64,
    /// Most executions.
    pub executions: Option<u64>,
    /// Longest time.
    pub time: Option<Duration>,
    /// Steps of one execution.
    pub steps: u32,
    /// Longest time without a scheduling point.
    pub hang: Duration,
    /// Go on after a finding.
    pub keep_going: bool,
    /// The exit status that is right.
    pub expect_exit: i32,
    /// Where threads are preempted.
    #[serde(default)]
    pub scope: Patterns,
    /// Workers.
    pub jobs: usize,
    /// What carries the threads.
    #[serde(default)]
    pub carrier: Carrier,
    /// Spurious wake-ups of one execution.
    #[serde(default)]
    pub spurious: u32,
    /// Faults of one execution.
    #[serde(default)]
    pub faults: Faults,
    /// What surrounds the executions.
    pub world: World,
    /// Executions that are run first and do not count.
    pub warm_up: u64,
    /// What becomes of data races.
    #[serde(default)]
    pub races: Races,
    /// Races that are not to be reported.
    #[serde(default)]
    pub suppressions: Suppressions,
}

/// What becomes of data races in an instrumented program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Races {
    /// They are scheduling points, and only what they lead to is reported.
    #[default]
    Quiet,
    /// They are reported, too.
    Report,
    /// The first ends the search.
    Stop,
    /// They are not looked for.
    Off,
}

impl Options {
    /// The limits of each execution.
    pub fn limits(&self, stop: Arc<AtomicBool>) -> Limits {
        Limits {
            steps: self.steps,
            hang: self.hang,
            carrier: self.carrier,
            spurious: self.spurious,
            faults: self.faults,
            world: self.world.clone(),
            stop,
            ..Limits::default()
        }
    }

    /// A fresh search with the chosen strategy.
    pub fn search(&self) -> Search {
        match self.strategy {
            Kind::Icb => Icb::new(Some(self.bound)).into(),
            Kind::Dfs => Dfs::new().into(),
            Kind::Random => Random::new(self.seed).into(),
            Kind::Pct => Pct::new(self.seed, self.depth).into(),
        }
    }
}

/// What a search has done so far.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Tally {
    /// Executions.
    pub executions: u64,
    /// Scheduling points passed in all of them.
    pub steps: u64,
    /// Time spent.
    pub time: Duration,
    /// Bugs found, each once.
    pub findings: Vec<Finding>,
    /// Signatures of those, and keys of the executions that led to them.
    signatures: BTreeSet<String>,
    keys: HashSet<String>,
    /// Executions that went wrong but not again when looked at closely.
    pub unconfirmed: u64,
    /// Bits of notes.
    notes: u64,
    /// Where the first execution that did not follow its plan, or did not fail again, went another way.
    pub diverged_at: Option<String>,
    /// Accesses of memory that are scheduling points.
    #[serde(default)]
    pub points: Arc<Points>,
    /// How often the search started over, since there were more of them.
    #[serde(default)]
    pub restarts: u64,
    /// Whether the program has instrumented code.
    #[serde(default)]
    pub instrumented: bool,
    /// Data races.
    #[serde(default)]
    pub races: Raced,
}

/// Why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Nothing is left to explore.
    Exhausted,
    /// A bug was found, and that is enough.
    Found,
    /// The limit of executions or of time was reached.
    Limit,
    /// The user interrupted.
    Interrupted,
}

/// The verdict of a whole check.
#[derive(Debug)]
pub struct Outcome {
    /// Why it ended.
    pub ended: Ended,
    /// What was done.
    pub tally: Tally,
    /// Where the search stands.
    pub status: Status,
    /// What was not controlled, in sentences.
    pub not_controlled: Vec<String>,
    /// Whether preemptions were searched at some places only.
    pub scoped: bool,
    /// Whether all accesses of memory that conflict were scheduling points.
    pub sound: bool,
    /// The search itself, to be saved.
    pub search: Search,
}

impl Outcome {
    /// Whether everything within the bound was explored.
    pub fn complete(&self) -> bool {
        self.status.exhausted && !self.status.has_gaps() && self.tally.unconfirmed == 0
    }

    /// What was found: what went wrong, and then the races that are reported, each in the order it was found.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.tally.findings.iter().chain(self.tally.races.reports())
    }

    /// Whether the search is one that only ever samples, and so is never complete.
    pub fn search_samples(&self) -> bool {
        self.search.samples()
    }

    /// The largest preemption bound that was explored fully.
    pub fn preemption_bound(&self) -> Option<u32> {
        self.status.explored_bound.filter(|_| !self.status.has_gaps() && self.tally.unconfirmed == 0)
    }
}

/// How a search is getting on.
#[derive(Debug)]
pub struct Progress<'a> {
    /// Executions so far.
    pub executions: u64,
    /// Time so far.
    pub time: Duration,
    /// Where the search stood at the last batch.
    pub status: &'a Status,
    /// Findings so far.
    pub findings: usize,
}

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
}

/// An execution, and where it was if it did not move.
type Executed = Result<(Run, Option<Stuck>)>;

/// A batch at work.
#[derive(Default)]
struct Batch {
    plans: Vec<Plan>,
    /// The next plan to be taken.
    next: usize,
    /// Plans from here on need not be run: one before has failed, or time is over.
    cut: usize,
    results: Vec<Option<Executed>>,
    running: usize,
    closed: bool,
    /// Accesses that are scheduling points in these executions.
    points: Arc<Points>,
}

/// Where an execution that did not move was.
#[derive(Clone, Debug, Default)]
struct Stuck {
    stack: Stack,
    spins: bool,
    /// What the thread was about to do that was scheduled last, if it waits for another process.
    waits: Option<Op>,
}

struct Shared {
    batch: Mutex<Batch>,
    /// There is work, or no more.
    work: Condvar,
    /// A plan is done.
    done: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Batch> {
        self.batch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Check<'_> {
    /// Runs the search until it ends. `tell` is called now and then.
    pub fn run(&self, search: Search, tally: Tally, tell: &mut dyn FnMut(&Progress<'_>)) -> Result<Outcome> {
        self.warm_up()?;
        let shared = Shared { batch: Mutex::default(), work: Condvar::new(), done: Condvar::new() };
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
            let mut driver = Driver { check: self, shared: &shared, search, tally, began: Instant::now() };
            let ended = driver.drive(tell);
            shared.lock().closed = true;
            shared.work.notify_all();
            driver.conclude(ended?)
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
            if zygote.run(Job::Plan(&plan), Detail::End, None)?.execution.end == End::Stuck {
                return Ok(());
            }
        }
        Ok(())
    }

    /// What one worker does.
    fn work(&self, shared: &Shared, number: usize) {
        let mut limits = Limits { worker: number, ..self.limits.clone() };
        let mut zygote: Option<Zygote> = None;
        let mut batch = shared.lock();
        loop {
            if batch.closed {
                return;
            }
            if batch.next >= batch.cut {
                batch = shared.work.wait(batch).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            // A share of what is left, so that the workers end at about the same time.
            let left = batch.cut - batch.next;
            let share = left.div_ceil(2 * self.options.jobs.max(1)).clamp(1, MAX_SLOTS);
            let first = batch.next;
            batch.next += share;
            batch.running += 1;
            let plans = batch.plans[first..first + share].to_vec();
            limits.points = batch.points.clone();
            drop(batch);
            let results = self.execute(&limits, &mut zygote, &plans);
            if results.iter().any(Result::is_err) {
                zygote = None;
            }
            batch = shared.lock();
            for (index, result) in (first..).zip(results) {
                let stop = match &result {
                    Err(_) => true,
                    Ok((run, stuck)) => {
                        stuck.is_some() || !self.options.keep_going && self.judge(run).is_some()
                    }
                };
                if stop {
                    batch.cut = batch.cut.min(index + 1);
                }
                batch.results[index] = Some(result);
            }
            batch.running -= 1;
            shared.done.notify_all();
        }
    }

    /// Runs plans in order. Ends early, with fewer results than plans, after an error or a stuck execution.
    fn execute(&self, limits: &Limits, slot: &mut Option<Zygote>, plans: &[Plan]) -> Vec<Executed> {
        let mut results = Vec::new();
        while results.len() < plans.len() {
            let more = self.execute_some(limits, slot, &plans[results.len()..], &mut results);
            if let Err(error) = more {
                results.push(Err(error));
                break;
            }
            if results.iter().any(|r| matches!(r, Ok((_, Some(_))))) {
                break;
            }
        }
        results
    }

    fn execute_some(
        &self,
        limits: &Limits,
        zygote: &mut Option<Zygote>,
        plans: &[Plan],
        out: &mut Vec<Executed>,
    ) -> Result<()> {
        let zygote = match zygote {
            Some(zygote) => {
                zygote.set_points(&limits.points);
                zygote
            }
            None => zygote.insert(Zygote::start(&self.runtime, self.program, limits, Output::Dropped)?),
        };
        let detail = match self.options.strategy {
            Kind::Icb | Kind::Dfs => Detail::Decisions,
            Kind::Random | Kind::Pct => Detail::End,
        };
        let jobs: Vec<Job<'_>> = plans.iter().map(Job::Plan).collect();
        let mut watcher = StuckWatcher { check: self, seen: None };
        let runs = zygote.run_all(&jobs, detail, Some(&mut watcher))?;
        for (run, plan) in runs.into_iter().zip(plans) {
            let run = match run.execution.diverged {
                // Once more, as that may pass (CHESS, OSDI'08, section 4.2).
                Some(_) => zygote.run(Job::Plan(plan), detail, Some(&mut watcher))?,
                None => run,
            };
            let stuck = (run.execution.end == End::Stuck)
                .then(|| Stuck { spins: zygote.was_spinning(), ..watcher.seen.take().unwrap_or_default() });
            out.push(Ok((run, stuck)));
        }
        Ok(())
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
        let limits = Limits { points: points.clone(), ..self.limits.clone() };
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

/// Takes the stack of a program that does not move.
struct StuckWatcher<'a> {
    check: &'a Check<'a>,
    seen: Option<Stuck>,
}

impl Observer for StuckWatcher<'_> {
    fn stopped(&mut self, wire: &Wire, pid: i32) {
        let mut symbols = Symbols::new();
        symbols.hide(&self.check.runtime);
        symbols.set_moved(self.check.limits.patches.moved());
        if let Ok(mut view) = View::new(&mut symbols, pid) {
            let op = Op::from_code(wire.stop.op.load(Relaxed) as u8);
            let blocked = wire
                .threads
                .get(wire.stop.thread.load(Relaxed) as usize)
                .is_some_and(|thread| thread.state.load(Relaxed) == state::BLOCKED);
            let waits = op.filter(|op| blocked && matches!(op, Op::WaitChild | Op::FileLock));
            self.seen = Some(Stuck { stack: view.stack(registers(wire)), spins: false, waits });
        }
    }
}

struct Driver<'a> {
    check: &'a Check<'a>,
    shared: &'a Shared,
    search: Search,
    tally: Tally,
    began: Instant,
}

impl Driver<'_> {
    fn drive(&mut self, tell: &mut dyn FnMut(&Progress<'_>)) -> Result<Ended> {
        loop {
            if self.check.limits.stop.load(Relaxed) {
                return Ok(Ended::Interrupted);
            }
            if self.time_left().is_some_and(|left| left.is_zero()) {
                return Ok(Ended::Limit);
            }
            let room = match self.check.options.executions {
                Some(most) => (most.saturating_sub(self.tally.executions)).min(BATCH as u64) as usize,
                None => BATCH,
            };
            if room == 0 {
                return Ok(Ended::Limit);
            }
            let plans: Vec<Plan> = std::iter::from_fn(|| self.search.next()).take(room).collect();
            if plans.is_empty() {
                return Ok(Ended::Exhausted);
            }
            let (plans, results) = self.run_batch(plans, tell);
            let known = self.tally.points.len();
            if let Some(ended) = self.take_results(plans, results)? {
                return Ok(ended);
            }
            if self.tally.points.len() != known && !self.search.samples() {
                // Steps are counted anew.
                self.search = self.check.options.search();
                self.tally.restarts += 1;
            }
        }
    }

    fn time(&self) -> Duration {
        self.tally.time + self.began.elapsed()
    }

    fn time_left(&self) -> Option<Duration> {
        self.check.options.time.map(|limit| limit.saturating_sub(self.time()))
    }

    fn run_batch(
        &mut self,
        plans: Vec<Plan>,
        tell: &mut dyn FnMut(&Progress<'_>),
    ) -> (Vec<Plan>, Vec<Option<Executed>>) {
        let status = self.search.status();
        let mut batch = self.shared.lock();
        batch.next = 0;
        batch.cut = plans.len();
        batch.results = plans.iter().map(|_| None).collect();
        batch.plans = plans;
        batch.points = self.tally.points.clone();
        self.shared.work.notify_all();
        let mut told = Instant::now();
        while batch.running > 0 || batch.next < batch.cut {
            let wait = self.shared.done.wait_timeout(batch, TELL);
            batch = wait.unwrap_or_else(PoisonError::into_inner).0;
            let over =
                self.check.limits.stop.load(Relaxed) || self.time_left().is_some_and(|left| left.is_zero());
            if over {
                batch.cut = batch.cut.min(batch.next);
            }
            if told.elapsed() >= TELL {
                told = Instant::now();
                let done = batch.results.iter().filter(|r| r.is_some()).count() as u64;
                tell(&Progress {
                    executions: self.tally.executions + done,
                    time: self.time(),
                    status: &status,
                    findings: self.tally.findings.len() + self.tally.races.reports().len(),
                });
            }
        }
        (std::mem::take(&mut batch.plans), std::mem::take(&mut batch.results))
    }

    /// Takes the results in order; those after the first that ends the search are as if they had not been run.
    fn take_results(&mut self, plans: Vec<Plan>, results: Vec<Option<Executed>>) -> Result<Option<Ended>> {
        let mut ended = None;
        let mut points = (*self.tally.points).clone();
        for (plan, result) in plans.into_iter().zip(results) {
            let (run, stuck) = match result {
                _ if ended.is_some() => {
                    self.search.give_back_unrun(&plan);
                    continue;
                }
                None | Some(Err(Error::Interrupted)) => {
                    self.search.give_back_unrun(&plan);
                    continue;
                }
                Some(Err(error)) => return Err(error),
                Some(Ok(pair)) => pair,
            };
            self.tally.executions += 1;
            self.tally.steps += u64::from(run.execution.steps);
            for &note in &run.execution.notes {
                self.tally.notes |= 1 << (note as u8);
            }
            self.search.done(&plan, &run.execution);
            self.tally.instrumented |= run.instrumented;
            for conflict in &run.conflicts {
                points.learn(conflict);
            }
            if points.is_full() {
                self.tally.notes |= 1 << (Note::TooManyPoints as u8);
            }
            if run.execution.diverged.is_some() {
                self.locate(&plan, run.tail.diverged);
            }
            let mut failed = false;
            if let Some(stuck) = stuck {
                if self.tally.findings.is_empty() {
                    return Err(self.describe_stuck(&stuck));
                }
                ended = Some(Ended::Found);
            } else if let Some(verdict) = self.check.judge(&run) {
                failed = true;
                let found = self.found(&plan, verdict)?;
                let enough = !self.check.options.keep_going || self.tally.findings.len() >= MAX_FINDINGS;
                if found && enough {
                    ended = Some(Ended::Found);
                }
            }
            // What went wrong comes first; where the search stops at either, that is enough.
            let enough = failed && ended.is_some() && self.check.options.races == Races::Stop;
            if !enough && self.take_races(&plan, &run)? {
                ended = Some(Ended::Found);
            }
        }
        if points != *self.tally.points {
            self.tally.points = Arc::new(points);
        }
        Ok(ended)
    }

    /// The limits of the executions of this batch.
    fn limits(&self) -> Limits {
        Limits { points: self.tally.points.clone(), ..self.check.limits.clone() }
    }

    /// Looks closely at an execution that went wrong. False if it did not go wrong again.
    fn found(&mut self, plan: &Plan, verdict: Verdict) -> Result<bool> {
        if self.tally.keys.contains(&verdict.key) {
            return Ok(true);
        }
        // One that did not come back may do so the next time, but not every look is worth its time.
        if self.tally.unconfirmed >= MAX_UNCONFIRMED {
            self.tally.unconfirmed += 1;
            return Ok(false);
        }
        let limits = self.limits();
        let camera = self.check.camera(&limits);
        let mut closeup = camera.shoot(Job::Plan(plan))?;
        for _ in 0..MORE_LOOKS {
            // With input from outside, it need not go the same way each time, and once is enough, as that is recorded.
            if !closeup.outside || closeup.verdict.as_ref().is_some_and(|v| v.kind == verdict.kind) {
                break;
            }
            closeup = camera.shoot(Job::Plan(plan))?;
        }
        if closeup.verdict.as_ref().is_none_or(|v| v.kind != verdict.kind) {
            self.tally.unconfirmed += 1;
            self.locate(plan, closeup.run.tail.diverged);
            return Ok(false);
        }
        let (outside, input) = (closeup.outside, closeup.input.take());
        let Some(mut finding) = closeup.into_finding(&camera, self.tally.executions) else {
            return Ok(false);
        };
        if let Some(input) = input
            && self.leads_there_with(&input, &finding)?
        {
            finding.schedule.input = Some(input::beside(&self.check.program.short_name(), &input));
            finding.input = Some(input);
            self.keep(verdict, finding);
            return Ok(true);
        }
        // The schedule as it will be written must lead there, too.
        let again = camera.shoot(Job::Schedule(&finding.schedule))?;
        if again.run.execution.diverged.is_some() || again.signature() != finding.signature {
            self.tally.unconfirmed += 1;
            self.locate(plan, again.run.tail.diverged);
            return Ok(false);
        }
        if outside {
            self.tally.notes |= 1 << (Note::Unrecorded as u8);
        }
        self.keep(verdict, finding);
        Ok(true)
    }

    /// Whether the schedule of a finding leads there with what was recorded, and nobody outside.
    fn leads_there_with(&self, input: &Arc<[u8]>, finding: &Finding) -> Result<bool> {
        let limits = Limits { input: Some(input.clone()), ..self.limits() };
        let again = self.check.camera(&limits).shoot(Job::Schedule(&finding.schedule))?;
        Ok(again.run.execution.diverged.is_none() && again.signature() == finding.signature)
    }

    fn keep(&mut self, verdict: Verdict, mut finding: Finding) {
        self.tally.keys.insert(verdict.key);
        finding.executions_to_find = self.tally.executions;
        if self.tally.signatures.insert(finding.signature.clone()) {
            self.tally.findings.push(finding);
        }
    }

    /// Finds out, the first time, where the executions of a plan go different ways. What can't be found out is left open.
    fn locate(&mut self, plan: &Plan, noticed: Option<Place>) {
        if self.tally.diverged_at.is_some() {
            return;
        }
        let check = self.check;
        let parting = diverge::part(&check.runtime, check.program, &self.limits(), plan, noticed);
        let Parting { at, notes } = parting.unwrap_or_default();
        self.tally.diverged_at = Some(at);
        for note in notes {
            self.tally.notes |= 1 << (note as u8);
        }
    }

    fn describe_stuck(&self, stuck: &Stuck) -> Error {
        let seconds = self.check.limits.hang.as_secs_f32();
        let top = stuck.stack.0.first().map_or("an unknown place".to_owned(), |f| f.function.clone());
        let place = stuck.stack.place().map_or(String::new(), |f| format!(" ({} {})", f.place(), f.function));
        if let Some(op) = stuck.waits {
            let what = if op == Op::WaitChild { "a child process to end" } else { "a lock on a file" };
            return Error::Uncontrolled(format!(
                "the program waited for {seconds} s for {what}{place}, and no other thread could go on; if it only \
                 takes long, raise --hang"
            ));
        }
        Error::Uncontrolled(if stuck.spins {
            format!(
                "the program ran for {seconds} s without reaching a scheduling point: it spins in {top}{place}; if it \
                 computes for so long, raise --hang, if it waits in a loop for another thread, let the loop yield"
            )
        } else {
            format!(
                "the program blocks in {top}{place}, a call that Heisen does not control; nothing else can run \
                 meanwhile; if it only takes long, raise --hang"
            )
        })
    }

    fn conclude(mut self, ended: Ended) -> Result<Outcome> {
        self.tally.time = self.time();
        let status = self.search.status();
        let blind = blind::blind(self.check.program);
        let all_followed = !status.has_gaps() && self.tally.unconfirmed == 0;
        let sound = self.is_sound(ended) && all_followed && blind.is_none();
        let mut not_controlled: Vec<String> = self.about_accesses(ended).into_iter().collect();
        not_controlled.extend(self.about_races());
        not_controlled.extend(blind);
        not_controlled.extend(self.check.options.scope.sentence());
        if self.check.program.at_ready {
            not_controlled.push(
                "what the program does before heisen_ready: it ran once, under the default schedule".into(),
            );
        }
        not_controlled.extend(Note::in_word(self.tally.notes).map(|n| n.text().to_owned()));
        let why = diverge::explain(
            self.tally.diverged_at.as_deref().unwrap_or_default(),
            Note::in_word(self.tally.notes),
        );
        for (count, what) in [
            (status.diverged, format!("diverged from their plan{why}")),
            (
                self.tally.unconfirmed,
                format!("failed but did not fail again when replayed, and are not reported{why}"),
            ),
        ] {
            match count {
                0 => {}
                1 => not_controlled.push(format!("1 execution {}", what.replace("their plan", "its plan"))),
                _ => not_controlled.push(format!("{count} executions {what}")),
            }
        }
        let regions = self.tally.notes & 1 << (Note::NoPreempt as u8) != 0;
        let scoped = regions || !self.check.options.scope.is_empty();
        Ok(Outcome { ended, tally: self.tally, status, not_controlled, scoped, sound, search: self.search })
    }
}
