//! Tests of the samplers, with executions that are made up.

use heisen_search::{Burst, Delay, FairPct, Guarantee, Pct, Portfolio, Pos, Random, Strategy, Surw};
use heisen_trace::{Counted, End, Execution, Plan, Policy};
use std::collections::{HashSet, VecDeque};

fn execution(steps: u32, threads: u32) -> Execution {
    Execution {
        steps,
        threads,
        decisions: vec![],
        touches: vec![],
        end: End::Exit(0),
        notes: vec![],
        diverged: None,
        fingerprint: None,
        counted: vec![],
        symbolic: None,
    }
}

/// Runs `count` plans, with up to `room` of them out at a time, and returns them. `steps` gives the length of
/// each execution.
fn run(strategy: &mut dyn Strategy, count: usize, room: usize, steps: impl Fn(&Plan) -> u32) -> Vec<Plan> {
    let (mut plans, mut out) = (Vec::new(), VecDeque::new());
    while plans.len() < count {
        while out.len() < room
            && plans.len() < count
            && let Some(plan) = strategy.next()
        {
            plans.push(plan.clone());
            out.push_back(plan);
        }
        let plan = out.pop_front().expect("an endless search stops only while plans are out");
        strategy.done(&plan, &execution(steps(&plan), 3));
    }
    while let Some(plan) = out.pop_front() {
        strategy.done(&plan, &execution(steps(&plan), 3));
    }
    plans
}

fn seed(plan: &Plan) -> u64 {
    match plan.policy {
        Policy::Default => 0,
        Policy::Random { seed }
        | Policy::Burst { seed, .. }
        | Policy::Pct { seed, .. }
        | Policy::FairPct { seed, .. }
        | Policy::Pos { seed }
        | Policy::Surw { seed, .. }
        | Policy::Delay { seed, .. }
        | Policy::Directed { seed, .. } => seed,
    }
}

#[test]
fn random_is_its_seed() {
    let plans = run(&mut Random::new(7), 500, 1, |_| 10);
    assert_eq!(plans, run(&mut Random::new(7), 500, 8, |_| 10));
    assert_ne!(plans, run(&mut Random::new(8), 500, 1, |_| 10));
    assert_eq!(plans.iter().map(seed).collect::<HashSet<_>>().len(), 500);
    for plan in &plans {
        let fingerprint = plan.fingerprint;
        assert_eq!(*plan, Plan { fingerprint, ..Plan::new(Policy::Random { seed: seed(plan) }) });
    }
    let mut random = Random::new(7);
    run(&mut random, 500, 1, |_| 10);
    let status = random.status();
    assert!(!random.needs_decisions() && !status.exhausted && !status.exhaustive);
    assert_eq!((status.executions, status.bound, status.guarantee), (500, None, None));
}

#[test]
fn pct_measures_first() {
    let mut pct = Pct::new(1, 3);
    assert!(!pct.needs_decisions());
    let first = pct.next().unwrap();
    assert_eq!(first, Plan::new(Policy::Default));
    assert_eq!(pct.next(), None, "nothing is known yet");
    assert_eq!(pct.status().guarantee, None);
    pct.done(&first, &execution(40, 4));
    assert_eq!(pct.status().guarantee, Some(Guarantee::new(3, 4, 40, 0)), "the measurement earns nothing");
    let Some(Policy::Pct { depth, steps, .. }) = pct.next().map(|p| p.policy) else { panic!() };
    assert_eq!((depth, steps), (3, 40));
}

/// An execution length from 20 to 59 that depends only on the seed, so the longest length so far grows now
/// and then.
fn uneven(plan: &Plan) -> u32 {
    20 + (seed(plan) % 1000 / 25) as u32
}

#[test]
fn pct_does_not_depend_on_how_many_run_at_a_time() {
    let plans = run(&mut Pct::new(5, 3), 3000, 1, uneven);
    for room in [2, 7, 64, 5000] {
        assert_eq!(plans, run(&mut Pct::new(5, 3), 3000, room, uneven));
    }
    assert_ne!(plans, run(&mut Pct::new(6, 3), 3000, 1, uneven));
    assert_eq!(plans.iter().map(seed).collect::<HashSet<_>>().len(), 3000);
    let steps = |plan: &Plan| if let Policy::Pct { steps, .. } = plan.policy { steps } else { 0 };
    assert!(plans.is_sorted_by_key(steps));
    assert_eq!((steps(&plans[1]), steps(&plans[2999])), (20, 59));
}

