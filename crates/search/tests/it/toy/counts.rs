//! Toy programs with a known number of schedules.

use crate::toy::drive::{Visit, by_preemptions, drive_one_by_one, sorted};
use crate::toy::oracle::schedules;
use crate::toy::program::Do::{Choose, Doze, Lock, Post, Step, Try, Unlock, Wait};
use crate::toy::program::{Do, Program, independent, lock_order};
use heisen_search::{Dfs, Icb, Strategy};

fn choose(n: u64, k: u64) -> u64 {
    (0..k).fold(1, |c, i| c * (n - i) / (i + 1))
}

#[test]
fn dfs_of_two_independent_threads() {
    for (steps, literal) in [(1, 2), (2, 6), (3, 20), (4, 70), (5, 252), (6, 924)] {
        let mut dfs = Dfs::new();
        let visits = drive_one_by_one(&mut dfs, &independent(2, steps));
        assert_eq!(visits.len(), literal);
        assert_eq!(literal as u64, choose(2 * steps as u64, steps as u64));
        let status = dfs.status();
        assert!(status.exhausted && status.exhaustive);
        assert_eq!((status.executions, status.queued, status.out), (literal as u64, 0, 0));
        assert_eq!((status.bound, status.explored_bound, status.guarantee), (None, None, None));
    }
}

#[test]
fn dfs_of_three_and_four_threads() {
    // (3 · 2)! / 2!^3 and 4!.
    assert_eq!(drive_one_by_one(&mut Dfs::new(), &independent(3, 2)).len(), 90);
    assert_eq!(drive_one_by_one(&mut Dfs::new(), &independent(4, 1)).len(), 24);
    assert_eq!(drive_one_by_one(&mut Dfs::new(), &independent(1, 9)).len(), 1);
}

/// The schedules of visits as words, with one letter for each thread.
fn words(visits: &[Visit]) -> Vec<String> {
    let word = |v: &Visit| v.1.schedule.iter().map(|&(t, _)| ["a", "b", "c"][t]).collect();
    visits.iter().map(word).collect()
}

#[test]
fn dfs_varies_the_last_decision_first() {
    let visits = drive_one_by_one(&mut Dfs::new(), &independent(2, 2));
    assert_eq!(words(&visits), ["aabb", "abba", "abab", "bbaa", "baab", "baba"]);
}

#[test]
fn icb_is_depth_first_within_a_bound_and_defers_the_deepest_first() {
    let visits = drive_one_by_one(&mut Icb::new(None), &vec![vec![Step, Step], vec![Step], vec![Step]]);
    assert_eq!(words(&visits[..6]), ["aabc", "aacb", "bcaa", "baac", "caab", "cbaa"]);
    assert_eq!(words(&visits[6..]), ["abca", "abac", "acab", "acba", "baca", "caba"]);
    assert_eq!(by_preemptions(&visits), [6, 6]);
    // Plans that preempt the first thread after its second step come before those that preempt it after its
    // first.
    let visits = drive_one_by_one(&mut Icb::new(Some(1)), &independent(2, 3));
    assert_eq!(words(&visits), ["aaabbb", "bbbaaa", "aabbba", "abbbaa", "bbaaab", "baaabb"]);
}

#[test]
fn icb_of_two_independent_threads_by_bound() {
    // With two threads, every switch but the last leaves a thread that runs again. So there is one preemption
    // fewer than switches. Let the first thread's k steps form i blocks and the other's j blocks, with i = j
    // or i = j + 1. There are C(k-1, i-1) · C(k-1, j-1) such schedules, and as many again that start with the
    // other thread.
    for (steps, literal) in
        [(1, vec![2]), (2, vec![2, 2, 2]), (3, vec![2, 4, 8, 4, 2]), (4, vec![2, 6, 18, 18, 18, 6, 2])]
    {
        let mut icb = Icb::new(None);
        let visits = drive_one_by_one(&mut icb, &independent(2, steps));
        assert_eq!(by_preemptions(&visits), literal, "{steps} steps");
        assert!(visits.is_sorted_by_key(|(plan, _)| plan.preemptions));
        let status = icb.status();
        assert!(status.exhausted && status.exhaustive);
        assert_eq!(status.explored_bound, Some(literal.len() as u32 - 1));
    }
}

