//! Tests a problem that grows between questions: events, unknowns, reads, formulas and levels.

use crate::problem::{Problem, below};
use heisen_solver::{Answer, Formula, Limit};
use heisen_testkit::usual_or_nightly;
use proptest::test_runner::{RngAlgorithm, TestRng};

#[test]
fn a_problem_that_grew_answers_like_brute_force() {
    let mut random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let (mut yes, mut no, mut reads, mut cores) = (0, 0, 0, 0);
    for round in 0..usual_or_nightly(250, 5000) {
        let mut problem = Problem::random(&mut random);
        // Formulas and the number of reads, for each level.
        let mut levels: Vec<(Vec<Formula>, usize)> = vec![(Vec::new(), 0)];
        for _ in 0..8 {
            match below(&mut random, 6) {
                0 if problem.events.len() < 5 => problem.grow(&mut random),
                1 | 2 => problem.read(&mut random),
                3 => {
                    problem.solver.push();
                    levels.push((Vec::new(), problem.reads.len()));
                }
                4 if levels.len() > 1 => {
                    problem.solver.pop();
                    let (_, before) = levels.pop().expect("a level");
                    problem.reads.truncate(before);
                }
                _ => {
                    let formula = problem.formula(&mut random, 2);
                    problem.solver.assert(&formula);
                    levels.last_mut().expect("a level").0.push(formula);
                }
            }
            let assumed: Vec<Formula> =
                (0..below(&mut random, 4)).map(|_| problem.formula(&mut random, 1)).collect();
            let asserted: Vec<Formula> = levels.iter().flat_map(|(formulas, _)| formulas).cloned().collect();
            let all: Vec<&Formula> = asserted.iter().chain(&assumed).collect();
            reads += usize::from(!problem.reads.is_empty());
            match problem.solver.check(&assumed, &Limit::default()) {
                Answer::Yes(model) => {
                    yes += 1;
                    let reads = &problem.reads;
                    assert!(problem.is_solution(&all, &model), "{round}: {model:?} of {all:?} {reads:?}");
                }
                Answer::No(core) => {
                    no += 1;
                    let kept: Vec<Formula> = core.iter().map(|&index| assumed[index].clone()).collect();
                    let few: Vec<&Formula> = asserted.iter().chain(&kept).collect();
                    let reads = &problem.reads;
                    assert!(!problem.has_solution(&few), "{round}: {core:?} of {all:?} {reads:?}");
                    cores += usize::from(core.len() < assumed.len());
                    assert!(matches!(problem.solver.check(&kept, &Limit::default()), Answer::No(_)));
                }
                Answer::Unknown => panic!("there is no limit"),
            }
        }
    }
    assert!(yes > 200 && no > 200 && reads > 200 && cores > 50, "{yes} {no} {reads} {cores}");
}
