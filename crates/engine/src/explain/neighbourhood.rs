//! Runs executions near a failing one and logs their operations: some fail as well, some pass. The nearest that pass are
//! the *twins* with which the failing one is compared.
//!
//! A neighbour differs in one point: a thread that was preempted goes on, or the threads that came in between come first,
//! or one choice is left out, or another choice is taken and the rest goes by default. The neighbours of neighbours come
//! next. If none of them passes, the schedules with one preemption are tried.

use crate::error::Result;
use crate::explain::blocks::Blocks;
use crate::explain::judge;
use crate::explain::judge::Verdict;
use crate::explain::necessary::Log;
use crate::process::access_points::Points;
use crate::process::run_config::{Output, RunConfig};
use crate::process::slots::{Detail, Job, Run, report_of};
use crate::process::zygote::Zygote;
use crate::program::Program;
use heisen_search::{Icb, Strategy};
use heisen_trace::{Decision, Execution, Note, Override, Plan, Policy};
use std::collections::{HashSet, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// How many executions an explanation may run. The result is the same each time unless the time runs out first, which the
/// explanation then says.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// To find neighbours.
    pub neighbours: usize,
    /// To find the point of no return.
    pub continuations: usize,
    /// How many events the neighbours may have together, and how many the continuations. The first execution counts, too.
    pub events: u64,
    /// The time for neighbours. Continuations have half of it.
    pub time: Duration,
}

impl Effort {
    /// For the short form, which comes with each finding.
    pub const SHORT: Effort =
        Effort { neighbours: 48, continuations: 32, events: 250_000, time: Duration::from_millis(1_200) };
    /// For `heisen explain`.
    pub const COMPLETE: Effort =
        Effort { neighbours: 600, continuations: 1_000, events: 3_000_000, time: Duration::from_secs(12) };
}

/// The largest number of twins.
const TWINS: usize = 4;

/// The executions near a failing one.
#[derive(Debug)]
pub(crate) struct Neighbourhood {
    /// Plans whose executions pass, the nearest first, at most [`TWINS`].
    pub(crate) twins: Vec<Plan>,
    /// The operations of the failing execution, up to the failure.
    pub(crate) failing: Log,
    /// The operations of the neighbours that fail in the same way.
    pub(crate) failing_too: Vec<Log>,
    /// The operations of those that pass.
    pub(crate) passing: Vec<Log>,
    /// The plans of `passing`.
    pub(crate) passing_plans: Vec<Plan>,
}

/// The largest number of events of executions whose operations are kept.
const MAX_LOGGED: usize = 20_000;

/// Runs plans and says how they end.
pub(crate) struct Runner {
    zygote: Zygote,
    expect_exit: i32,
    /// When no further execution is begun.
    end: Instant,
    /// How many events the executions may still have.
    events: u64,
    /// Whether an execution was not begun because the time was over.
    out_of_time: bool,
}

/// How an execution ended, compared with the failing one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Passes,
    FailsToo,
    /// It fails in another way, or did not follow its plan.
    Otherwise,
}

impl Runner {
    pub(crate) fn start(
        (runtime, program, config): (&Path, &Program, &RunConfig),
        expect_exit: i32,
    ) -> Result<Runner> {
        let zygote = Zygote::start(runtime, program, config, Output::Dropped)?;
        Ok(Runner { zygote, expect_exit, end: Instant::now(), events: 0, out_of_time: false })
    }

    /// From now on, executions are begun only within this time, and until they have had so many events.
    pub(crate) fn limit(&mut self, time: Duration, events: u64) {
        (self.end, self.events) = (Instant::now() + time, events);
    }

    /// Whether no further execution may begin. Asked only where one would.
    pub(crate) fn is_over(&mut self) -> bool {
        let late = Instant::now() >= self.end;
        self.out_of_time |= late && self.events > 0;
        late || self.events == 0
    }

    /// Whether an execution was not begun because the time was over.
    pub(crate) fn out_of_time(&self) -> bool {
        self.out_of_time
    }

    pub(crate) fn run(&mut self, plan: &Plan, detail: Detail) -> Result<Run> {
        let run = self.zygote.run(Job::Plan(plan), detail, None)?;
        let events = report_of(self.zygote.wire()).events.load(Relaxed).max(run.execution.steps);
        self.events = self.events.saturating_sub(events.into());
        Ok(run)
    }

    /// How many events the execution of a plan has, with its accesses of memory.
    pub(crate) fn count(&mut self, plan: &Plan) -> Result<usize> {
        self.zygote.run(Job::Plan(plan), Detail::AccessLog, None)?;
        Ok(report_of(self.zygote.wire()).events.load(Relaxed) as usize)
    }

    fn log(&self) -> Log {
        self.log_until(None)
    }

    /// The operations up to the event with this number.
    fn log_until(&self, last: Option<u32>) -> Log {
        let events = self.zygote.events();
        match last.map(|last| last as usize) {
            _ if events.len() > MAX_LOGGED => Log::of(&[]),
            Some(last) if last < events.len() => Log::of(&events[..last]),
            _ => Log::of(&events),
        }
    }

    pub(crate) fn ended(&self, run: &Run, failure: &Verdict) -> Ended {
        if run.execution.diverged.is_some() {
            return Ended::Otherwise;
        }
        match judge::judge(run, self.expect_exit) {
            None => Ended::Passes,
            Some(verdict) if verdict.kind == failure.kind => Ended::FailsToo,
            Some(_) => Ended::Otherwise,
        }
    }
}

