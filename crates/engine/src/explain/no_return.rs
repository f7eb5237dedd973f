//! Finds the point of no return: the last decision of a failing execution at which another choice still avoids the
//! failure.
//!
//! From the last decision backwards, every continuation after another choice is run, as far as the number of runs allows.
//! The first decision with a continuation that passes is the point of no return. If all continuations after it were run,
//! that is proven for the scheduling points of this schedule. Accesses that are not scheduling points stay where they are.

use crate::error::Result;
use crate::explain::judge::Verdict;
use crate::explain::neighbourhood::{Effort, Ended, Runner, deviating};
use crate::process::slots::Detail;
use heisen_trace::{Decision, Plan};

/// The decision after which the failure cannot be avoided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PointOfNoReturn {
    /// The step of the decision.
    pub(crate) step: u32,
    /// How many continuations after it were run. All of them failed.
    pub(crate) runs: usize,
    /// Whether these are all.
    pub(crate) proven: bool,
}

/// The point of no return of a plan that fails with this verdict, by at most so many runs. `None` if no continuation was
/// found that passes.
pub(crate) fn point_of_no_return(
    runner: &mut Runner,
    plan: &Plan,
    failure: &Verdict,
    effort: Effort,
) -> Result<Option<PointOfNoReturn>> {
    runner.limit(effort.time / 2, effort.events);
    let decisions = runner.run(plan, Detail::Touches)?.execution.decisions;
    let mut run = |plan: &Plan| -> Result<Option<(bool, Vec<Decision>)>> {
        if runner.is_over() {
            return Ok(None);
        }
        let run = runner.run(plan, Detail::Touches)?;
        if run.execution.diverged.is_some() {
            // How this continuation ends is unknown, so nothing can be claimed.
            return Ok(None);
        }
        Ok(Some((runner.ended(&run, failure) == Ended::Passes, run.execution.decisions)))
    };
    search(&decisions, effort.continuations, &mut run)
}

/// Runs a plan: whether it passes, and its decisions. `None` if the time is over, or the execution did not follow the
/// plan.
type Run<'a> = dyn FnMut(&Plan) -> Result<Option<(bool, Vec<Decision>)>> + 'a;

fn search(decisions: &[Decision], mut left: usize, run: &mut Run<'_>) -> Result<Option<PointOfNoReturn>> {
    // A part of the runs is kept for the decisions before, so that a large number of continuations at the end does not
    // hide that an early choice avoids the failure.
    let kept = left / 2;
    let (mut runs, mut proven) = (0, true);
    for (index, decision) in decisions.iter().enumerate().rev() {
        let before = &decisions[..index];
        let others = (0..decision.options).filter(|&choice| choice != decision.chosen);
        let mut waiting: Vec<Plan> = others.map(|choice| deviating(before, decision, choice)).collect();
        let directly = waiting.len();
        let mut tried = 0;
        while let Some(plan) = waiting.pop() {
            if left == 0 || left <= kept && tried >= directly {
                proven = false;
                break;
            }
            (left, tried) = (left - 1, tried + 1);
            let Some((passes, taken)) = run(&plan)? else { return Ok(None) };
            if passes {
                return Ok(Some(PointOfNoReturn { step: decision.step, runs, proven }));
            }
            // After its last override the plan goes on by default; every other way from there is a plan of its own.
            let last = plan.overrides.last().map_or(0, |last| last.step);
            for (index, next) in taken.iter().enumerate().filter(|(_, next)| next.step > last) {
                waiting.extend((1..next.options).map(|choice| deviating(&taken[..index], next, choice)));
            }
        }
        runs += tried;
        if left == 0 {
            break;
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use heisen_trace::DecisionKind;

    /// A program of so many binary decisions, which passes if `passes` says so.
    fn found(
        count: u32,
        chosen: &[u16],
        left: usize,
        passes: impl Fn(&[u16]) -> bool,
    ) -> Option<PointOfNoReturn> {
        let decision = |step: u32, chosen: u16| Decision {
            step,
            kind: DecisionKind::Thread,
            options: 2,
            chosen,
            preemptive: false,
            hash: 0,
        };
        let decisions: Vec<Decision> =
            (1..).zip(chosen).map(|(step, &chosen)| decision(step, chosen)).collect();
        let mut run = |plan: &Plan| {
            let choice = |step| plan.overrides.iter().find(|o| o.step == step).map_or(0, |o| o.choice);
            let choices: Vec<u16> = (1..=count).map(choice).collect();
            let decisions = (1..).zip(&choices).map(|(step, &chosen)| decision(step, chosen)).collect();
            Ok(Some((passes(&choices), decisions)))
        };
        search(&decisions, left, &mut run).expect("nothing fails")
    }

    #[test]
    fn it_is_the_last_decision_that_matters() {
        // It fails if the second choice is 1, whatever comes after.
        let found = found(4, &[0, 1, 0, 0], 100, |choices| choices[1] == 0).expect("a point");
        assert_eq!((found.step, found.runs, found.proven), (2, 3, true));
    }

    #[test]
    fn a_late_way_out_may_take_several_choices() {
        // Only 1 at the third and at the fourth decision together avoid it.
        let found = found(4, &[1, 0, 0, 0], 100, |choices| choices[2..] == [1, 1]).expect("a point");
        assert_eq!((found.step, found.runs, found.proven), (3, 1, true));
    }

    #[test]
    fn with_too_few_runs_nothing_is_proven() {
        let point = found(9, &[0, 1, 0, 0, 0, 0, 0, 0, 0], 20, |choices| choices[1] == 0).expect("a point");
        assert_eq!((point.step, point.proven), (2, false));
        assert_eq!(found(9, &[1; 9], 20, |_| false), None);
    }

    /// Against brute force: the point is the last decision from which a way out exists.
    #[test]
    fn all_small_programs() {
        for program in 0..1u32 << 8 {
            let passes = |choices: &[u16]| {
                let number = choices.iter().fold(0, |number, &choice| number * 2 + u32::from(choice));
                program >> number & 1 == 1
            };
            for execution in 0..8u16 {
                let chosen: Vec<u16> = (0..3).rev().map(|bit| execution >> bit & 1).collect();
                if passes(&chosen) {
                    continue;
                }
                let escapes = |index: usize| {
                    (0..8u16).any(|other| {
                        let other: Vec<u16> = (0..3).rev().map(|bit| other >> bit & 1).collect();
                        other[..index] == chosen[..index] && other[index] != chosen[index] && passes(&other)
                    })
                };
                let expected = (0..3).rev().find(|&index| escapes(index)).map(|index| index as u32 + 1);
                let point = found(3, &chosen, 1_000, passes);
                assert_eq!(point.map(|point| point.step), expected, "{program:b} {chosen:?}");
                assert!(point.is_none_or(|point| point.proven));
            }
        }
    }
}
