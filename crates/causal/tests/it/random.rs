//! Compares the search with all schedules and all inputs of random programs.

use crate::toy::generator::{Features, program, program_that_frees};
use crate::toy::machine::Over;
use crate::toy::oracle::{Outcomes, classes, outcomes};
use crate::toy::program::Program;
use crate::toy::runner::{Run, run};
use heisen_causal::{Causal, Options, Status};
use heisen_trace::End;

/// What a search has shown.
pub struct Searched {
    pub outcomes: Outcomes,
    pub status: Status,
    /// How many executions it took to the first failure.
    pub first: Option<u64>,
}

/// Searches to the end, or up to so many executions.
pub fn search(program: &Program, most: u64) -> Searched {
    search_for(program, most, Options::default())
}

pub fn search_for(program: &Program, most: u64, options: Options) -> Searched {
    let mut causal = Causal::new(options);
    let (mut outcomes, mut first) = (Outcomes::default(), None);
    while let Some(plan) = causal.next_plan() {
        let Run { trace, end, over, stuck, meetings } = run(program, &plan);
        causal.done(&plan, &trace, &end);
        if end != End::Exit(0) {
            first = first.or(Some(causal.status().executions));
        }
        outcomes.failures.extend(over.filter(|over| !matches!(over, Over::Exit | Over::Ignored)));
        outcomes.stuck.extend(stuck);
        if options.meetings > 0 {
            outcomes.meetings.extend(meetings);
        }
        if causal.status().executions >= most {
            break;
        }
    }
    Searched { outcomes, status: causal.status(), first }
}

#[derive(Debug, Default)]
struct Totals {
    programs: u64,
    failing: u64,
    deadlocks: u64,
    executions: u64,
    questions: u64,
    classes: u64,
    executions_of_counted: u64,
}

fn compare(seeds: std::ops::Range<u64>, features: Features, meetings: bool) {
    let mut totals = Totals::default();
    for seed in seeds {
        let program = program(seed, features);
        let Some(expected) = outcomes(&program, 5_000, meetings) else { continue };
        let options = Options { meetings: if meetings { u32::MAX } else { 0 }, ..Options::default() };
        let Searched { outcomes, status, .. } = search_for(&program, 5_000, options);
        let context = || format!("seed {seed}, {features:?}: {program:?}\n{status:?}");
        assert_eq!(outcomes, expected, "{}", context());
        assert!(status.is_proof(), "{}", context());
        assert_eq!(status.diverged, 0, "{}", context());
        totals.programs += 1;
        totals.failing += u64::from(!expected.failures.is_empty());
        totals.deadlocks += u64::from(!expected.stuck.is_empty());
        totals.executions += status.executions;
        totals.questions += status.questions;
        // Two threads may meet in a class that was seen before.
        if let Some(classes) = classes(&program, 300).filter(|_| !meetings) {
            assert!(status.executions <= classes as u64, "{classes} classes, {}", context());
            totals.classes += classes as u64;
            totals.executions_of_counted += status.executions;
        }
    }
    println!("{features:?}: {totals:?}");
}

fn seeds(normal: u64) -> std::ops::Range<u64> {
    0..if std::env::var_os("HEISEN_NIGHTLY").is_some() { 40 * normal } else { normal }
}

#[test]
fn branches() {
    compare(seeds(100), Features::Branches, false);
}

#[test]
fn mutexes() {
    compare(seeds(100), Features::Mutexes, false);
}

#[test]
fn memory() {
    compare(seeds(100), Features::Memory, false);
}

#[test]
fn inputs() {
    compare(seeds(100), Features::Inputs, false);
}

#[test]
fn conditions() {
    compare(seeds(100), Features::Conditions, false);
}

#[test]
fn futexes() {
    compare(seeds(150), Features::Futexes, false);
}

#[test]
fn semaphores() {
    compare(seeds(100), Features::Semaphores, false);
}

#[test]
fn locks() {
    compare(seeds(100), Features::Locks, false);
}

#[test]
fn barriers() {
    compare(seeds(100), Features::Barriers, false);
}

/// Memory is freed while others may use it. Where an access comes late in every execution, what would follow it is unknown,
/// and the search says so: these programs fail anyway.
#[test]
fn frees() {
    let mut late = 0;
    for (features, normal) in [
        (Features::Branches, 100),
        (Features::Memory, 150),
        (Features::Conditions, 100),
        (Features::Locks, 50),
    ] {
        for seed in seeds(normal) {
            let program = program_that_frees(seed, features);
            let Some(expected) = outcomes(&program, 5_000, false) else { continue };
            let Searched { outcomes, status, .. } = search(&program, 5_000);
            let context = || format!("seed {seed}, {features:?}: {program:?}\n{status:?}");
            let fails = expected.failures.iter().any(|over| matches!(over, Over::Crash(_)));
            assert!(outcomes.failures.is_subset(&expected.failures), "{}", context());
            if !fails {
                assert_eq!(outcomes, expected, "{}", context());
                assert!(status.is_proof() && status.diverged == 0, "{}", context());
            }
            // A search that claims a proof has seen everything.
            assert!(!status.is_proof() || outcomes == expected, "{}", context());
            assert_eq!(
                fails,
                outcomes.failures.iter().any(|over| matches!(over, Over::Crash(_))),
                "{}",
                context()
            );
            late += u64::from(fails && status.is_proof());
        }
    }
    assert!(late > 50, "{late}");
}

#[test]
fn meetings() {
    compare(seeds(50), Features::Conditions, true);
    compare(seeds(50), Features::Futexes, true);
    compare(seeds(20), Features::Semaphores, true);
    compare(seeds(20), Features::Locks, true);
    compare(seeds(20), Features::Barriers, true);
}