/// Runs the neighbours of a plan that fails with this verdict, after so many events if that is known. `None` if its execution is too long to be logged. With
/// [`Detail::AccessLog`] their operations are known, with [`Detail::Touches`] only the twins.
pub(crate) fn neighbourhood(
    runner: &mut Runner,
    plan: &Plan,
    (failure, after): (&Verdict, Option<u32>),
    effort: Effort,
    detail: Detail,
) -> Result<Option<Neighbourhood>> {
    runner.limit(effort.time, effort.events);
    let run = runner.run(plan, detail)?;
    if run.execution.notes.contains(&Note::LogFull) {
        return Ok(None);
    }
    let mut waiting: VecDeque<Plan> = neighbours(&run.execution).into();
    let mut known: HashSet<Vec<Override>> = HashSet::from([plan.overrides.clone()]);
    waiting.retain(|plan| known.insert(plan.overrides.clone()));
    let failing = runner.log_until(after);
    let mut found = Neighbourhood {
        twins: Vec::new(),
        failing,
        failing_too: Vec::new(),
        passing: Vec::new(),
        passing_plans: Vec::new(),
    };
    for _ in 0..effort.neighbours {
        let Some(candidate) = waiting.pop_front().filter(|_| !runner.is_over()) else { break };
        let run = runner.run(&candidate, detail)?;
        match runner.ended(&run, failure) {
            Ended::Passes => {
                found.passing.push(runner.log());
                found.passing_plans.push(candidate.clone());
                if found.twins.len() < TWINS {
                    found.twins.push(candidate);
                }
            }
            Ended::FailsToo => found.failing_too.push(runner.log()),
            Ended::Otherwise => continue,
        }
        // There are many more neighbours of neighbours than can be run.
        if waiting.len() < effort.neighbours {
            for next in neighbours(&run.execution) {
                if known.insert(next.overrides.clone()) {
                    waiting.push_back(next);
                }
            }
        }
    }
    if found.twins.is_empty() {
        let mut search = Icb::new(Some(1));
        for _ in 0..effort.neighbours {
            let Some(candidate) = search.next().filter(|_| !runner.is_over()) else { break };
            let run = runner.run(&candidate, detail)?;
            if runner.ended(&run, failure) == Ended::Passes {
                found.passing.push(runner.log());
                found.passing_plans.push(candidate.clone());
                found.twins.push(candidate);
                break;
            }
            search.done(&candidate, &run.execution);
        }
    }
    Ok(Some(found))
}

/// The largest number of executions that are run to learn access points, and when no further one is begun.
const LEARNING: usize = 16;
const LEARNING_TIME: Duration = Duration::from_millis(600);

/// The access points that this plan and its neighbours show, besides those that are known. A failure of the first
/// execution comes before the search has learned any, and without them most of its neighbours fail as well.
pub(crate) fn points_near(
    (runtime, program, config): (&Path, &Program, &RunConfig),
    plan: &Plan,
) -> Result<Arc<Points>> {
    let mut zygote = Zygote::start(runtime, program, config, Output::Dropped)?;
    let mut points = (*config.points).clone();
    let mut left = LEARNING;
    let end = Instant::now() + LEARNING_TIME;
    loop {
        let known = points.len();
        let mut waiting = VecDeque::from([plan.clone()]);
        while let Some(next) = waiting.pop_front().filter(|_| left > 0) {
            left = if Instant::now() < end { left - 1 } else { 0 };
            let run = zygote.run(Job::Plan(&next), Detail::Touches, None)?;
            for conflict in &run.conflicts {
                points.learn(conflict);
            }
            if next.overrides == plan.overrides {
                waiting.extend(neighbours(&run.execution));
            }
        }
        // New access points change the steps of an execution, and so its neighbours.
        let learned = Arc::new(points.clone());
        if points.len() == known || left == 0 {
            return Ok(learned);
        }
        zygote.set_points(&learned);
    }
}

/// The plans that differ in one point, those that differ late first.
fn neighbours(execution: &Execution) -> Vec<Plan> {
    let blocks = &Blocks::of(execution);
    let joined = (1..blocks.blocks.len()).rev().flat_map(|index| blocks.joined(index));
    let left_out = (0..blocks.choices()).rev().filter_map(|index| blocks.without(index));
    let shorter = (0..blocks.choices()).rev().map(|count| blocks.prefix(count));
    let decisions = &execution.decisions;
    let otherwise = decisions.iter().enumerate().rev().flat_map(|(index, decision)| {
        let others = (0..decision.options).filter(|&choice| choice != decision.chosen);
        others.map(move |choice| deviating(&decisions[..index], decision, choice))
    });
    joined.chain(left_out).chain(shorter).chain(otherwise).collect()
}

/// The plan that makes the choices of these decisions, then takes another choice, then goes on by default.
pub(crate) fn deviating(before: &[Decision], at: &Decision, choice: u16) -> Plan {
    let exactly = |d: &Decision, choice| Override::new(d.step, d.kind, choice, d.options);
    let chosen = before.iter().filter(|d| d.chosen != 0).map(|d| exactly(d, d.chosen));
    Plan { overrides: chosen.chain([exactly(at, choice)]).collect(), ..Plan::new(Policy::Default) }
}
