//! Tests limits, and that the same questions get the same answers.

use heisen_solver::{Answer, Event, Formula, Limit, Op, Solver};

/// Whether this many pigeons fit into one hole less, no two into one. It has no solution, and takes long to refute.
fn pigeons(pigeons: u32) -> Solver {
    let mut solver = Solver::new();
    let holes = solver.terms.constant(8, u128::from(pigeons) - 1);
    let all: Vec<_> = (0..pigeons).map(|_| solver.terms.unknown(8)).collect();
    for (number, &one) in all.iter().enumerate() {
        let inside = solver.terms.apply(Op::Ult, &[one, holes]);
        solver.assert(&Formula::Holds(inside));
        for &other in &all[..number] {
            let same = solver.terms.apply(Op::Eq, &[one, other]);
            solver.assert(&Formula::Holds(same).not());
        }
    }
    solver
}

#[test]
fn a_limit_ends_the_search() {
    let few = Limit { steps: Some(20), stop: None };
    assert_eq!(pigeons(8).check(&[], &few), Answer::Unknown);
    let stop = Limit { steps: None, stop: Some(&|| true) };
    assert_eq!(pigeons(8).check(&[], &stop), Answer::Unknown);
    // The search goes on where it ended.
    let mut solver = pigeons(5);
    assert_eq!(solver.check(&[], &few), Answer::Unknown);
    assert_eq!(solver.check(&[], &Limit::default()), Answer::No(Vec::new()));
}

#[test]
fn the_same_questions_have_the_same_answers() {
    let ask = || {
        let mut solver = Solver::new();
        let events: Vec<Event> = (0..30).map(|_| solver.event()).collect();
        for pair in events.windows(3) {
            let [a, b, c] = [pair[0], pair[1], pair[2]];
            solver.assert(&Formula::Any(vec![
                Formula::Before(c, a),
                Formula::Before(b, c),
                Formula::Before(b, a),
            ]));
        }
        let x = solver.terms.unknown(32);
        let square = solver.terms.apply(Op::Mul, &[x, x]);
        let wanted = solver.terms.constant(32, 1_000_193 * 1_000_193);
        let same = solver.terms.apply(Op::Eq, &[square, wanted]);
        solver.assert(&Formula::Holds(same));
        solver.check(&[], &Limit::default())
    };
    let first = ask();
    assert!(matches!(first, Answer::Yes(_)));
    assert_eq!(ask(), first);
}

/// What is preferred is tried first: with no reason against it, the model follows it.
#[test]
fn preferred_orders_are_tried_first() {
    for backwards in [false, true] {
        let mut solver = Solver::new();
        let events: Vec<Event> = (0..20).map(|_| solver.event()).collect();
        for (number, &one) in events.iter().enumerate() {
            for &other in &events[..number] {
                let (first, second) = if backwards { (one, other) } else { (other, one) };
                solver.prefer(first, second);
                solver.assert(&Formula::Any(vec![Formula::Before(one, other), Formula::Before(other, one)]));
            }
        }
        let Answer::Yes(model) = solver.check(&[], &Limit::default()) else { panic!("any order will do") };
        let expected: Vec<Event> = if backwards { events.into_iter().rev().collect() } else { events };
        assert_eq!(model.order(), expected);
    }
}

#[test]
fn what_is_always_so_may_exclude_everything() {
    let mut solver = Solver::new();
    let (a, b) = (solver.event(), solver.event());
    solver.precedes(a, b);
    assert_eq!(solver.check(&[Formula::Before(b, a)], &Limit::default()), Answer::No(vec![0]));
    assert!(matches!(solver.check(&[], &Limit::default()), Answer::Yes(model) if model.before(a, b)));
    solver.precedes(b, a);
    assert_eq!(solver.check(&[], &Limit::default()), Answer::No(vec![]));
}