#[test]
fn icb_stops_at_its_bound_and_says_so() {
    for (max, count) in [(0, 2), (1, 6), (2, 14), (3, 18)] {
        let mut icb = Icb::new(Some(max));
        let visits = drive_one_by_one(&mut icb, &independent(2, 3));
        assert_eq!(visits.len(), count);
        let status = icb.status();
        assert!(status.exhausted && !status.exhaustive && status.beyond > 0);
        assert_eq!((status.bound, status.explored_bound, status.deferred), (Some(max), Some(max), 0));
    }
    for max in [4, 5, 99] {
        let mut icb = Icb::new(Some(max));
        assert_eq!(drive_one_by_one(&mut icb, &independent(2, 3)).len(), 20);
        assert!(icb.status().exhaustive, "a bound that cuts nothing leaves the search whole");
        assert_eq!(icb.status().explored_bound, Some(4));
    }
}

#[test]
fn icb_reports_the_bound_it_is_in() {
    let program = independent(2, 2);
    let mut icb = Icb::new(None);
    let status = icb.status();
    assert_eq!((status.bound, status.explored_bound, status.queued), (Some(0), None, 1));
    let mut seen = Vec::new();
    while let Some(plan) = icb.next() {
        let status = icb.status();
        assert_eq!(status.out, 1);
        assert!(!status.exhausted);
        seen.push((status.bound, status.explored_bound));
        icb.done(&plan, &crate::toy::runner::run(&program, &plan).execution);
    }
    let bound = |c: u32| (Some(c), c.checked_sub(1));
    assert_eq!(seen, [bound(0), bound(0), bound(1), bound(1), bound(2), bound(2)]);
}

#[test]
fn icb_does_not_raise_the_bound_while_plans_are_out() {
    let program = independent(2, 2);
    let run = |plan: &_| crate::toy::runner::run(&program, plan).execution;
    let mut icb = Icb::new(None);
    let first = icb.next().unwrap();
    assert_eq!(icb.next(), None);
    icb.done(&first, &run(&first));
    let second = icb.next().unwrap();
    assert_eq!((second.preemptions, icb.status().deferred), (0, 1));
    assert_eq!(icb.next(), None, "what is out could still lead to more within the bound");
    icb.done(&second, &run(&second));
    assert_eq!((icb.status().explored_bound, icb.status().deferred), (Some(0), 2));
    assert_eq!(icb.next().unwrap().preemptions, 1);
}

#[test]
fn two_locks_in_opposite_order() {
    // The starting thread can be preempted after its first lock: the other takes its own first lock, and both
    // wait forever (deadlock). It can also be preempted after its first unlock: the other takes that lock and
    // waits. Between the two points the other thread is not enabled.
    let mut icb = Icb::new(None);
    let visits = drive_one_by_one(&mut icb, &lock_order());
    assert_eq!(by_preemptions(&visits), [2, 4]);
    let deadlocks: Vec<u32> = visits.iter().filter(|v| v.1.deadlock).map(|v| v.1.preemptions).collect();
    assert_eq!(deadlocks, [1, 1]);
    assert!(icb.status().exhaustive);
    assert_eq!(drive_one_by_one(&mut Dfs::new(), &lock_order()).len(), 6);
}

#[test]
fn three_threads_around_a_table() {
    let fork = |a, b| vec![Lock(a), Lock(b), Unlock(b), Unlock(a)];
    let program = vec![fork(0, 1), fork(1, 2), fork(2, 0)];
    let visits = drive_one_by_one(&mut Icb::new(None), &program);
    // One preemption is enough. The preempted thread holds the lock that the second waits for, and the second
    // holds the lock that the third waits for.
    let first = visits.iter().find(|v| v.1.deadlock).unwrap();
    assert_eq!(first.1.preemptions, 1);
    assert_eq!(first.1.schedule.len(), 3);
    assert_eq!(sorted(&visits), sorted_oracle(&program));
}

