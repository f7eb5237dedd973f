//! Minimises a failing schedule: fewest preemptions, then fewest other choices, then fewest blocks, threads and steps.
//!
//! Every candidate is run. One that fails in the same way and costs less replaces the schedule. The phases, repeated
//! until none of them helps:
//!
//! 1. The shortest prefix of choices that still fails when the rest goes by default. What comes after the last choice
//!    of that prefix can no longer avoid the failure.
//! 2. Windows of blocks are sorted by thread, first the largest windows, as in delta debugging (Zeller, Hildebrandt:
//!    Simplifying and Isolating Failure-Inducing Input, TSE 2002). A random schedule with hundreds of preemptions
//!    becomes one with a few after some dozen runs.
//! 3. Single blocks join the next block of their thread (Jalbert, Sen: A Trace Simplification Technique for Effective
//!    Debugging of Concurrent Programs, FSE 2010).
//! 4. Single choices are left out.
//!
//! Moving blocks cannot find a schedule that takes quite another way. So at the end iterative context bounding searches
//! all schedules with fewer preemptions, as far as there is time. For an execution that does not end this comes first.
//!
//! The order of candidates is fixed and the number of runs is limited, so the result is the same each time, unless the
//! time limit comes first.

use crate::error::Result;
use crate::explain::blocks::Blocks;
use crate::explain::judge;
use crate::explain::judge::Verdict;
use crate::process::run_config::{Output, RunConfig};
use crate::process::slots::{Detail, Job, Run};
use crate::process::zygote::Zygote;
use crate::program::Program;
use heisen_search::{Icb, Strategy};
use heisen_trace::{FindingKind, Note, Plan};
use std::path::Path;
use std::time::{Duration, Instant};

/// How many plans of a search are run in one turn.
const BATCH: usize = 32;

/// How much work a minimisation may be.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// The largest number of runs.
    pub runs: u64,
    /// The time after which no further candidate is run.
    pub time: Duration,
    /// Whether no schedule with fewer preemptions fails. So it is for what iterative context bounding finds.
    pub fewest: bool,
}

/// A minimised schedule.
#[derive(Clone, Debug)]
pub struct Minimised {
    /// The plan that fails.
    pub plan: Plan,
    /// How many executions were run.
    pub runs: u64,
}

/// Whether a plan that fails with the same verdict also fails at the same place, by a close-up.
pub type SamePlace<'a> = dyn FnMut(&Plan) -> Result<bool> + 'a;

/// Runs candidates, and remembers the cheapest one that failed.
struct Minimiser<'a, 'f> {
    zygote: Zygote,
    instrumented: bool,
    expect_exit: i32,
    wanted: &'a Verdict,
    /// The code address at which the wanted failure ended the execution; 0 if only a close-up can tell. A deadlock ends
    /// where the last thread blocked, which may be another one, so there may be several.
    pcs: Vec<u64>,
    same_place: &'a mut SamePlace<'f>,
    best: Blocks,
    runs: u64,
    effort: Effort,
    end: Instant,
}

/// Minimises the schedule of a plan that fails with this verdict. `None` if the plan does not fail again, or its
/// execution is too long to be logged.
pub fn minimise(
    (runtime, program, config): (&Path, &Program, &RunConfig),
    expect_exit: i32,
    plan: &Plan,
    wanted: &Verdict,
    same_place: &mut SamePlace<'_>,
    effort: Effort,
) -> Result<Option<Minimised>> {
    let mut zygote = Zygote::start(runtime, program, config, Output::Dropped)?;
    let run = zygote.run(Job::Plan(plan), Detail::Touches, None)?;
    if !fails(&run, expect_exit, wanted) || !is_logged(&run, wanted) {
        return Ok(None);
    }
    let best = blocks(&run, wanted);
    let (before, pcs) = (best.preemptions(), vec![run.tail.pc]);
    let end = Instant::now() + effort.time;
    let instrumented = program.instrumented;
    let mut minimiser =
        Minimiser { zygote, instrumented, expect_exit, wanted, pcs, same_place, best, runs: 1, effort, end };
    if wanted.is_endless() {
        // Candidates that fail are long, so the search comes first: it ends with the first of them.
        minimiser.shortest_prefix()?;
        minimiser.end = Instant::now() + effort.time / 2;
    } else {
        minimiser.all_phases()?;
    }
    if !effort.fewest || minimiser.best.preemptions() != before {
        minimiser.fewer_preemptions()?;
    }
    minimiser.end = end;
    minimiser.all_phases()?;
    let Minimiser { best, runs, .. } = minimiser;
    Ok(Some(Minimised { plan: best.plan(), runs }))
}

/// The plan that repeats the execution of a job.
pub fn plan_of((runtime, program, config): (&Path, &Program, &RunConfig), job: Job<'_>) -> Result<Plan> {
    let mut zygote = Zygote::start(runtime, program, config, Output::Dropped)?;
    let run = zygote.run(job, Detail::Touches, None)?;
    Ok(Blocks::of(&run.execution).plan())
}

impl Minimiser<'_, '_> {
    fn all_phases(&mut self) -> Result<()> {
        loop {
            let before = self.best.cost();
            self.shortest_prefix()?;
            self.sort_windows()?;
            self.join_blocks()?;
            self.leave_out()?;
            if self.best.cost() == before || self.is_over() {
                return Ok(());
            }
        }
    }

    fn is_over(&self) -> bool {
        self.runs >= self.effort.runs || Instant::now() >= self.end
    }

