//! Compares the reductions with the oracle on random programs.

use crate::toy::drive::{Pace, Visit, drive, sorted};
use crate::toy::generator::{OperationSet, program};
use crate::toy::oracle::Outcome;
use crate::toy::program::{FinalState, Program, ordered_class};
use crate::toy::runner::TELLS_STATES;
use heisen_search::{Bpor, Dfs, Dpor, Icb, Status, Strategy};
use heisen_testkit::usual_or_nightly;
use std::collections::BTreeSet;

const MOST: usize = 3000;

fn classes(all: &[Outcome]) -> BTreeSet<u64> {
    all.iter().map(|w| w.class).collect()
}

fn lasts(all: &[Outcome]) -> BTreeSet<(bool, FinalState)> {
    all.iter().map(|w| (w.deadlock, w.last.clone())).collect()
}

fn explore(mut dpor: Dpor, program: &Program, pace: Pace) -> (Vec<Visit>, Status) {
    let visits = drive(&mut dpor, program, pace);
    (visits, dpor.status())
}

fn check(seed: u64, taste: OperationSet) {
    let (program, all) = program(seed, taste, MOST);
    let expected = classes(&all);
    // At the first choice other than a thread, the optimal variant starts over. How many executions are then
    // blocked depends on the pace.
    let choices = all.iter().any(|w| w.schedule.iter().any(|(_, outcome)| *outcome > 0));
    for (name, dpor) in
        [("sleeping", Dpor::sleeping()), ("source", Dpor::source()), ("optimal", Dpor::optimal())]
    {
        let (visits, status) = explore(dpor.clone(), &program, Pace::Batches(1));
        let outcomes: Vec<Outcome> = visits.iter().map(|(_, w)| w.clone()).collect();
        let tell = || format!("{name} of seed {seed}: {program:?}");
        assert!(status.exhausted && status.exhaustive, "{} {status:?}", tell());
        let found = classes(&outcomes);
        if found != expected {
            let missed = all.iter().find(|w| !found.contains(&w.class));
            panic!("{}: {} of {} classes, not {missed:?}", tell(), found.len(), expected.len());
        }
        assert_eq!(lasts(&outcomes), lasts(&all), "{}", tell());
        assert_eq!(status.classes, Some(status.executions - status.blocked), "{}", tell());
        if matches!(taste, OperationSet::Exact | OperationSet::Attempts) {
            assert_eq!(status.classes, Some(expected.len() as u64), "{}", tell());
            if name == "optimal" && !choices {
                assert_eq!(status.blocked, 0, "{}", tell());
            }
        }
        for pace in [Pace::Batches(64), Pace::Window(5)] {
            let (others, other) = explore(dpor.clone(), &program, pace);
            if name == "optimal" && choices {
                assert_eq!((other.classes, other.exhaustive), (status.classes, true), "{} {pace:?}", tell());
                continue;
            }
            assert_eq!(other, status, "{} {pace:?}", tell());
            let set = |v: &[Visit]| {
                let mut v: Vec<_> = v.iter().map(|(p, w)| (p.overrides.clone(), w.clone())).collect();
                v.sort();
                v
            };
            assert_eq!(set(&others), set(&visits), "{} {pace:?}", tell());
        }
    }
}

#[test]
fn random_programs() {
    for seed in 0..usual_or_nightly(100, 500) {
        check(seed, OperationSet::Exact);
    }
}

#[test]
fn random_programs_of_all_kinds() {
    for seed in 0..usual_or_nightly(100, 500) {
        check(seed, OperationSet::Any);
    }
}

#[test]
fn random_programs_with_what_may_fail() {
    for seed in 0..usual_or_nightly(40, 200) {
        check(seed, OperationSet::Attempts);
    }
}

