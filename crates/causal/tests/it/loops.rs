//! Loops that wait for other threads: random programs, compared with all their states.
//!
//! Such loops have no last path. Within a few rounds the search must show all that any execution shows, because a further
//! round of these loops changes nothing but the values that the first rounds read, too.

use crate::random::search_for;
use crate::toy::generator::Random;
use crate::toy::machine::Over;
use crate::toy::oracle::{Outcomes, outcomes};
use crate::toy::program::{Do, Expr, Place, Program};
use crate::toy::runner::{Run, run};
use heisen_causal::{Causal, Options};
use heisen_trace::ValueOp;
use std::collections::BTreeMap;

/// Shared memory: two flags, a turn, a lock word, a counter.
const FLAGS: [Place; 2] = [Place::Fixed(0), Place::Fixed(1)];
const LOCK: Place = Place::Fixed(2);
const COUNTER: Place = Place::Fixed(3);

fn equals(register: usize, number: u8) -> Expr {
    Expr::of(ValueOp::Eq, Expr::Reg(register), Expr::Const(number))
}

/// A thread: announces itself, waits in one of several ways, changes the counter, and takes its announcement back.
fn thread(random: &mut Random, me: usize) -> Vec<Do> {
    let (mine, other) = (FLAGS[me].clone(), FLAGS[1 - me].clone());
    let mut code = vec![Do::Store(mine.clone(), 1, Expr::Const(1))];
    match random.below(6) {
        // Waits for a value that the other thread may write.
        0 => {
            let at = code.len();
            code.push(Do::Load(0, other, 1));
            code.push(Do::JumpUnless(equals(0, random.below(2) as u8), at));
        }
        // As above, over two words, as Peterson's algorithm.
        1 => {
            let at = code.len();
            code.push(Do::Load(0, other, 1));
            code.push(Do::JumpUnless(Expr::Reg(0), at + 4));
            code.push(Do::Load(1, LOCK, 1));
            code.push(Do::JumpUnless(equals(1, me as u8), at));
        }
        // A lock that is taken by compare-exchange.
        2 | 3 => {
            let at = code.len();
            code.push(Do::Cas(2, LOCK, Expr::Const(0), Expr::Const(1)));
            code.push(Do::JumpUnless(equals(2, 0), at));
        }
        // A word that is emptied again and again, until there was something in it.
        4 => {
            let at = code.len();
            code.extend([
                Do::Lock(1),
                Do::Load(0, LOCK, 1),
                Do::Store(LOCK, 1, Expr::Const(0)),
                Do::Unlock(1),
            ]);
            code.push(Do::JumpUnless(equals(0, 0), at + 6));
            code.push(Do::JumpUnless(Expr::Const(0), at));
        }
        // A mutex that is tried until it is free.
        _ => {
            let at = code.len();
            code.push(Do::TryLock(4, 0));
            code.push(Do::JumpUnless(Expr::Reg(4), at));
        }
    }
    let unlocks = matches!(code.last(), Some(Do::JumpUnless(Expr::Reg(4), _)));
    code.push(Do::Load(3, COUNTER, 1));
    let more = Expr::of(ValueOp::Add, Expr::Reg(3), Expr::Const(1));
    code.push(Do::Store(COUNTER, 1, more.clone()));
    if random.below(3) == 0 {
        code.push(Do::Load(5, COUNTER, 1));
        code.push(Do::Assert(Expr::of(ValueOp::Eq, Expr::Reg(5), more)));
    }
    if unlocks {
        code.push(Do::Unlock(0));
    }
    code.push(Do::Store(LOCK, 1, Expr::Const(0)));
    if random.below(2) == 0 {
        code.push(Do::Store(mine, 1, Expr::Const(0)));
    }
    code
}

fn program(seed: u64) -> Program {
    let mut random = Random::new(seed);
    let threads = [thread(&mut random, 0), thread(&mut random, 1)];
    let [first, second] = threads;
    let expected = Expr::of(ValueOp::Ule, Expr::Const(1 + random.below(2) as u8), Expr::Reg(0));
    let main = vec![
        Do::Create(1),
        Do::Create(2),
        Do::Join(0),
        Do::Join(1),
        Do::Load(0, COUNTER, 1),
        Do::Assert(expected),
    ];
    Program { code: vec![main, first, second], ..Program::default() }
}

#[test]
fn a_few_rounds_of_loops_show_what_any_number_shows() {
    let programs = if std::env::var_os("HEISEN_NIGHTLY").is_some() { 2_000 } else { 40 };
    let (mut proofs, mut bounded, mut failing) = (0, 0, 0);
    for seed in 0..programs {
        let program = program(seed);
        let expected = outcomes(&program, 20_000, false).expect("few states");
        let options = Options { rounds: 2, ..Options::default() };
        let searched = search_for(&program, 100, options);
        let context = || format!("seed {seed}: {program:?}\n{:?}", searched.status);
        assert!(searched.outcomes.failures.is_subset(&expected.failures), "{}", context());
        assert!(searched.outcomes.stuck.is_subset(&expected.stuck), "{}", context());
        assert_eq!(searched.status.diverged, 0, "{}", context());
        if searched.status.is_proof() {
            assert_eq!(searched.outcomes, expected, "{}", context());
            proofs += 1;
            bounded += u32::from(searched.status.bounded);
        }
        failing += u32::from(!expected.failures.is_empty());
    }
    println!("{programs} programs, {proofs} proofs, {bounded} of them bounded, {failing} fail");
    assert!(proofs > 0 && bounded > 0 && failing > 0, "{proofs} proofs, {bounded} bounded, {failing} fail");
}

/// A search that goes on to more rounds has shown by then what one shows that ends with fewer.
#[test]
fn rounds_that_are_completed_have_shown_all() {
    let programs = if std::env::var_os("HEISEN_NIGHTLY").is_some() { 2_000 } else { 40 };
    let (mut compared, mut failing) = (0, 0);
    for seed in 0..programs {
        let program = program(seed);
        let mut causal = Causal::new(Options { rounds: 4, ..Options::default() });
        let mut shown = Outcomes::default();
        let mut completed: BTreeMap<u32, Outcomes> = BTreeMap::new();
        while let Some(plan) = causal.next_plan() {
            if let Some(rounds) = causal.status().completed {
                completed.entry(rounds).or_insert_with(|| shown.clone());
            }
            let Run { trace, end, over, stuck, .. } = run(&program, &plan);
            causal.done(&plan, &trace, &end);
            shown.failures.extend(over.filter(|over| !matches!(over, Over::Exit | Over::Ignored)));
            shown.stuck.extend(stuck);
            if causal.status().executions > 60 {
                break;
            }
        }
        for (rounds, shown) in completed {
            let options = Options { rounds, ..Options::default() };
            let searched = search_for(&program, 100, options);
            if searched.status.is_proof() {
                let context = || format!("seed {seed}, {rounds} rounds: {program:?}");
                assert!(searched.outcomes.failures.is_subset(&shown.failures), "{}", context());
                assert!(searched.outcomes.stuck.is_subset(&shown.stuck), "{}", context());
                compared += 1;
                failing += u32::from(searched.outcomes != Outcomes::default());
            }
        }
    }
    println!("{programs} programs, {compared} comparisons, {failing} with failures");
    assert!(compared > programs / 4 && failing > 0, "{compared} comparisons, {failing} with failures");
}
