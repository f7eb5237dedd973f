//! Runs a schedule in another order: one step before another, or other threads at some steps.
//!
//! A step that cannot simply come first, because its thread needs a lock that the other one holds, may still come first
//! if the other thread is held earlier. So the thread is held at each of its steps in turn, from the given one back.

use crate::error::{Error, Result};
use crate::explain::blocks::Blocks;
use crate::process::run_config::{Output, RunConfig};
use crate::process::slots::{Detail, Job};
use crate::process::zygote::Zygote;
use crate::program::Program;
use heisen_trace::{Note, Plan, Schedule, ThreadId};
use std::path::Path;

/// The largest number of executions that are run to find an order.
const RUNS: usize = 100;

/// A thread that shall take a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The step.
    pub step: u32,
    /// The thread.
    pub thread: ThreadId,
}

/// An execution in another order.
#[derive(Clone, Debug)]
pub struct Reordered {
    /// The plan that repeats it.
    pub plan: Plan,
    /// The steps in it that were asked for, in their new order.
    pub steps: [u32; 2],
}

/// Runs a schedule so that the step `first` comes before the step `second`, which was earlier and of another thread.
/// Returns also the number of executions that were tried. `None` if the order was not reached.
pub fn reordered(
    target: (&Path, &Program, &RunConfig),
    schedule: &Schedule,
    [first, second]: [u32; 2],
) -> Result<(Option<Reordered>, usize)> {
    let (mut zygote, blocks) = start(target, schedule)?;
    let identity = |step: u32| Some((blocks.thread_of(step)?, blocks.number_of(step)?));
    let (Some(one), Some(other)) = (identity(first), identity(second)) else { return Ok((None, 0)) };
    let holds = (0..=other.1).rev().filter_map(|number| blocks.numbered(other.0, number));
    let plans = holds.flat_map(|hold| [false, true].map(|all| blocks.held(hold, first, all)));
    let mut runs = 0;
    for plan in plans.flatten().take(RUNS) {
        runs += 1;
        let run = zygote.run(Job::Plan(&plan), Detail::Touches, None)?;
        if run.execution.diverged.is_some() || run.execution.notes.contains(&Note::LogFull) {
            continue;
        }
        let tried = Blocks::of(&run.execution);
        let (early, late) = (tried.numbered(one.0, one.1), tried.numbered(other.0, other.1));
        if let (Some(early), Some(late)) = (early, late)
            && early < late
        {
            return Ok((Some(Reordered { plan: tried.plan(), steps: [early, late] }), runs));
        }
    }
    Ok((None, runs))
}

/// Runs a schedule up to the first of these choices, makes the choices, and goes on by default. The steps must
/// increase. Returns the plan that repeats the execution, and for each choice the thread that took the step.
pub fn with_choices(
    target: (&Path, &Program, &RunConfig),
    schedule: &Schedule,
    choices: &[Choice],
) -> Result<(Plan, Vec<Option<ThreadId>>)> {
    let (mut zygote, blocks) = start(target, schedule)?;
    let choices: Vec<(u32, u16)> = choices.iter().map(|choice| (choice.step, choice.thread.0)).collect();
    let run = zygote.run(Job::Plan(&blocks.choosing(&choices)), Detail::Touches, None)?;
    let tried = Blocks::of(&run.execution);
    let took = choices.iter().map(|(step, _)| tried.thread_of(*step).map(ThreadId));
    Ok((tried.plan(), took.collect()))
}

/// Runs the schedule as it is.
fn start(
    (runtime, program, config): (&Path, &Program, &RunConfig),
    schedule: &Schedule,
) -> Result<(Zygote, Blocks)> {
    let mut zygote = Zygote::start(runtime, program, config, Output::Dropped)?;
    let run = zygote.run(Job::Schedule(schedule), Detail::Touches, None)?;
    if run.execution.notes.contains(&Note::LogFull) {
        return Err(Error::Input("the execution is too long to be run in another order".into()));
    }
    Ok((zygote, Blocks::of(&run.execution)))
}
