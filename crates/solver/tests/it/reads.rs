//! Tests problems with the shape of real traces.

use crate::traces::{self, Shape};
use heisen_solver::{Answer, Event, Formula, Limit, Op, Solver, Term, Write};

fn ask(solver: &mut Solver, assumed: &[Formula]) -> Option<bool> {
    match solver.check(assumed, &Limit::default()) {
        Answer::Yes(_) => Some(true),
        Answer::No(_) => Some(false),
        Answer::Unknown => None,
    }
}

#[test]
fn the_largest_sum_is_reached_and_not_exceeded() {
    for rounds in 1..=3 {
        for eager in [0, 12] {
            let largest = traces::largest_sum(rounds);
            let mut solver = traces::fibonacci(rounds, largest, Some(eager));
            assert_eq!(ask(&mut solver, &[]), Some(true), "{rounds}");
            let mut solver = traces::fibonacci(rounds, largest + 1, Some(eager));
            assert_eq!(ask(&mut solver, &[]), Some(false), "{rounds}");
        }
    }
}

/// A read as a formula over all writes, which is what [`Solver::read`] means.
fn as_formula(solver: &mut Solver, read: Event, guard: &Formula, value: Term, writes: &[Write]) {
    let before = |first: Option<Event>, second: Option<Event>| match (first, second) {
        (None, _) => Formula::All(Vec::new()),
        (_, None) => Formula::Any(Vec::new()),
        (Some(first), Some(second)) => Formula::Before(first, second),
    };
    let mut choices = vec![guard.clone().not()];
    for (number, write) in writes.iter().enumerate() {
        let same = solver.terms.apply(Op::Eq, &[value, write.value]);
        let mut all = vec![write.guard.clone(), before(write.event, Some(read)), Formula::Holds(same)];
        for other in writes.iter().enumerate().filter(|(other, _)| *other != number).map(|(_, other)| other) {
            if other.event.is_some() {
                all.push(Formula::Any(vec![
                    other.guard.clone().not(),
                    before(other.event, write.event),
                    before(Some(read), other.event),
                ]));
            }
        }
        choices.push(Formula::All(all));
    }
    solver.assert(&Formula::Any(choices));
}

/// Traces of 60 events are too long for brute force, but reads can be formulas.
#[test]
fn flips_of_traces_are_those_of_formulas() {
    let (mut yes, mut no) = (0, 0);
    for seed in 0..6 {
        let shape = Shape { events: 60, threads: 3, locks: 2, locations: 4 };
        let mut lazy = traces::trace(shape, seed, Some(0), Solver::read);
        let mut eager = traces::trace(shape, seed, Some(12), Solver::read);
        let mut formula = traces::trace(shape, seed, None, as_formula);
        assert_eq!(ask(&mut lazy.solver, &[]), Some(true), "the recorded run");
        for flip in 0..lazy.flips.len() {
            let expected = ask(&mut formula.solver, &formula.flips[flip]);
            assert_eq!(ask(&mut lazy.solver, &lazy.flips[flip]), expected, "{seed} {flip}");
            assert_eq!(ask(&mut eager.solver, &eager.flips[flip]), expected, "{seed} {flip}");
            *if expected == Some(true) { &mut yes } else { &mut no } += 1;
        }
    }
    assert!(yes > 10 && no > 3, "{yes} {no}");
}

/// The recorded run is what the search tries first: it needs no conflict.
#[test]
fn the_recorded_run_is_found_at_once() {
    let shape = Shape { events: 300, threads: 4, locks: 3, locations: 6 };
    let mut trace = traces::trace(shape, 3, None, Solver::read);
    assert_eq!(ask(&mut trace.solver, &trace.recorded), Some(true));
    assert_eq!(trace.solver.statistics().conflicts, 0);
}
