//! Tests of guided search on toy programs that really run.

use crate::toy::drive::{Pace, drive_for};
use crate::toy::oracle::schedules;
use crate::toy::program::Do::{Add, Choose, Load, Lock, Store, Unlock};
use crate::toy::program::{Program, independent};
use heisen_search::{Guided, Search, Strategy};
use heisen_trace::Plan;
use std::collections::HashSet;

fn programs() -> [Program; 3] {
    let locked = vec![Lock(0), Add(1), Unlock(0), Lock(0), Add(1), Unlock(0)];
    let racy = vec![Load(0), Store(0), Load(1), Store(1)];
    [
        vec![racy.clone(), racy.clone()],
        vec![locked.clone(), locked, vec![Choose(3), Add(1), Add(2)]],
        vec![racy.clone(), vec![Lock(0), Load(0), Unlock(0)], racy],
    ]
}

#[test]
fn it_is_its_seed_however_many_run_at_a_time() {
    for program in programs() {
        let plans = |seed, pace| {
            drive_for(&mut Guided::new(seed), &program, pace, 600).into_iter().map(|(p, _)| p).collect()
        };
        let whole: Vec<Plan> = plans(5, Pace::Batches(1));
        for pace in [Pace::Window(2), Pace::Window(7), Pace::Batches(64), Pace::Batches(1000)] {
            assert_eq!(plans(5, pace), whole);
        }
        assert_ne!(plans(6, Pace::Batches(1)), whole);
        let changed = whole.iter().filter(|plan| !plan.overrides.is_empty()).count();
        assert!(changed > 300, "{changed} of 600 are changed ones");
        assert!(whole[1..].iter().all(|plan| plan.touches && plan.places));
        assert!(whole.iter().all(|plan| plan.overrides.is_sorted_by_key(|o| o.step)));
    }
}

#[test]
fn a_search_that_was_saved_goes_on_with_the_same_plans() {
    let program = &programs()[1];
    let whole = drive_for(&mut Guided::new(9), program, Pace::Batches(1), 400);
    for cut in [1, 2, 3, 31, 100, 255, 256] {
        let mut search = Search::from(Guided::new(9));
        drive_for(&mut search, program, Pace::Batches(1), cut);
        // Several plans are out, and the last of them is finished before its turn.
        let out: Vec<Plan> = (0..4).map_while(|_| search.next()).collect();
        if let Some(plan) = out.last() {
            search.done(plan, &crate::toy::runner::run(program, plan).execution);
        }
        let mut read: Search = serde_json::from_str(&serde_json::to_string(&search).unwrap()).unwrap();
        let mut rest = drive_for(&mut read, program, Pace::Batches(1), 400 - cut - 1);
        let mut expected = whole[cut..].to_vec();
        expected.remove(out.len() - 1);
        assert_eq!(rest.len(), expected.len());
        // In the interrupted batch the order of plans may differ.
        rest.sort_by_key(|(plan, _)| format!("{plan:?}"));
        expected.sort_by_key(|(plan, _)| format!("{plan:?}"));
        assert_eq!(rest, expected, "after {cut}");
    }
}

#[test]
fn it_comes_to_every_class() {
    for program in programs() {
        let all: HashSet<u64> = schedules(&program, 1 << 20).unwrap().iter().map(|w| w.class).collect();
        let visits = drive_for(&mut Guided::new(1), &program, Pace::Batches(8), 20_000);
        let found: HashSet<u64> = visits.iter().map(|(_, whole)| whole.class).collect();
        assert_eq!(found.len(), all.len());
    }
}

#[test]
fn nothing_shared_is_no_trouble() {
    let visits = drive_for(&mut Guided::new(2), &independent(2, 3), Pace::Batches(8), 300);
    assert_eq!(visits.len(), 300);
    let one = drive_for(&mut Guided::new(2), &independent(1, 1), Pace::Batches(8), 100);
    assert!(one.iter().all(|(_, whole)| whole.schedule.len() == 1));
}