#[test]
fn pct_corrects_its_steps_between_batches() {
    let mut pct = Pct::new(1, 2);
    // Batches have 1, 2, 4, ... plans. The fourth execution is longer than those before it.
    let lengths = [10, 10, 10, 25, 10, 10, 10, 10];
    let mut used = Vec::new();
    for length in lengths {
        let plan = pct.next().unwrap();
        used.push(if let Policy::Pct { steps, .. } = plan.policy { steps } else { 0 });
        pct.done(&plan, &execution(length, 2));
    }
    assert_eq!(used, [0, 10, 10, 10, 10, 10, 10, 25]);
    // Only the last plan used the current number of steps, so only it counts.
    assert_eq!(pct.status().guarantee, Some(Guarantee::new(2, 2, 25, 1)));
}

#[test]
fn pct_earns_what_the_theorem_says() {
    let mut pct = Pct::new(1, 2);
    for _ in 0..3 {
        let plan = pct.next().unwrap();
        pct.done(&plan, &execution(10, 2));
    }
    let g = pct.status().guarantee.unwrap();
    assert_eq!((g.depth, g.threads, g.steps, g.executions), (2, 2, 10, 2));
    assert!((g.per_execution - 0.05).abs() < 1e-15 && (g.total - 0.0975).abs() < 1e-15, "{g:?}");
    // An execution with more threads lowers the probability of all executions so far, but does not invalidate
    // them.
    let plan = pct.next().unwrap();
    pct.done(&plan, &execution(10, 5));
    assert_eq!(pct.status().guarantee, Some(Guarantee::new(2, 5, 10, 3)));
    // An execution that got stuck or hit the step limit does not count.
    for end in [End::Stuck, End::StepLimit] {
        let plan = pct.next().unwrap();
        pct.done(&plan, &Execution { end, ..execution(10, 2) });
    }
    assert_eq!(pct.status().guarantee, Some(Guarantee::new(2, 5, 10, 3)));
    assert_eq!((pct.status().executions, pct.status().stuck), (6, 1));
}

#[test]
fn pct_of_depth_0_is_of_depth_1() {
    let mut pct = Pct::new(1, 0);
    run(&mut pct, 3, 1, |_| 10);
    assert_eq!(pct.status().guarantee, Some(Guarantee::new(1, 3, 10, 2)));
}

#[test]
fn bursts_are_of_the_length_asked_for_or_of_all() {
    let lengths = |burst: &mut Burst| -> Vec<u32> {
        let length = |plan: &Plan| if let Policy::Burst { length, .. } = plan.policy { length } else { 0 };
        run(burst, 20, 4, |_| 10).iter().map(length).collect()
    };
    assert_eq!(lengths(&mut Burst::new(1, Some(7))), [7; 20]);
    assert_eq!(lengths(&mut Burst::new(1, Some(0))), [1; 20]);
    let all = [1, 2, 4, 8, 16, 32, 64, 128, 256];
    assert_eq!(
        lengths(&mut Burst::new(1, None)),
        [all, all].concat().into_iter().chain([1, 2]).collect::<Vec<_>>()
    );
}

#[test]
fn fair_pct_keeps_to_the_length_of_the_first() {
    let mut fair = FairPct::new(1, 3);
    let mut lengths = Vec::new();
    for length in [30, 50, 40, 90] {
        let plan = fair.next().unwrap();
        lengths.push(if let Policy::FairPct { steps, depth: 3, .. } = plan.policy { steps } else { 0 });
        fair.done(&plan, &execution(length, 2));
    }
    assert_eq!(lengths, [0, 30, 30, 30]);
    assert_eq!(fair.status().guarantee, None);
}

#[test]
fn delays_are_spread_over_the_longest() {
    let mut delay = Delay::new(1, 4);
    let mut lengths = Vec::new();
    for length in [30, 50, 40, 90] {
        let plan = delay.next().unwrap();
        lengths.push(if let Policy::Delay { steps, delays: 4, .. } = plan.policy { steps } else { 0 });
        delay.done(&plan, &execution(length, 2));
    }
    assert_eq!(lengths, [0, 30, 30, 50]);
}