/// Checks a program in which more threads come to a barrier than it needs. Arrivals then depend on each
/// other, so there are more classes than the touches of one execution show. Returns whether the barrier is
/// crowded.
fn check_crowd(seed: u64) -> bool {
    let (program, all) = program(seed, OperationSet::Crowds, MOST);
    let tell = || format!("seed {seed}: {program:?}");
    let ordered = |outcomes: &[Outcome]| -> BTreeSet<(u64, bool)> {
        outcomes.iter().map(|w| ordered_class(&program, &w.schedule)).collect()
    };
    let crowded = ordered(&all).iter().any(|(_, crowded)| *crowded);
    let complete = |outcomes: &[Outcome], all: &[Outcome]| {
        assert_eq!(lasts(outcomes), lasts(all), "{}", tell());
        // Within a bound, no schedule may show the crowding.
        if crowded && ordered(all).iter().any(|(_, crowded)| *crowded) {
            assert_eq!(ordered(outcomes), ordered(all), "{}", tell());
        }
    };
    for dpor in [Dpor::sleeping(), Dpor::source(), Dpor::optimal()] {
        for pace in [Pace::Batches(1), Pace::Window(5)] {
            let (visits, status) = explore(dpor.clone(), &program, pace);
            complete(&sorted(&visits), &all);
            assert!(status.exhausted && status.exhaustive, "{} {status:?}", tell());
        }
    }
    for bound in 0..=all.iter().map(|w| w.preemptions).max().unwrap() {
        let within: Vec<Outcome> = all.iter().filter(|w| w.preemptions <= bound).cloned().collect();
        let visits = drive(&mut Bpor::new(bound), &program, Pace::Batches(64));
        complete(&sorted(&visits), &within);
    }
    crowded
}

#[test]
fn crowded_barriers_lose_no_class() {
    let programs = usual_or_nightly(20, 100);
    let crowded = (0..programs).filter(|&seed| check_crowd(seed)).count() as u64;
    assert!(crowded > programs / 10, "{crowded}");
}

#[test]
fn programs_that_were_hard() {
    // In each of these programs some variant once missed a class. They have ends that others may prevent, or
    // outcomes that touch different objects.
    for seed in [6155, 10_149, 14_061, 19_103, 20_697, 30_159, 32_803] {
        check(seed, OperationSet::Any);
    }
}

/// The final states that a search finds, with whether they are deadlocks, and its visits.
fn found(
    strategy: &mut dyn Strategy,
    program: &Program,
    pace: Pace,
) -> (BTreeSet<(bool, FinalState)>, Vec<Visit>) {
    let visits = drive(strategy, program, pace);
    let outcomes: Vec<Outcome> = visits.iter().map(|(_, w)| w.clone()).collect();
    (lasts(&outcomes), visits)
}

fn check_cached(seed: u64, taste: OperationSet) {
    let (program, all) = program(seed, taste, MOST);
    let tell = || format!("seed {seed}: {program:?}");
    let most = all.iter().map(|w| w.preemptions).max().unwrap();
    for pace in [Pace::Batches(1), Pace::Batches(64), Pace::Window(5)] {
        let mut dfs = Dfs::new().cached();
        let (ends, visits) = found(&mut dfs, &program, pace);
        assert_eq!(ends, lasts(&all), "{}", tell());
        assert!(dfs.status().exhaustive && visits.len() <= all.len());
        for bound in 0..=most {
            let within: Vec<Outcome> = all.iter().filter(|w| w.preemptions <= bound).cloned().collect();
            let mut icb = Icb::new(Some(bound)).cached();
            let (ends, visits) = found(&mut icb, &program, pace);
            assert_eq!(ends, lasts(&within), "bound {bound} of {}", tell());
            assert!(visits.is_sorted_by_key(|(_, w)| w.preemptions), "{}", tell());
            assert!(visits.len() <= within.len(), "{}", tell());
            let status = icb.status();
            assert!(status.exhausted && status.explored_bound == Some(status.bound.unwrap()), "{}", tell());
        }
    }
}

#[test]
fn a_cache_of_states_loses_no_end_within_any_bound() {
    for seed in 0..usual_or_nightly(60, 500) {
        check_cached(seed, OperationSet::Any);
    }
    for seed in 0..usual_or_nightly(20, 150) {
        check_cached(seed, OperationSet::Crowds);
    }
}

