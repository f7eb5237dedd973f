//! Random walk and probabilistic concurrency testing.

use heisen_search::{Guarantee, Pct, Random, Strategy};
use heisen_trace::{End, Execution, Plan, Policy};
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
    }
}

/// Runs `count` plans with `room` out at a time, each execution as long as `steps` says, and returns them.
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
        Policy::Random { seed } | Policy::Pct { seed, .. } => seed,
    }
}

#[test]
fn random_is_its_seed() {
    let plans = run(&mut Random::new(7), 500, 1, |_| 10);
    assert_eq!(plans, run(&mut Random::new(7), 500, 8, |_| 10));
    assert_ne!(plans, run(&mut Random::new(8), 500, 1, |_| 10));
    assert_eq!(plans.iter().map(seed).collect::<HashSet<_>>().len(), 500);
    for plan in &plans {
        assert_eq!(*plan, Plan::new(Policy::Random { seed: seed(plan) }));
    }
    let mut random = Random::new(7);
    run(&mut random, 500, 1, |_| 10);
    let status = random.status();
    assert!(!random.needs_decisions() && !status.exhausted && !status.whole);
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

/// The length of an execution that its seed alone decides, and that grows now and then.
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
    // Batches are of 1, 2, 4, ... plans; the fourth execution is longer than those before it.
    let lengths = [10, 10, 10, 25, 10, 10, 10, 10];
    let mut used = Vec::new();
    for length in lengths {
        let plan = pct.next().unwrap();
        used.push(if let Policy::Pct { steps, .. } = plan.policy { steps } else { 0 });
        pct.done(&plan, &execution(length, 2));
    }
    assert_eq!(used, [0, 10, 10, 10, 10, 10, 10, 25]);
    // Only the last was planned with the steps that are known now.
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
    // More threads than were known lower what every execution so far has earned, but spoil none.
    let plan = pct.next().unwrap();
    pct.done(&plan, &execution(10, 5));
    assert_eq!(pct.status().guarantee, Some(Guarantee::new(2, 5, 10, 3)));
    // One that got stuck or ran into the step limit earns nothing.
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
