//! Finds the prefix that plans share, and how many plans to run in one turn so that it is executed once.
//!
//! A systematic search tries the choices of an execution one after the other, so the plans of a turn often
//! agree for thousands of steps. The runtime executes the common steps once if it knows where the plans begin
//! to differ (`runtime::lifecycle::in_process::later_snapshot`). CHESS (OSDI'08, section 4.1) replays every
//! execution from its beginning.

use crate::process::slots::Job;
use heisen_trace::{Plan, Policy};
use heisen_wire::WORTH;

/// How many of the first jobs to run in one turn, and the step of the choice at which they begin to differ.
/// The step is 0 if sharing a prefix does not pay.
pub(crate) fn shared_steps(jobs: &[Job<'_>]) -> (usize, u32) {
    let all = (jobs.len(), 0);
    let Some(Job::Plan(first)) = jobs.first() else { return all };
    let mut step = fixed_until(first);
    let saved = |count: usize, step: u32| count.saturating_sub(1) as u64 * u64::from(step);
    for (count, job) in jobs.iter().enumerate().skip(1) {
        let Job::Plan(plan) = job else { return all };
        let with = step.min(parts_from(first, plan));
        // A plan that would cost more common steps than it saves is left to another turn.
        if saved(count + 1, with) < saved(count, step) && saved(count, step) >= WORTH {
            return (count, step);
        }
        step = with;
    }
    (jobs.len(), if saved(jobs.len(), step) >= WORTH { step } else { 0 })
}

/// The step of the last choice that a plan fixes. Before it, an execution follows the overrides and the
/// default.
fn fixed_until(plan: &Plan) -> u32 {
    let last = plan.overrides.last().map_or(0, |last| last.step);
    if plan.sleep.is_empty() { last } else { last.min(plan.sleep.from) }
}

/// The first step at which two plans may differ.
fn parts_from(one: &Plan, other: &Plan) -> u32 {
    let same = one.overrides.iter().zip(&other.overrides).take_while(|(one, other)| one == other).count();
    let own = |plan: &Plan| match plan.overrides.get(same) {
        Some(next) if plan.sleep.is_empty() => next.step,
        Some(next) => next.step.min(plan.sleep.from),
        // Without more overrides it goes on by default, like the other plan until its next override.
        None if plan.policy == Policy::Default && plan.sleep.is_empty() => u32::MAX,
        None => fixed_until(plan),
    };
    own(one).min(own(other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use heisen_trace::{DecisionKind, Override};

    fn plan(steps: &[u32]) -> Plan {
        let overrides = steps.iter().map(|&step| Override::new(step, DecisionKind::Thread, 1, 2)).collect();
        Plan { overrides, ..Plan::new(Policy::Default) }
    }

    fn parts(plans: &[Plan]) -> (usize, u32) {
        shared_steps(&plans.iter().map(Job::Plan).collect::<Vec<_>>())
    }

    #[test]
    fn they_part_at_the_first_choice_that_differs() {
        let deepest_first: Vec<Plan> = (0..100).map(|n| plan(&[7, 10_000 - n])).collect();
        assert_eq!(parts(&deepest_first), (100, 9_901));
        let earliest_first: Vec<Plan> = (0..100).map(|n| plan(&[10_000 + n])).collect();
        assert_eq!(parts(&earliest_first), (100, 10_000));
        // The parent of all of them goes on by default, so it shares the same prefix.
        let with_parent: Vec<Plan> = earliest_first.iter().cloned().chain([plan(&[])]).collect();
        assert_eq!(parts(&with_parent), (101, 10_000));
    }

    #[test]
    fn what_has_little_in_common_is_left_to_another_turn() {
        let mut plans: Vec<Plan> = (0..50).map(|n| plan(&[20_000, 30_000 + n])).collect();
        plans.extend((0..50).map(|n| plan(&[5, 30_000 + n])));
        assert_eq!(parts(&plans), (50, 30_000));
        assert_eq!(parts(&plans[50..]), (50, 30_000));
        // But not where little is lost.
        let short: Vec<Plan> = (0..10).map(|n| plan(&[n, 100])).collect();
        assert_eq!(parts(&short), (10, 0));
    }

    #[test]
    fn it_must_be_worth_while() {
        assert_eq!(parts(&[plan(&[1_000_000])]), (1, 0));
        assert_eq!(parts(&[plan(&[40]), plan(&[40])]), (2, 0));
        assert_eq!(parts(&[]), (0, 0));
        assert_eq!(parts(&vec![plan(&[]); 500]), (500, 0));
    }

    #[test]
    fn what_goes_by_chance_is_the_same_only_as_far_as_it_is_fixed() {
        let random = |steps: &[u32]| Plan { policy: Policy::Random { seed: 1 }, ..plan(steps) };
        let plans: Vec<Plan> = (0..100).map(|n| random(&[5_000, 6_000 + n])).collect();
        assert_eq!(parts(&plans), (100, 6_000));
        let mut plans = plans;
        plans.extend(vec![random(&[5_000]); 100]);
        assert_eq!(parts(&plans), (100, 6_000));
        assert_eq!(parts(&plans[100..]), (100, 5_000));
    }
}