    /// Runs a candidate. Returns whether it is better than the best so far, which it then replaces.
    fn improves(&mut self, plan: &Plan) -> Result<bool> {
        if self.is_over() {
            return Ok(false);
        }
        self.runs += 1;
        let run = self.zygote.run(Job::Plan(plan), Detail::Touches, None)?;
        if !self.is_wanted(&run) || !is_logged(&run, self.wanted) {
            return Ok(false);
        }
        let blocks = blocks(&run, self.wanted);
        let better =
            blocks.cost() < self.best.cost() && self.is_at_same_place(&blocks.plan(), run.tail.pc)?;
        if better {
            self.best = blocks;
        }
        Ok(better)
    }

    /// Whether a plan that ends at this code address fails at the wanted place.
    fn is_at_same_place(&mut self, plan: &Plan, pc: u64) -> Result<bool> {
        if self.wanted.is_endless() || pc != 0 && self.pcs.contains(&pc) {
            return Ok(true);
        }
        let same = (self.same_place)(plan)?;
        self.pcs.extend(same.then_some(pc));
        Ok(same)
    }

    /// Searches the schedules with fewer preemptions, from 0 on.
    fn fewer_preemptions(&mut self) -> Result<()> {
        let Some(bound) = self.best.preemptions().checked_sub(1) else { return Ok(()) };
        let search = Icb::new(Some(bound));
        // Only where all accesses are seen, the same state means the same future.
        let (mut search, detail) = match self.instrumented {
            true => (search.cached(), Detail::States),
            false => (search, Detail::Decisions),
        };
        while !self.is_over() {
            let plans: Vec<Plan> = std::iter::from_fn(|| search.next()).take(BATCH).collect();
            if plans.is_empty() {
                return Ok(());
            }
            let jobs: Vec<Job<'_>> = plans.iter().map(Job::Plan).collect();
            let runs = self.zygote.run_all(&jobs, detail, None)?;
            self.runs += runs.len() as u64;
            for (plan, run) in plans.iter().zip(&runs) {
                // Bounds come in order, so the first that fails has the fewest preemptions.
                if self.is_wanted(run) && self.improves(plan)? {
                    return Ok(());
                }
                search.done(plan, &run.execution);
            }
            plans[runs.len()..].iter().for_each(|plan| search.give_back_unrun(plan));
        }
        Ok(())
    }

    fn is_wanted(&self, run: &Run) -> bool {
        let elsewhere = matches!(self.wanted.kind, FindingKind::Deadlock) || self.wanted.is_endless();
        fails(run, self.expect_exit, self.wanted) && (elsewhere || self.pcs.contains(&run.tail.pc))
    }

    /// By bisection: no schedule with fewer choices need fail if one with more does not, but it mostly is so.
    fn shortest_prefix(&mut self) -> Result<()> {
        let all = self.best.clone();
        let (mut passes, mut fails) = (0, all.choices());
        if fails > 0 && self.improves(&all.prefix(0))? {
            return Ok(());
        }
        while fails > passes + 1 && !self.is_over() {
            let middle = passes.midpoint(fails);
            if self.improves(&all.prefix(middle))? {
                fails = middle;
            } else {
                passes = middle;
            }
        }
        Ok(())
    }

    fn sort_windows(&mut self) -> Result<()> {
        let mut size = self.best.blocks.len();
        while size > 2 {
            let mut number = 0;
            while let Some(window) = self.best.windows(size).nth(number) {
                let mut better = false;
                for plan in self.best.sorted(window) {
                    better |= self.improves(&plan)?;
                    if better {
                        break;
                    }
                }
                if self.is_over() {
                    return Ok(());
                }
                // After an improvement the same window has other blocks.
                number += usize::from(!better);
            }
            size = size.min(self.best.blocks.len()).div_ceil(2);
        }
        Ok(())
    }

    fn join_blocks(&mut self) -> Result<()> {
        let mut index = 1;
        while index < self.best.blocks.len() && !self.is_over() {
            let mut better = false;
            for plan in self.best.joined(index) {
                better |= self.improves(&plan)?;
                if better {
                    break;
                }
            }
            index += usize::from(!better);
        }
        Ok(())
    }

    fn leave_out(&mut self) -> Result<()> {
        // From the end, so that the choices before keep their steps.
        let mut index = self.best.choices();
        while index > 0 && !self.is_over() {
            index = (index - 1).min(self.best.choices().saturating_sub(1));
            if let Some(plan) = (index < self.best.choices()).then(|| self.best.without(index)).flatten() {
                self.improves(&plan)?;
            }
        }
        Ok(())
    }
}

/// Whether an execution has the wanted failure, and followed its plan.
fn fails(run: &Run, expect_exit: i32, wanted: &Verdict) -> bool {
    // The message of an endless execution has the number of its steps.
    let same = |verdict: Verdict| {
        verdict.kind == wanted.kind && (verdict.message == wanted.message || wanted.is_endless())
    };
    run.execution.diverged.is_none() && judge::judge(run, expect_exit).is_some_and(same)
}

/// The blocks that candidates are made of.
fn blocks(run: &Run, wanted: &Verdict) -> Blocks {
    let blocks = Blocks::of(&run.execution);
    if wanted.is_endless() { blocks.up_to_last_choice() } else { blocks }
}

/// Whether the log has all that a candidate is made of. Of an endless execution the beginning is enough: the candidates
/// go on by default, and each is run.
fn is_logged(run: &Run, wanted: &Verdict) -> bool {
    wanted.is_endless() || !run.execution.notes.contains(&Note::LogFull)
}
