//! Tests that an operation without a result excludes assignments only for formulas that use it.

use heisen_solver::{Answer, Formula, Limit, Op, Solver, Term};

fn is(solver: &mut Solver, term: Term, value: u128) -> Formula {
    let width = solver.terms.width(term);
    let constant = solver.terms.constant(width, value);
    Formula::Holds(solver.terms.apply(Op::Eq, &[term, constant]))
}

fn possible(solver: &mut Solver, assumptions: &[Formula]) -> bool {
    matches!(solver.check(assumptions, &Limit::default()), Answer::Yes(_))
}

#[test]
fn a_division_that_is_not_asked_about_may_divide_by_zero() {
    for op in [Op::UDiv, Op::SDiv, Op::URem, Op::SRem, Op::Shl, Op::LShr, Op::AShr] {
        let mut solver = Solver::new();
        let (x, y) = (solver.terms.unknown(8), solver.terms.unknown(8));
        let result = solver.terms.apply(op, &[x, y]);
        let asked = is(&mut solver, result, 3);
        let bad = if matches!(op, Op::Shl | Op::LShr | Op::AShr) { 8 } else { 0 };
        let undefined = is(&mut solver, y, bad);
        assert!(possible(&mut solver, std::slice::from_ref(&asked)), "{op:?}");
        assert!(possible(&mut solver, std::slice::from_ref(&undefined)), "{op:?}");
        for side in [asked.clone(), asked.clone().not()] {
            assert!(!possible(&mut solver, &[side.clone(), undefined.clone()]), "{op:?} {side:?}");
            // A formula that may be left out asks for nothing.
            assert!(possible(
                &mut solver,
                &[Formula::Any(vec![side.clone(), undefined.clone()]), undefined.clone()]
            ));
            // A counted formula must have an answer.
            let counted = Formula::Exactly(1, vec![side.clone(), undefined.clone()]);
            assert!(!possible(&mut solver, &[counted.clone(), undefined.clone()]), "{op:?}");
            assert!(!possible(&mut solver, &[counted.clone().not(), undefined.clone()]), "{op:?}");
            assert!(possible(&mut solver, &[counted]), "{op:?}");
            // What was asserted in a level is forgotten after it.
            solver.push();
            solver.assert(&side);
            assert!(!possible(&mut solver, std::slice::from_ref(&undefined)), "{op:?}");
            solver.pop();
            assert!(possible(&mut solver, std::slice::from_ref(&undefined)), "{op:?}");
        }
    }
}

/// LLVM's select takes no poison from the arm that is not chosen, but the division in it was executed.
#[test]
fn an_arm_that_is_not_chosen_may_shift_too_far_but_not_divide_by_zero() {
    for (op, bad, expected) in
        [(Op::Shl, 8, true), (Op::AShr, 9, true), (Op::UDiv, 0, false), (Op::SRem, 0, false)]
    {
        let mut solver = Solver::new();
        let (x, y, condition) = (solver.terms.unknown(8), solver.terms.unknown(8), solver.terms.unknown(1));
        let result = solver.terms.apply(op, &[x, y]);
        let chosen = solver.terms.apply(Op::Select, &[condition, result, x]);
        let asked = is(&mut solver, chosen, 3);
        let undefined = is(&mut solver, y, bad);
        let yes = Formula::Holds(condition);
        assert!(!possible(&mut solver, &[asked.clone(), undefined.clone(), yes.clone()]), "{op:?}");
        assert_eq!(possible(&mut solver, &[asked, undefined, yes.not()]), expected, "{op:?}");
    }
}

/// A division by poison is undefined behaviour even where its result is not chosen; poison divided by a number that is
/// neither 0 nor -1 is only poison.
#[test]
fn poison_in_a_division() {
    for (op, poison_divides, divisor, expected) in [
        (Op::UDiv, true, 0, false),
        (Op::UDiv, false, 3, true),
        (Op::SDiv, false, 3, true),
        (Op::SDiv, false, 0xff, false),
    ] {
        let mut solver = Solver::new();
        let (x, by, y, condition) = (
            solver.terms.unknown(8),
            solver.terms.unknown(8),
            solver.terms.unknown(8),
            solver.terms.unknown(1),
        );
        let shifted = solver.terms.apply(Op::Shl, &[x, by]);
        let operands = if poison_divides { [x, shifted] } else { [shifted, y] };
        let result = solver.terms.apply(op, &operands);
        let chosen = solver.terms.apply(Op::Select, &[condition, result, x]);
        let all = [
            is(&mut solver, chosen, 3),
            is(&mut solver, by, 8),
            is(&mut solver, y, divisor),
            Formula::Holds(condition).not(),
        ];
        assert_eq!(possible(&mut solver, &all), expected, "{op:?}");
        let value = |unknown: Term| match unknown {
            _ if unknown == x => 3,
            _ if unknown == by => 8,
            _ if unknown == y => divisor,
            _ => 0,
        };
        assert_eq!(solver.terms.evaluate(chosen, &value), expected.then_some(3), "{op:?}");
    }
}
