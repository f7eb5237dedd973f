//! Tests of searches that are saved half way and resumed.

use crate::toy::drive::{Pace, drive, drive_for};
use crate::toy::program::Do::{Add, Choose, Load, Lock, Step, Store, Unlock};
use crate::toy::program::{Program, independent};
use heisen_search::{
    Best, Bpor, Burst, Delay, Dfs, Dpor, FairPct, Guided, Icb, Pct, Portfolio, Pos, Random, Search, Strategy,
    Surw,
};
use heisen_trace::{End, Execution, Plan};

fn saved_and_read(search: &Search) -> Search {
    serde_json::from_str(&serde_json::to_string(search).unwrap()).unwrap()
}

fn programs() -> [Program; 4] {
    let locked = vec![Lock(0), Step, Unlock(0)];
    let racy = vec![Load(0), Store(0)];
    [
        independent(2, 3),
        vec![locked.clone(), locked, vec![Choose(2), Step]],
        independent(3, 2),
        vec![racy.clone(), racy, vec![Choose(2), Add(0)]],
    ]
}

/// With a cache, the dropped branches depend on earlier executions, and so on how many plans are out at a
/// time.
fn cached() -> [Search; 2] {
    [Dfs::new().cached().into(), Icb::new(None).cached().into()]
}

fn systematic() -> [Search; 9] {
    [
        Dfs::new().into(),
        Icb::new(None).into(),
        Icb::new(Some(1)).into(),
        Best::new(None, vec![]).into(),
        Best::new(Some(1), vec![(0, 1 << 20)]).into(),
        Dpor::optimal().into(),
        Dpor::source().into(),
        Dpor::sleeping().into(),
        Bpor::new(1).into(),
    ]
}

#[test]
fn a_systematic_search_goes_on_with_the_same_plans() {
    for program in programs() {
        for (search, repeats) in
            systematic().into_iter().map(|s| (s, true)).chain(cached().into_iter().map(|s| (s, false)))
        {
            for pace in [Pace::Batches(1), Pace::Batches(4)] {
                let whole = drive(&mut search.clone(), &program, pace);
                for cut in (0..=whole.len()).step_by(3) {
                    let mut search = search.clone();
                    let before = drive_for(&mut search, &program, Pace::Batches(1), cut);
                    assert_eq!(before.len(), cut);
                    let mut resumed = saved_and_read(&search);
                    assert_eq!(resumed.status(), search.status());
                    let after = drive(&mut search, &program, pace);
                    assert_eq!(drive(&mut resumed, &program, pace), after);
                    assert!(!repeats || before.len() + after.len() == whole.len());
                    assert_eq!(resumed.status(), search.status());
                }
            }
        }
    }
}

#[test]
fn plans_that_are_out_when_it_is_saved_are_the_next_ones_out() {
    for program in programs() {
        for search in systematic().into_iter().chain(cached()) {
            for cut in 0..30 {
                let mut search = search.clone();
                drive_for(&mut search, &program, Pace::Window(1), cut);
                let out: Vec<Plan> = (0..3).map_while(|_| search.next()).collect();

                let mut resumed = saved_and_read(&search);
                assert_eq!((resumed.status().out, search.status().out), (0, out.len()));
                assert_eq!(resumed.status().exhausted, search.status().exhausted);

                // If its plans are given back unrun, in any order, the original search continues like the
                // resumed one.
                for plan in out.iter().rev() {
                    search.give_back_unrun(plan);
                }
                assert_eq!(resumed.status(), search.status());
                let again: Vec<Plan> = (0..out.len()).map_while(|_| resumed.next()).collect();
                assert_eq!(again, out);
                for plan in &again {
                    resumed.give_back_unrun(plan);
                }
                let left = drive(&mut resumed, &program, Pace::Batches(1));
                assert_eq!(drive(&mut search, &program, Pace::Batches(1)), left);
            }
        }
    }
}

#[test]
fn a_search_interrupted_again_and_again_loses_and_repeats_nothing() {
    for program in programs() {
        for search in systematic() {
            let mut expected = drive(&mut search.clone(), &program, Pace::Batches(1));
            let (mut visits, mut again) = (Vec::new(), 0);
            let mut search = search;
            while !search.status().exhausted {
                // Five plans are taken and two finished. Three are lost with the process.
                visits.extend(drive_for(&mut search, &program, Pace::Window(5), 2));
                search = saved_and_read(&search);
                again += search.take_rerun().executions as usize;
            }
            assert_eq!(visits.len() - again, expected.len());
            let key = |(plan, _): &(Plan, _)| plan.overrides.clone();
            expected.sort_by_key(key);
            visits.sort_by_key(key);
            if ["dpor", "bpor"].contains(&search.name()) {
                // Plans that were finished before their turn run again.
                visits.dedup();
                assert_eq!(search.status().executions, visits.len() as u64);
            }
            assert_eq!(visits, expected);
        }
    }
}

fn sampling() -> [Search; 9] {
    [
        Random::new(3).into(),
        Burst::new(3, None).into(),
        Pct::new(3, 3).into(),
        FairPct::new(3, 3).into(),
        Pos::new(3).into(),
        Surw::new(3).into(),
        Delay::new(3, 2).into(),
        Guided::new(3).into(),
        Portfolio::new(3).into(),
    ]
}

#[test]
fn a_search_by_chance_goes_on_with_the_same_plans() {
    let steps = |plan: &Plan| 10 + serde_json::to_string(plan).unwrap().len() as u32 % 7;
    let finish = |search: &mut Search, plan: &Plan| {
        search.done(
            plan,
            &Execution {
                steps: steps(plan),
                threads: 2,
                decisions: vec![],
                touches: vec![],
                end: End::Exit(0),
                notes: vec![],
                diverged: None,
                fingerprint: None,
                counted: vec![],
                symbolic: None,
            },
        );
    };
    let run = |search: &mut Search, count: usize| -> Vec<Plan> {
        let mut plans = Vec::new();
        for _ in 0..count {
            let plan = search.next().unwrap();
            finish(search, &plan);
            plans.push(plan);
        }
        plans
    };
    for search in sampling() {
        let whole = run(&mut search.clone(), 200);
        for cut in [0, 1, 2, 3, 50, 63, 64, 127] {
            let mut search = search.clone();
            run(&mut search, cut);
            // The first plan is finished. The others remain out.
            let out: Vec<Plan> = (0..4).map_while(|_| search.next()).collect();
            finish(&mut search, &out[0]);
            let mut resumed = saved_and_read(&search);
            let rest = run(&mut resumed, 199 - cut);
            assert_eq!(rest, whole[cut + 1..], "{} after {cut}", search.name());
            assert_eq!(resumed.status().executions, 200);
        }
    }
}

#[test]
fn a_saved_search_names_its_strategy() {
    for search in systematic().into_iter().chain(sampling()) {
        let text = serde_json::to_string(&search).unwrap();
        assert!(text.starts_with(&format!("{{\"{}\":", search.name())), "{text}");
        assert_eq!(saved_and_read(&search).name(), search.name());
    }
}
