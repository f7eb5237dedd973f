//! Tests of best-first search on toy programs: it runs as many executions as depth-first search, the most
//! promising ones first.

use crate::toy::drive::{Visit, drive_one_by_one, sorted};
use crate::toy::program::Do::{Add, Choose, Load, Lock, Step, Store, Unlock};
use crate::toy::program::{Program, independent, place};
use heisen_search::{Best, Dfs, Icb, Strategy, Touches};

fn programs() -> [Program; 4] {
    let locked = vec![Lock(0), Add(1), Unlock(0)];
    let racy = vec![Load(0), Store(0), Load(0)];
    [
        independent(2, 5),
        independent(3, 2),
        vec![locked.clone(), locked, vec![Choose(2), Add(1)]],
        vec![racy.clone(), racy],
    ]
}

#[test]
fn as_many_as_dfs_and_within_a_bound_as_many_as_icb() {
    for program in programs() {
        let all = sorted(&drive_one_by_one(&mut Dfs::new(), &program));
        let mut best = Best::new(None, vec![]);
        assert_eq!(sorted(&drive_one_by_one(&mut best, &program)), all);
        assert!(
            best.status().exhaustive && best.needs_decisions() && best.needs_touches() == Touches::Places
        );
        for bound in 0..4 {
            let (mut best, mut icb) = (Best::new(Some(bound), vec![]), Icb::new(Some(bound)));
            let within = sorted(&drive_one_by_one(&mut icb, &program));
            assert_eq!(sorted(&drive_one_by_one(&mut best, &program)), within);
            let (best, icb) = (best.status(), icb.status());
            assert_eq!((best.exhaustive, best.exhausted), (icb.exhaustive, true));
            assert_eq!((best.bound, best.explored_bound), (None, Some(bound)));
            assert_eq!(best.beyond == 0, icb.beyond == 0);
        }
    }
    assert_eq!(drive_one_by_one(&mut Best::new(None, vec![]), &independent(2, 5)).len(), 252);
}

/// The thread that the last override of a plan preempted, and the number of its next operation.
fn left((plan, whole): &Visit) -> Option<(usize, usize)> {
    let step = plan.overrides.last()?.step as usize;
    let past = &whole.schedule[..step - 1];
    let done = |thread: usize| past.iter().filter(|&&(t, _)| t == thread).count();
    // Choice 0 is the thread that took the previous step, unless it has ended.
    let running = past.last().map_or(0, |&(t, _)| t);
    Some((running, done(running)))
}

#[test]
fn changed_code_comes_first() {
    let program: Program = vec![vec![Load(0), Add(1), Store(0), Add(2), Load(0)]; 2];
    for (thread, operation) in [(0, 1), (0, 3), (0, 4)] {
        // The search takes a place as a return address, so the call itself is one byte before it.
        let at = place(thread, operation);
        let mut best = Best::new(None, vec![(at - 1, at), (1, 2)]);
        let visits = drive_one_by_one(&mut best, &program);
        assert_eq!(visits.len(), 252);
        assert_eq!(left(&visits[1]), Some((thread, operation)), "the only one there so far");
        let there = |visits: &[Visit]| -> Vec<usize> {
            (0..252).filter(|&n| left(&visits[n]) == Some((thread, operation))).collect()
        };
        let plain = drive_one_by_one(&mut Best::new(None, vec![]), &program);
        let (first, usual) = (there(&visits), there(&plain));
        assert_eq!(first.len(), usual.len());
        assert!(first.iter().sum::<usize>() < usual.iter().sum::<usize>(), "{first:?} {usual:?}");
    }
}

#[test]
fn what_was_seen_often_comes_later() {
    // To the scheduler all rounds of the loop differ, but their places are the same. One other step has a
    // place of its own, which is soon explored.
    let mut program: Program = vec![vec![Step; 6], vec![Add(0), Add(0)]];
    program[0].insert(3, Add(0));
    let visits = drive_one_by_one(&mut Best::new(None, vec![]), &program);
    assert_eq!(visits.len(), 36);
    let new = |visits: &[Visit]| {
        let mut classes: Vec<u64> = visits.iter().map(|(_, whole)| whole.class).collect();
        classes.sort_unstable();
        classes.dedup();
        classes.len()
    };
    let all = new(&visits);
    let by_dfs = drive_one_by_one(&mut Dfs::new(), &program);
    let until = |visits: &[Visit]| (1..=visits.len()).find(|&n| new(&visits[..n]) == all).unwrap();
    assert!(until(&visits) < until(&by_dfs), "{} {}", until(&visits), until(&by_dfs));
}
