//! Tests answers on random problems against brute force over all orders and values.

use crate::problem::{Problem, below};
use heisen_solver::{Answer, Formula, Limit};
use heisen_testkit::usual_or_nightly;
use proptest::test_runner::{RngAlgorithm, TestRng};

#[test]
fn answers_are_those_of_brute_force() {
    let mut random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let (mut yes, mut no, mut cores) = (0, 0, 0);
    for round in 0..usual_or_nightly(1500, 100_000) {
        let mut problem = Problem::random(&mut random);
        let asserted: Vec<Formula> =
            (0..below(&mut random, 3)).map(|_| problem.formula(&mut random, 3)).collect();
        let assumed: Vec<Formula> =
            (0..below(&mut random, 4)).map(|_| problem.formula(&mut random, 2)).collect();
        asserted.iter().for_each(|formula| problem.solver.assert(formula));
        let all: Vec<&Formula> = asserted.iter().chain(&assumed).collect();
        match problem.solver.check(&assumed, &Limit::default()) {
            Answer::Yes(model) => {
                yes += 1;
                assert!(problem.is_solution(&all, &model), "{round}: {model:?} of {all:?}");
            }
            Answer::No(core) => {
                no += 1;
                assert!(!problem.has_solution(&all), "{round}: {all:?}");
                let kept: Vec<&Formula> = core.iter().map(|&index| &assumed[index]).collect();
                let few: Vec<&Formula> = asserted.iter().chain(kept.iter().copied()).collect();
                assert!(!problem.has_solution(&few), "{round}: {core:?} of {all:?}");
                cores += usize::from(core.len() < assumed.len());
            }
            Answer::Unknown => panic!("there is no limit"),
        }
    }
    assert!(yes > 200 && no > 200 && cores > 50, "{yes} {no} {cores}");
}