#[test]
fn semaphores_order_threads_without_preemptions() {
    // The second thread waits for the first, so there is only one schedule.
    let program = vec![vec![Step, Post(0)], vec![Wait(0), Step]];
    assert_eq!(drive_one_by_one(&mut Dfs::new(), &program).len(), 1);
    // A missing post is a deadlock in every schedule, and the first one finds it.
    let program = vec![vec![Step], vec![Wait(0)]];
    let visits = drive_one_by_one(&mut Icb::new(None), &program);
    assert_eq!((visits.len(), visits[0].1.deadlock), (1, true));
}

#[test]
fn choices_that_are_not_of_threads_cost_nothing() {
    // Outcome 0 leads to two more steps, outcome 1 to one and outcome 2 to none.
    let visits = drive_one_by_one(&mut Icb::new(None), &vec![vec![Choose(3), Step, Step]]);
    assert_eq!(by_preemptions(&visits), [3]);
    let lengths: Vec<usize> = visits.iter().map(|v| v.1.schedule.len()).collect();
    assert_eq!(lengths, [3, 2, 1]);
    // Two threads with one such choice each: two orders, 2 · 3 outcomes.
    let visits = drive_one_by_one(&mut Dfs::new(), &vec![vec![Choose(2)], vec![Choose(3)]]);
    assert_eq!(visits.len(), 12);
    // A choice with one outcome is not a decision.
    assert_eq!(drive_one_by_one(&mut Dfs::new(), &vec![vec![Choose(1)]]).len(), 1);
}

#[test]
fn budgets_end_choices() {
    // The budget is one fault: no attempt fails, or the first, or the second. Both would be one fault too
    // many.
    let visits = drive_one_by_one(&mut Icb::new(None), &vec![vec![Try(0), Unlock(0), Try(0)]]);
    assert_eq!(by_preemptions(&visits), [3]);
    // An attempt at a held lock fails without a choice.
    let visits = drive_one_by_one(&mut Dfs::new(), &vec![vec![Lock(0), Try(0)]]);
    assert_eq!(visits.len(), 1);
    // A wait for a post that never comes ends only by a spurious wake-up. The budget allows one.
    let visits = drive_one_by_one(&mut Icb::new(None), &vec![vec![Doze, Wait(0)]]);
    assert_eq!(visits.iter().map(|v| v.1.deadlock).collect::<Vec<_>>(), [true, false]);
    let visits = drive_one_by_one(&mut Icb::new(None), &vec![vec![Doze, Wait(0), Doze, Wait(0)]]);
    assert_eq!(visits.iter().map(|v| v.1.deadlock).collect::<Vec<_>>(), [true, true]);
}

#[test]
fn theorem_1_bounds_the_executions_of_each_bound() {
    let programs: [Program; 6] = [
        independent(2, 4),
        independent(3, 2),
        independent(4, 1),
        lock_order(),
        vec![vec![Lock(0), Step, Unlock(0)]; 3],
        vec![vec![Post(0), Wait(1), Step], vec![Wait(0), Step, Post(1)], vec![Step, Step]],
    ];
    for program in programs {
        let n = program.len() as u64;
        let k = program.iter().map(Vec::len).max().unwrap() as u64;
        let blocking = |t: &Vec<Do>| t.iter().filter(|d| matches!(d, Lock(_) | Wait(_))).count() as u64;
        // The end of a thread counts as a blocking step.
        let b = 1 + program.iter().map(blocking).max().unwrap();
        let counts = by_preemptions(&drive_one_by_one(&mut Icb::new(None), &program));
        for (c, &count) in counts.iter().enumerate() {
            let c = c as u64;
            let bound = u128::from(choose(n * k, c)) * (1..=u128::from(n * b + c)).product::<u128>();
            assert!(u128::try_from(count).unwrap() <= bound, "{program:?}: {count} with {c} preemptions");
        }
    }
}

fn sorted_oracle(program: &Program) -> Vec<crate::toy::oracle::Outcome> {
    let mut all = schedules(program, usize::MAX).unwrap();
    all.sort();
    all
}
