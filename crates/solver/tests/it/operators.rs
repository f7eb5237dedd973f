//! Tests the circuit of each operation against its meaning, on corner values and random ones.

use heisen_solver::{Answer, Formula, Limit, Op, Solver, Term};
use heisen_trace::value_op::mask;
use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};

const WIDTHS: [u32; 9] = [1, 2, 3, 5, 8, 16, 31, 64, 128];

fn values(width: u32, random: &mut TestRng) -> Vec<u128> {
    let top = 1 << (width - 1);
    let mut all = vec![0, 1, 2, mask(width), top, top - 1, u128::from(width)];
    all.extend((0..2).map(|_| u128::from(random.next_u64()) << 64 | u128::from(random.next_u64())));
    all.iter_mut().for_each(|value| *value &= mask(width));
    all.sort_unstable();
    all.dedup();
    all
}

fn is(solver: &mut Solver, term: Term, value: u128) -> Formula {
    let width = solver.terms.width(term);
    let constant = solver.terms.constant(width, value);
    Formula::Holds(solver.terms.apply(Op::Eq, &[term, constant]))
}

/// Checks one operation on operands of one width, with all pairs of the values.
fn check(op: Op, width: u32, to: u32, random: &mut TestRng) {
    let mut solver = Solver::new();
    let mut operands: Vec<Term> = (0..op.operands()).map(|_| solver.terms.unknown(width)).collect();
    if op == Op::Select {
        operands[0] = solver.terms.unknown(1);
    }
    let result = match op {
        Op::ZExt | Op::SExt | Op::Trunc => solver.terms.resize(op, to, operands[0]),
        _ => solver.terms.apply(op, &operands),
    };
    let to = solver.terms.width(result);
    let out = solver.terms.unknown(to);
    let same = solver.terms.apply(Op::Eq, &[out, result]);
    solver.assert(&Formula::Holds(same));
    let all = values(width, random);
    for (&a, &b) in all.iter().flat_map(|a| all.iter().map(move |b| (a, b))) {
        let first = if op == Op::Select { a & 1 } else { a };
        let given = [first, b, a ^ b][..op.operands()].to_vec();
        if op.operands() == 1 && b != all[0] {
            continue;
        }
        let assumed: Vec<Formula> =
            operands.iter().zip(&given).map(|(&operand, &value)| is(&mut solver, operand, value)).collect();
        let answer = solver.check(&assumed, &Limit::default());
        let expected = op.apply(width, to, &given);
        match answer {
            Answer::Yes(model) => {
                assert_eq!(Some(model.value(out)), expected, "{op:?} {width} {given:x?}");
                for (&operand, &value) in operands.iter().zip(&given) {
                    assert_eq!(model.value(operand), value);
                }
            }
            Answer::No(_) => assert_eq!(expected, None, "{op:?} {width} {given:x?}"),
            Answer::Unknown => panic!("no limit"),
        }
    }
}

#[test]
fn circuits_mean_what_the_operations_mean() {
    let mut random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    for op in Op::ALL {
        for width in WIDTHS {
            let to = match op {
                Op::ZExt | Op::SExt => [width + 1, 128].into_iter().find(|to| *to <= 128).unwrap_or(128),
                Op::Trunc => width.div_ceil(2),
                _ => width,
            };
            let heavy = matches!(
                op,
                Op::UDiv
                    | Op::SDiv
                    | Op::URem
                    | Op::SRem
                    | Op::SMulOverflow
                    | Op::UMulOverflow
                    | Op::FunnelLeft
                    | Op::FunnelRight
            );
            if op == Op::ByteSwap && !width.is_multiple_of(16)
                || heavy && width > 31
                || op == Op::Mul && width > 64
            {
                continue;
            }
            check(op, width, to, &mut random);
        }
    }
}

/// Wide circuits are large, so few values are enough.
#[test]
fn wide_divisions_and_products() {
    for (op, width) in
        [(Op::UDiv, 64), (Op::SRem, 64), (Op::Mul, 128), (Op::SMulOverflow, 64), (Op::FunnelLeft, 64)]
    {
        let mut solver = Solver::new();
        let operands: Vec<Term> = (0..op.operands()).map(|_| solver.terms.unknown(width)).collect();
        let result = solver.terms.apply(op, &operands);
        let bits = solver.terms.width(result);
        let out = solver.terms.unknown(bits);
        let same = solver.terms.apply(Op::Eq, &[out, result]);
        solver.assert(&Formula::Holds(same));
        let given = [0xfedc_ba98_7654_3210_u128 & mask(width), 0x1_0000_0007, 13];
        for (&operand, &value) in operands.iter().zip(&given) {
            let formula = is(&mut solver, operand, value);
            solver.assert(&formula);
        }
        let Answer::Yes(model) = solver.check(&[], &Limit::default()) else { panic!("{op:?}") };
        assert_eq!(Some(model.value(out)), op.apply(width, bits, &given[..operands.len()]), "{op:?}");
    }
}

/// The solver also computes backwards: which operands give this result?
#[test]
fn equations_are_solved() {
    let mut solver = Solver::new();
    let (x, y) = (solver.terms.unknown(16), solver.terms.unknown(16));
    let product = solver.terms.apply(Op::Mul, &[x, y]);
    let sum = solver.terms.apply(Op::Add, &[x, y]);
    for (term, value) in [(product, 221), (sum, 30)] {
        let formula = is(&mut solver, term, value);
        solver.assert(&formula);
    }
    let Answer::Yes(model) = solver.check(&[], &Limit::default()) else { panic!("13 and 17") };
    let (x, y) = (model.value(x), model.value(y));
    assert_eq!(((x * y) & 0xffff, (x + y) & 0xffff), (221, 30));
}
