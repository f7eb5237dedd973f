//! Finds executions near a failing one that pass: the *twins* with which it is compared.
//!
//! A twin differs in one point: a thread that was preempted goes on, or the threads that came in between come first, or
//! one choice is left out. If the default schedule itself fails, the schedules with one preemption are tried.

use crate::error::Result;
use crate::explain::blocks::Blocks;
use crate::explain::judge;
use crate::process::run_config::{Output, RunConfig};
use crate::process::slots::{Detail, Job};
use crate::process::zygote::Zygote;
use crate::program::Program;
use heisen_search::{Icb, Strategy};
use heisen_trace::{Note, Plan};
use std::path::Path;

/// The largest number of executions that are run to find twins, and the largest number of twins.
const RUNS: usize = 200;
const TWINS: usize = 4;

/// Plans near the given one, which fails, whose executions pass. The nearest come first.
pub(crate) fn twins(
    (runtime, program, config): (&Path, &Program, &RunConfig),
    expect_exit: i32,
    plan: &Plan,
) -> Result<Vec<Plan>> {
    let mut zygote = Zygote::start(runtime, program, config, Output::Dropped)?;
    let run = zygote.run(Job::Plan(plan), Detail::Touches, None)?;
    let mut found = Vec::new();
    if run.execution.notes.contains(&Note::LogFull) {
        return Ok(found);
    }
    let blocks = Blocks::of(&run.execution);
    let mut passes = |plan: &Plan| -> Result<bool> {
        let run = zygote.run(Job::Plan(plan), Detail::End, None)?;
        Ok(run.execution.diverged.is_none() && judge::judge(&run, expect_exit).is_none())
    };
    for candidate in neighbours(&blocks).into_iter().take(RUNS) {
        if found.len() < TWINS && passes(&candidate)? {
            found.push(candidate);
        }
    }
    if found.is_empty() {
        let mut search = Icb::new(Some(1));
        for _ in 0..RUNS {
            let Some(candidate) = search.next() else { break };
            let run = zygote.run(Job::Plan(&candidate), Detail::Decisions, None)?;
            if judge::judge(&run, expect_exit).is_none() {
                found.push(candidate);
                break;
            }
            search.done(&candidate, &run.execution);
        }
    }
    Ok(found)
}

/// The plans that differ in one point, those that differ late first.
fn neighbours(blocks: &Blocks) -> Vec<Plan> {
    let joined = (1..blocks.blocks.len()).rev().flat_map(|index| blocks.joined(index));
    let left_out = (0..blocks.choices()).rev().filter_map(|index| blocks.without(index));
    let shorter = (0..blocks.choices()).rev().map(|count| blocks.prefix(count));
    joined.chain(left_out).chain(shorter).collect()
}
