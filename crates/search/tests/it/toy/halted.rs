//! Tests of searches that are halted: they postpone work and lose nothing by it.

use crate::toy::drive::{Pace, drive, sorted};
use crate::toy::oracle::Outcome;
use crate::toy::program::Do::{Add, Load, Lock, Step, Store, Unlock};
use crate::toy::program::Program;
use crate::toy::runner::run;
use heisen_search::{Bpor, Dpor, Halt, Search, Strategy};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

fn programs() -> [Program; 3] {
    let locked = vec![Lock(0), Step, Unlock(0)];
    let racy = vec![Load(0), Store(0)];
    [
        vec![locked.clone(), locked.clone(), locked],
        vec![racy.clone(), racy.clone(), vec![Add(0), Add(1)]],
        vec![vec![Lock(0), Lock(1), Unlock(1), Unlock(0)], vec![Lock(1), Lock(0), Unlock(0), Unlock(1)]],
    ]
}

/// Runs a search to its end with up to `out` plans out at a time. The search is halted while the plans are
/// given back.
fn drive_halted(search: &mut Search, program: &Program, out: usize) -> Vec<Outcome> {
    let asked = Arc::new(AtomicBool::new(false));
    let flag = asked.clone();
    search.heed(Halt::when(move || flag.load(Relaxed)));
    let mut outcomes = Vec::new();
    loop {
        let plans: Vec<_> = std::iter::from_fn(|| search.next()).take(out).collect();
        if plans.is_empty() {
            return outcomes;
        }
        asked.store(true, Relaxed);
        let before = search.status();
        for plan in &plans {
            let run = run(program, plan);
            search.done(plan, &run.execution);
            outcomes.push(run.outcome);
        }
        let status = search.status();
        assert_eq!(status.executions, before.executions, "nothing is taken in while it is halted");
        assert!(!status.exhausted, "what was put off is still to be done");
        asked.store(false, Relaxed);
    }
}

#[test]
fn a_search_that_was_halted_explores_the_same() {
    for program in programs() {
        for search in [Dpor::optimal().into(), Dpor::source().into(), Bpor::new(2).into()] {
            let search: Search = search;
            for out in [1, 3, 8] {
                let visits = drive(&mut search.clone(), &program, Pace::Batches(out));
                let mut outcomes = drive_halted(&mut search.clone(), &program, out);
                outcomes.sort();
                assert_eq!(outcomes, sorted(&visits), "{} with {out} out: {program:?}", search.name());
            }
        }
    }
}
