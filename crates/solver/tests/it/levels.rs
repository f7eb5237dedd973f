//! Tests that formulas end with their level, and that a solver that has answered before answers like a new one.

use crate::problem::{Problem, below};
use heisen_solver::{Answer, Formula, Limit};
use proptest::test_runner::{RngAlgorithm, TestRng};

#[test]
fn levels_end_as_if_they_had_not_been() {
    let mut random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut popped = 0;
    for _ in 0..400 {
        let mut problem = Problem::random(&mut random);
        let mut levels: Vec<Vec<Formula>> = vec![Vec::new()];
        for _ in 0..12 {
            match below(&mut random, 4) {
                0 => {
                    problem.solver.push();
                    levels.push(Vec::new());
                }
                1 if levels.len() > 1 => {
                    problem.solver.pop();
                    levels.pop();
                    popped += 1;
                }
                _ => {
                    let formula = problem.formula(&mut random, 2);
                    problem.solver.assert(&formula);
                    levels.last_mut().expect("a level").push(formula);
                }
            }
            let all: Vec<&Formula> = levels.iter().flatten().collect();
            let answer = problem.solver.check(&[], &Limit::default());
            assert_eq!(matches!(answer, Answer::Yes(_)), problem.has_solution(&all), "{all:?}");
            if let Answer::Yes(model) = answer {
                assert!(problem.is_solution(&all, &model), "{model:?} of {all:?}");
            }
        }
    }
    assert!(popped > 200, "{popped}");
}
