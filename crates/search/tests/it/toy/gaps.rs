//! Tests executions from which the search must not branch, and the claims that remain possible.

use crate::toy::program::independent;
use crate::toy::runner::run;
use heisen_search::{Best, Dfs, Icb, Search, Strategy};
use heisen_trace::{Divergence, End, Execution, Note, Plan};

/// Runs a search to its end on two threads of two steps (six schedules). `spoil` changes each execution.
fn explore(mut search: Search, spoil: impl Fn(&Plan, &mut Execution)) -> Search {
    let program = independent(2, 2);
    while let Some(plan) = search.next() {
        let mut execution = run(&program, &plan).execution;
        spoil(&plan, &mut execution);
        search.done(&plan, &execution);
    }
    search
}

fn searches() -> [Search; 3] {
    [Dfs::new().into(), Icb::new(None).into(), Best::new(None, vec![]).into()]
}

/// The plan whose only override makes the second thread start. Two more schedules branch from it.
fn second_starts(plan: &Plan) -> bool {
    plan.overrides.len() == 1 && plan.overrides[0].step == 1
}

#[test]
fn nothing_is_branched_from_a_divergence() {
    for search in searches() {
        let search = explore(search, |plan, execution| {
            if second_starts(plan) {
                execution.diverged = Some(Divergence { step: 0, found: "lock".into() });
            }
        });
        let status = search.status();
        assert_eq!((status.executions, status.diverged), (4, 1));
        assert!(status.exhausted && !status.exhaustive && status.has_gaps());
    }
}

#[test]
fn nothing_is_branched_from_decisions_that_contradict_the_plan() {
    for search in searches() {
        let search = explore(search, |plan, execution| {
            if second_starts(plan) {
                execution.decisions[0].chosen = 0;
            }
        });
        assert_eq!((search.status().executions, search.status().diverged), (4, 1));
    }
}

#[test]
fn nothing_is_branched_from_one_that_got_stuck() {
    for search in searches() {
        let search = explore(search, |plan, execution| {
            if second_starts(plan) {
                execution.end = End::Stuck;
            }
        });
        let status = search.status();
        assert_eq!((status.executions, status.stuck), (4, 1));
        assert!(status.exhausted && !status.exhaustive);
    }
}

#[test]
fn fair_tails_are_left_alone_and_counted() {
    for search in searches() {
        // Only the first decision is recorded. The others are in a fair tail.
        let search = explore(search, |_, execution| {
            execution.decisions.truncate(1);
            execution.notes = vec![Note::FairTail];
        });
        let status = search.status();
        assert_eq!((status.executions, status.clipped), (2, 2));
        assert!(status.exhausted && !status.exhaustive);
    }
}

#[test]
fn choices_that_were_not_recorded_are_counted() {
    for search in searches() {
        let search = explore(search, |_, execution| execution.notes = vec![Note::LogFull]);
        let status = search.status();
        assert_eq!((status.executions, status.clipped), (6, 6));
        assert!(status.exhausted && !status.exhaustive);
    }
}

#[test]
fn other_notes_are_not_the_search_s() {
    for search in searches() {
        let search = explore(search, |_, execution| execution.notes = vec![Note::Fork]);
        assert!(search.needs_decisions() && search.status().exhaustive);
    }
}
