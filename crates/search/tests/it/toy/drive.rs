//! Small engines for toy programs: they run a strategy to its end, with a given number of plans out at a
//! time.

use crate::toy::oracle::Outcome;
use crate::toy::program::Program;
use crate::toy::runner::run;
use heisen_search::Strategy;
use heisen_trace::Plan;
use std::collections::VecDeque;

/// A plan and the schedule that it led to.
pub type Visit = (Plan, Outcome);

/// In which order plans are taken and given back.
#[derive(Clone, Copy, Debug)]
pub enum Pace {
    /// Takes up to this many plans, then gives all of them back.
    Batches(usize),
    /// Has up to this many plans out. After each one that is given back it takes another.
    Window(usize),
}

/// Runs plans until the strategy has none left.
pub fn drive(strategy: &mut dyn Strategy, program: &Program, pace: Pace) -> Vec<Visit> {
    drive_for(strategy, program, pace, usize::MAX)
}

/// Runs plans until `most` were given back. Some plans may remain out.
pub fn drive_for(strategy: &mut dyn Strategy, program: &Program, pace: Pace, most: usize) -> Vec<Visit> {
    let mut visits = Vec::new();
    let mut out = VecDeque::new();
    while visits.len() < most {
        let (Pace::Batches(room) | Pace::Window(room)) = pace;
        while out.len() < room
            && let Some(plan) = strategy.next()
        {
            out.push_back(plan);
        }
        if out.is_empty() {
            break;
        }
        let back = if matches!(pace, Pace::Batches(_)) { out.len() } else { 1 };
        for plan in out.drain(..back.min(most - visits.len())) {
            let run = run(program, &plan);
            assert_eq!(run.execution.diverged, None, "{plan:?}");
            strategy.done(&plan, &run.execution);
            visits.push((plan, run.outcome));
        }
    }
    visits
}

/// Runs one plan at a time.
pub fn drive_one_by_one(strategy: &mut dyn Strategy, program: &Program) -> Vec<Visit> {
    drive(strategy, program, Pace::Batches(1))
}

/// The schedules of visits, sorted.
pub fn sorted(visits: &[Visit]) -> Vec<Outcome> {
    let mut all: Vec<Outcome> = visits.iter().map(|(_, whole)| whole.clone()).collect();
    all.sort();
    all
}

/// How many visits have 0, 1, 2, ... preemptions.
pub fn by_preemptions(visits: &[Visit]) -> Vec<usize> {
    let mut counts = Vec::new();
    for (_, whole) in visits {
        let c = whole.preemptions as usize;
        counts.resize(counts.len().max(c + 1), 0);
        counts[c] += 1;
    }
    counts
}