#[test]
fn surw_learns_what_to_expect_and_leaves_out_what_has_nothing() {
    let mut surw = Surw::new(1);
    let mut parts = Vec::new();
    for number in 0..1000u64 {
        let plan = surw.next().unwrap();
        let Policy::Surw { part, expected, .. } = &plan.policy else { panic!("{plan:?}") };
        // Every other execution selects all objects. Of the parts, only the third one has more than one
        // event.
        let events = if *part == 0 { 7 } else { u32::from(*part == 3) * 5 };
        if number >= 100 {
            let main = expected[0];
            assert_eq!((main.events, main.children), (u64::from(events) + 1, 1));
        }
        parts.push(*part);
        let counted = vec![
            Counted { parent: None, child: 0, events: 1 },
            Counted { parent: Some(0), child: 1, events },
        ];
        let counted = if events == 0 { vec![] } else { counted };
        surw.done(&plan, &Execution { counted, ..execution(10, 2) });
    }
    assert!(parts.iter().step_by(2).all(|&part| part == 0));
    assert!((1..=8).all(|part| parts[..100].contains(&part)));
    assert!(parts[100..].iter().skip(1).step_by(2).all(|&part| part == 3));
}

#[test]
fn the_portfolio_does_not_depend_on_how_many_run_at_a_time() {
    let plans = run(&mut Portfolio::new(5), 2000, 1, uneven);
    for room in [2, 7, 64, 5000] {
        assert_eq!(plans, run(&mut Portfolio::new(5), 2000, room, uneven));
    }
    assert_ne!(plans, run(&mut Portfolio::new(6), 2000, 1, uneven));
    assert_eq!(
        plans[0],
        Plan::new(Policy::Surw { seed: seed(&plans[0]), part: 0, length: 1, expected: [].into() })
    );
    assert_eq!(plans.iter().map(seed).collect::<HashSet<_>>().len(), 2000);
    // Every sampler gets its turn early. The priority-based ones use the measured length of executions.
    let names: HashSet<_> = plans[1..200].iter().map(|plan| std::mem::discriminant(&plan.policy)).collect();
    assert_eq!(names.len(), 7);
    let first = uneven(&plans[0]);
    let short = |plan: &&Plan| matches!(plan.policy, Policy::Pct { steps, .. } if steps < first);
    assert_eq!(plans.iter().find(short), None);
}

/// The executions have different counts, so the expected events of a plan show which executions it is based
/// on.
#[test]
fn two_of_three_of_the_first_plans_of_the_portfolio_are_those_of_surw() {
    let policies = |strategy: &mut dyn Strategy, many: u64| -> Vec<Policy> {
        let one = |_| {
            let plan = strategy.next().unwrap();
            let events = (seed(&plan) % 100) as u32;
            let counted = vec![
                Counted { parent: None, child: 0, events },
                Counted { parent: Some(0), child: 1, events: 100 + events / 2 },
            ];
            strategy.done(&plan, &Execution { counted, ..execution(10, 2) });
            plan.policy
        };
        (0..many).map(one).collect()
    };
    for seed in 0..10 {
        let of_surw = policies(&mut Surw::new(seed), 127);
        let of_portfolio = policies(&mut Portfolio::new(seed), 190);
        for (n, policy) in (1..).zip(&of_surw) {
            assert_eq!(&of_portfolio[3 * n / 2 - 1], policy, "plan {n} of seed {seed}");
        }
        // None of the other plans is a walk that draws each event anew. The first one is a walk with runs of
        // length 4.
        let others: Vec<&Policy> = of_portfolio.iter().skip(1).step_by(3).collect();
        assert!(others.iter().all(|policy| !matches!(policy, Policy::Surw { length: 1, .. })));
        assert!(matches!(others[0], Policy::Surw { length: 4, part: 0, .. }), "{:?}", others[0]);
    }
}

#[test]
fn the_portfolio_earns_by_its_executions_of_pct() {
    let mut portfolio = Portfolio::new(1);
    let plans = run(&mut portfolio, 1000, 64, |_| 10);
    let count =
        plans.iter().filter(|plan| matches!(plan.policy, Policy::Pct { depth: 2, .. })).count() as u64;
    assert!(count > 5, "{count}");
    assert_eq!(portfolio.status().guarantee, Some(Guarantee::new(2, 3, 10, count)));
}

#[test]
fn samplers_tell_how_likely_something_new_is() {
    let mut pos = Pos::new(3);
    assert_eq!(pos.status().unseen, None);
    // Behaviours 1, 2, 3, 1, 2, 3, ..., and 100 once. The first execution has no fingerprint.
    for number in 0..31u64 {
        let plan = pos.next().unwrap();
        assert_eq!(plan.fingerprint, number > 0);
        let kind = if number == 30 { 100 } else { number % 3 };
        let fingerprint = plan.fingerprint.then_some(kind);
        pos.done(&plan, &Execution { fingerprint, ..execution(10, 2) });
    }
    let unseen = pos.status().unseen.unwrap();
    assert_eq!((unseen.executions, unseen.kinds, unseen.once), (30, 4, 1));
    assert_eq!(unseen.chance, 1.0 / 30.0);
}
