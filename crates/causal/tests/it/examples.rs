//! Programs of papers, with the number of executions that the search needs.

use crate::random::{Searched, search};
use crate::toy::program::{Do, Expr, Place, Program};
use heisen_trace::ValueOp;

const X: Place = Place::Fixed(0);
const Y: Place = Place::Fixed(1);
const Z: Place = Place::Fixed(2);
const W: Place = Place::Fixed(3);

fn above(register: usize, number: u8) -> Expr {
    Expr::of(ValueOp::Ult, Expr::Const(number), Expr::Reg(register))
}

/// Figure 2 of Cortex: no schedule fails on the paths that schedules usually take.
fn figure_2() -> Program {
    let first = vec![
        Do::Load(0, Z, 1),
        Do::JumpUnless(above(0, 0), 4),
        Do::Load(1, W, 1),
        Do::Store(W, 1, Expr::of(ValueOp::Add, Expr::Reg(1), Expr::Const(1))),
        Do::Store(X, 1, Expr::Const(1)),
        Do::Store(Y, 1, Expr::Const(1)),
        Do::Load(2, Y, 1),
        Do::JumpUnless(Expr::of(ValueOp::Eq, Expr::Reg(2), Expr::Const(0)), 10),
        Do::Load(0, X, 1),
        Do::Store(X, 1, Expr::of(ValueOp::Sub, Expr::Reg(0), Expr::Const(1))),
        Do::Load(0, X, 1),
        Do::Assert(above(0, 0)),
    ];
    let second = vec![
        Do::Store(Z, 1, Expr::Const(1)),
        Do::Load(0, W, 1),
        Do::JumpUnless(above(0, 0), 4),
        Do::Store(Y, 1, Expr::Const(0)),
    ];
    let main = vec![Do::Create(1), Do::Create(2), Do::Join(0), Do::Join(1)];
    Program { code: vec![main, first, second], ..Program::default() }
}

#[test]
fn figure_2_of_cortex() {
    let Searched { outcomes, status, first } = search(&figure_2(), 1_000);
    println!("{first:?} {status:?}");
    assert_eq!(outcomes.failures.len(), 1);
    assert!(first.is_some_and(|first| first <= 6), "{first:?} of {status:?}");
    assert!(status.is_proof(), "{status:?}");
}

/// Two threads add each other's number so many times; neither may exceed the bound.
fn fibonacci(rounds: usize, bound: u8) -> Program {
    let body = |mine: Place, other: Place| -> Vec<Do> {
        let round = || {
            let sum = Expr::of(ValueOp::Add, Expr::Reg(0), Expr::Reg(1));
            [Do::Load(0, mine.clone(), 1), Do::Load(1, other.clone(), 1), Do::Store(mine.clone(), 1, sum)]
        };
        (0..rounds).flat_map(|_| round()).collect()
    };
    let at_most = |register| Expr::of(ValueOp::Ule, Expr::Reg(register), Expr::Const(bound));
    let main = vec![
        Do::Create(1),
        Do::Create(2),
        Do::Join(0),
        Do::Join(1),
        Do::Load(0, X, 1),
        Do::Assert(at_most(0)),
        Do::Load(1, Y, 1),
        Do::Assert(at_most(1)),
    ];
    Program { code: vec![main, body(X, Y), body(Y, X)], memory: vec![(0, 1), (1, 1)], ..Program::default() }
}

#[test]
fn fibonacci_sums() {
    // The largest sum after n rounds is the Fibonacci number 2n + 2.
    for (rounds, largest) in [(3, 21), (4, 55), (5, 144)] {
        let Searched { outcomes, status, first } = search(&fibonacci(rounds, largest - 1), 1_000);
        println!("{rounds} rounds: {first:?} {status:?}");
        assert_eq!(outcomes.failures.len(), 2, "{status:?}");
        assert!(first.is_some_and(|first| first <= 2), "{status:?}");
        let Searched { outcomes, status, .. } = search(&fibonacci(rounds, largest), 1_000);
        println!("{rounds} rounds: {status:?}");
        assert_eq!((outcomes.failures.len(), status.executions), (0, 1), "{status:?}");
        assert!(status.is_proof(), "{status:?}");
    }
}

/// A thread waits on a futex until another one has set a flag. `word` is what it compares: the flag itself, or a word that
/// nobody changes.
fn announcement(word: u64) -> Program {
    let waits = vec![
        Do::Load(0, X, 1),
        Do::JumpUnless(Expr::of(ValueOp::Eq, Expr::Reg(0), Expr::Const(0)), 3),
        Do::FutexWait(1, word, Expr::Const(0), false),
    ];
    let sets = vec![Do::Store(X, 1, Expr::Const(1)), Do::FutexWake(0, word, 1)];
    Program { code: vec![vec![Do::Create(1), Do::Create(2), Do::Join(0)], waits, sets], ..Program::default() }
}

#[test]
fn a_wake_up_is_lost_where_the_word_does_not_change() {
    let Searched { outcomes, status, first } = search(&announcement(1), 1_000);
    assert!(!outcomes.stuck.is_empty() && first.is_some_and(|first| first <= 3), "{status:?}");
    let Searched { outcomes, status, .. } = search(&announcement(0), 1_000);
    assert!(outcomes.stuck.is_empty() && status.is_proof(), "{status:?}");
}