/// The same with a state table of the exact states, instead of the happens-before cache.
#[test]
fn a_table_of_states_loses_no_end_within_any_bound() {
    TELLS_STATES.set(true);
    for seed in 0..usual_or_nightly(60, 500) {
        check_cached(seed, OperationSet::Any);
    }
    TELLS_STATES.set(false);
}

/// Searches a program within all bounds. Adds to `sums` the classes, the executions, the executions of a
/// search with a happens-before cache, and all schedules.
fn check_bounded(seed: u64, sums: &mut [usize; 4]) {
    let taste = if seed.is_multiple_of(2) { OperationSet::Exact } else { OperationSet::Any };
    let (program, all) = program(seed, taste, MOST);
    let most = all.iter().map(|w| w.preemptions).max().unwrap();
    for bound in 0..=most {
        let tell = || format!("bound {bound} of seed {seed}: {program:?}");
        let within: Vec<Outcome> = all.iter().filter(|w| w.preemptions <= bound).cloned().collect();
        let expected = classes(&within);
        let mut first = None;
        for pace in [Pace::Batches(1), Pace::Batches(64), Pace::Window(5)] {
            let mut bpor = Bpor::new(bound);
            let visits = drive(&mut bpor, &program, pace);
            let (outcomes, status) = (sorted(&visits), bpor.status());
            let found = classes(&outcomes);
            if found != expected {
                let missed = within.iter().find(|w| !found.contains(&w.class));
                panic!("{}: {} of {} classes, not {missed:?}", tell(), found.len(), expected.len());
            }
            assert_eq!(lasts(&outcomes), lasts(&within), "{}", tell());
            assert!(outcomes.iter().all(|w| w.preemptions <= bound), "{}", tell());
            assert_eq!(outcomes.windows(2).find(|two| two[0] == two[1]), None, "twice: {}", tell());
            assert!(status.exhausted && status.explored_bound == Some(bound), "{}", tell());
            assert_eq!(status.classes, Some(expected.len() as u64), "{}", tell());
            assert!(!status.exhaustive || found == classes(&all), "{}", tell());
            assert_eq!(
                *first.get_or_insert((outcomes.clone(), status.clone())),
                (outcomes, status),
                "{}",
                tell()
            );
        }
        let mut icb = Icb::new(Some(bound)).cached();
        let cached = drive(&mut icb, &program, Pace::Batches(64)).len();
        let executions = first.map_or(0, |(outcomes, _)| outcomes.len());
        let numbers = [expected.len(), executions, cached, within.len()];
        sums.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += number);
    }
}

fn check_all_bounded(seeds: std::ops::Range<u64>) {
    let mut sums = [0; 4];
    seeds.for_each(|seed| check_bounded(seed, &mut sums));
    let [classes, executions, cached, all] = sums;
    println!("{classes} classes, {executions} executions, {cached} with a cache, {all} schedules");
    assert!(executions < cached && cached < all, "{sums:?}");
}

#[test]
fn reduction_within_a_bound_loses_no_class_of_it() {
    check_all_bounded(0..usual_or_nightly(60, 500));
}

#[test]
#[ignore = "minutes: part of the nightly tests"]
fn ten_thousand_random_programs_within_bounds() {
    check_all_bounded(500..10_500);
}

#[test]
#[ignore = "minutes: part of the nightly tests"]
fn thousands_of_random_programs_with_what_may_fail() {
    (500..3000).for_each(|seed| {
        check_crowd(seed);
    });
    (500..3000).for_each(|seed| check(seed, OperationSet::Attempts));
}

#[test]
#[ignore = "minutes: part of the nightly tests"]
fn ten_thousand_random_programs_with_a_cache() {
    for seed in 500..10_500 {
        check_cached(seed, OperationSet::Any);
    }
}

#[test]
#[ignore = "minutes: part of the nightly tests"]
fn ten_thousand_random_programs() {
    for seed in 500..10_500 {
        check(seed, if seed % 2 == 0 { OperationSet::Exact } else { OperationSet::Any });
    }
}
